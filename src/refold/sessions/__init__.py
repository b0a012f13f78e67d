"""Conversations that outlive a process: sessions over a store in memory, SQLite or PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.sessions.asked import compact_session, get_context_stats, needs_compaction
from refold.sessions.entries import Position, Reported
from refold.sessions.figures import Compacted, Compaction, ContextStats, Recalled, UsageReported
from refold.sessions.heads import new_id
from refold.sessions.jsonl import export_session, import_session
from refold.sessions.memory import MemoryStore
from refold.sessions.opening import default_path, open_store
from refold.sessions.recalling import search
from refold.sessions.session import Session
from refold.sessions.state import Billed
from refold.sessions.store import Head, Hit, Loaded, Received, Store

if TYPE_CHECKING:
    from refold.sessions.sql import SQLStore

__all__ = [
    "Billed",
    "Compacted",
    "Compaction",
    "ContextStats",
    "Head",
    "Hit",
    "Loaded",
    "MemoryStore",
    "Position",
    "Recalled",
    "Received",
    "Reported",
    "SQLStore",
    "Session",
    "Store",
    "UsageReported",
    "compact_session",
    "default_path",
    "export_session",
    "get_context_stats",
    "import_session",
    "needs_compaction",
    "new_id",
    "open_store",
    "search",
]


def __getattr__(name: str) -> Any:
    if name == "SQLStore":  # which brings in a database library, and many need none
        from refold.sessions.sql import SQLStore

        return SQLStore
    raise AttributeError(name)
