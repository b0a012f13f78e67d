"""Sessions of opencode in its database, which it keeps instead of a file for each: read in place, by SQLite alone.

A session is given as the document that `opencode export` writes, so that one reader serves both.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from refold.errors import UnreadableTranscript

__all__ = ["StoredSession", "document", "stored_sessions"]

WAIT = 2.0  # seconds to wait while opencode writes


class StoredSession(Struct, frozen=True):
    """A session of the database: its id, its working folder, and when it last changed, in seconds."""

    id: str
    folder: str
    changed: float


def stored_sessions(path: Path) -> list[StoredSession]:
    """Return the sessions of a database without those of sub-agents; none where it is no such database."""
    try:
        with _reading(path) as connection:
            rows = connection.execute("SELECT id, directory, time_updated FROM session WHERE parent_id IS NULL")
            return [StoredSession(id, folder, milliseconds / 1000) for id, folder, milliseconds in rows]
    except sqlite3.Error:
        return []


def document(path: Path, session: str) -> bytes:
    """Return a session as JSON.

    Raises:
        UnreadableTranscript: it cannot be read.
    """
    try:
        with _reading(path) as connection:
            parts: dict[str, list[object]] = {}
            query = "SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY id"
            for message, id, data in connection.execute(query, (session,)):
                parts.setdefault(message, []).append({**json.loads(data), "id": id})
            query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
            messages = [
                {"info": {**json.loads(data), "id": id}, "parts": parts.get(id, [])}
                for id, data in connection.execute(query, (session,))
            ]
    except (sqlite3.Error, ValueError) as error:
        raise UnreadableTranscript(
            f"{path}: session {session} cannot be read ({error}): export it with `opencode export`, and name the file"
        ) from error
    return json.dumps({"info": {"id": session}, "messages": messages}).encode()


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=WAIT)) as connection:
        yield connection
