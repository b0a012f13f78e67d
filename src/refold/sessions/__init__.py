"""Conversations that outlive a process: sessions in a store in memory, SQLite or PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.sessions._context_stats import Compacted, CompactionStats, ContextStats, Recalled, SessionUsageReported
from refold.sessions._entries import Position, UsageEntry
from refold.sessions._jsonl import export_session, import_session
from refold.sessions._search import search
from refold.sessions._session import Session, compact_session, get_context_stats, needs_compaction
from refold.sessions._state import Billed
from refold.sessions._stores.head import new_id
from refold.sessions._stores.memory import MemoryStore
from refold.sessions._stores.open_store import default_path, open_store
from refold.sessions._stores.protocol import Head, Hit, Loaded, Store, StoredMessage

if TYPE_CHECKING:
    from refold.sessions._stores.sql import SQLStore

__all__ = [
    "Billed",
    "Compacted",
    "CompactionStats",
    "ContextStats",
    "Head",
    "Hit",
    "Loaded",
    "MemoryStore",
    "Position",
    "Recalled",
    "SQLStore",
    "Session",
    "SessionUsageReported",
    "Store",
    "StoredMessage",
    "UsageEntry",
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
    if name == "SQLStore":  # which imports a database library that many programs do not need
        from refold.sessions._stores.sql import SQLStore

        return SQLStore
    raise AttributeError(name)
