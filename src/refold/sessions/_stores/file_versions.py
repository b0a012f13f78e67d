"""Reads the versions of sessions from a file of SQLite on an event loop."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING
from urllib.parse import quote

from refold.sessions._stores.store_errors import Disconnected

if TYPE_CHECKING:
    from pathlib import Path

    from refold.sessions._stores.protocol import Version

__all__ = ["FileVersions"]

QUERY = "SELECT created, seq FROM sessions WHERE id = ?"


class FileVersions:
    """One connection, which reads one row in some 10 µs: a thread for it would cost 250.

    Nobody waits for a lock here. Readers need none while others write, but for moments such as a recovery.
    """

    def __init__(self, path: Path) -> None:
        self._address = f"file:{quote(str(path.absolute()))}?mode=rw"  # a file that is gone is not made anew
        self._connection: sqlite3.Connection | None = None

    async def version(self, session: str) -> Version | None:
        """Return the version of a session; None without it.

        Raises:
            Disconnected: the file is locked, or cannot be read.
        """
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self._address, timeout=0, uri=True, check_same_thread=False)
            rows = self._connection.execute(QUERY, (session,)).fetchall()  # all, so that the read has an end
        except sqlite3.Error as error:
            self.close()
            raise Disconnected from error
        return rows[0] if rows else None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
