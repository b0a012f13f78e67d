"""NeuroLink's three questions about a session, by its id (N19): none or false where it is unknown or empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.sessions._session import Session

if TYPE_CHECKING:
    from typing import Unpack

    from refold.core.needs import Summarizer
    from refold.sessions._context_stats import CompactionStats, ContextStats
    from refold.sessions._session_options import SessionSettings
    from refold.sessions._stores.protocol import Store

__all__ = ["compact_session", "get_context_stats", "needs_compaction"]


def get_context_stats(store: Store, session: str, **settings: Unpack[SessionSettings]) -> ContextStats | None:
    """Return how full a session's context is; None where it is unknown or empty. Takes the settings of `Session`."""
    return Session(store, session, **settings).get_context_stats()


def needs_compaction(store: Store, session: str, **settings: Unpack[SessionSettings]) -> bool:
    """Tell whether a session's compaction is due; False where it is unknown or empty."""
    return Session(store, session, **settings).needs_compaction()


def compact_session(
    store: Store,
    session: str,
    instructions: str | None = None,
    *,
    force: bool = True,
    keep_recent: int | None = None,
    summarize: Summarizer | None = None,
    redact: bool = True,
    **settings: Unpack[SessionSettings],
) -> CompactionStats | None:
    """Compact a session now, and keep the plan; None where it is unknown or empty."""
    opened = Session(store, session, **settings)
    return opened.compact(instructions, force=force, keep_recent=keep_recent, summarize=summarize, redact=redact)
