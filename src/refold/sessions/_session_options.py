"""The options of a session: its settings, and those of one compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._compaction.options import HandlerOptions, ModelOptions, resolve_handlers

if TYPE_CHECKING:
    from refold.core.budget import Limit
    from refold.core.policy import Policy
    from refold.core.view import Cause
    from refold.handlers import Handlers

__all__ = ["SessionRunOptions", "SessionSettings", "handlers_of"]


class SessionSettings(ModelOptions, total=False):
    """The settings of a `Session`, which are remembered in its log; None takes a setting away."""

    policy: str | Policy | None
    """A policy's name, a path to a file with one, or a `Policy`."""
    goal: int | float | Limit | None
    """Where compaction may stop: tokens (int), a share of the input budget (float up to 1.0), or a limit."""


class SessionRunOptions(HandlerOptions, total=False):
    """The options of one compaction of a session, or of its plan."""

    force: bool
    """Compact although it is not due."""
    cause: Cause | str | None
    """As in `refold.compact`."""
    keep_recent: int | None
    """Tokens of newest messages to keep, instead of what the policy says (O17)."""


def handlers_of(options: HandlerOptions) -> Handlers:
    """Return the handlers that options name."""
    return resolve_handlers(options.get("handlers"), options.get("summarize"), redact=options.get("redact", True))
