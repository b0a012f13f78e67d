"""What a shell completes for an argument or after an option: names, and ids in the user's own stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Iterable

    import rich_click as click

__all__ = ["agents", "formats", "kinds", "models", "policies", "sessions", "token_ids"]

MOST_SESSIONS = 100  # more are not read in a menu


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


def sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ids of the sessions in the store that the command line names, the last used first; `last` is one too."""
    from refold._cli.sessions.stored_sessions import opened_store
    from refold._inspect.ages import ago
    from refold.errors import RefoldError

    try:
        with opened_store(ctx.params.get("store")) as store:
            heads = [head for head in store.sessions() if head.id.startswith(incomplete)][:MOST_SESSIONS]
    except (RefoldError, OSError):
        return []
    last = [CompletionItem("last", help=heads[0].id)] if heads and "last".startswith(incomplete) else []
    return [*last, *(CompletionItem(head.id, help=ago(head.touched)) for head in heads)]


def token_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ids of the tokens in the file that the command line names."""
    from refold._cli.tokens import token_file_of
    from refold.errors import RefoldError

    try:
        in_force = token_file_of(ctx.params.get("token_file")).in_force()
    except (RefoldError, OSError, ImportError):
        return []
    return [
        CompletionItem(token.id, help=token.owner or "an administrator")
        for token in in_force
        if token.id.startswith(incomplete)
    ]


def _beginning(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
