"""What a shell completes for an argument or after an option: the names that refold knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Iterable

    import rich_click as click

__all__ = ["agents", "formats", "kinds", "models", "policies"]


def policies(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of policies, for an option that is repeated also `all` and `none`; else paths of files."""
    from refold.policies import names

    known = (*names(), "all", "none") if param.multiple else names()
    return _beginning(incomplete, known) or [CompletionItem(incomplete, type="file")]


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ids of models: those with a provider before them only where a slash is typed."""
    from refold.models._catalog import known

    return _beginning(incomplete, (id for id in known() if "/" in incomplete or "/" not in id))


def kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete kinds of session files."""
    from refold.transcripts import kinds

    return _beginning(incomplete, kinds())


def formats(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete formats of messages."""
    from refold.formats import names

    return _beginning(incomplete, names())


def agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete agents that can be installed into."""
    from refold._install.agents import AGENTS

    return _beginning(incomplete, AGENTS)


def _beginning(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
