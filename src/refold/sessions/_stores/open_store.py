"""Opens a store by its place: a file, a database's URL, or memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from refold.errors import StoreError, UsageError
from refold.sessions._stores.memory import MemoryStore

if TYPE_CHECKING:
    from refold.sessions._stores.protocol import Store

__all__ = ["default_path", "open_store", "store_file"]

WAIT = 10.0  # seconds to wait for the write of another process
POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")


def default_path() -> Path:
    """Return where sessions are stored by default: a file in the platform's folder for user data."""
    from platformdirs import user_data_path

    return user_data_path("refold", appauthor=False) / "sessions.db"


def store_file(where: str | Path | None) -> Path | None:
    """Return the file that a place of a store stands for, whether it is there or not; None where it is no file."""
    text = str(where or "")
    if text == "memory" or ("://" in text and not text.startswith("sqlite:///")):
        return None
    return Path(text.removeprefix("sqlite:///")).expanduser() if text else default_path()


def open_store(
    where: str | Path | None = None,
    *,
    timeout: float = WAIT,
    max_sessions: int | None = None,
    read_only: bool = False,
) -> Store:
    """Open a store; create it when it does not exist yet.

    Args:
        where: a path; "memory"; "sqlite:///path"; "postgresql://user@host/database"; by default `default_path()`.
        timeout: seconds to wait for the write of another process.
        max_sessions: how many sessions a store in memory holds; see `MemoryStore`.
        read_only: open a database that exists for reading alone: every write raises StoreError.

    Raises:
        UsageError: the URL is of another kind of database, or cannot be read.
        StoreCorrupt: the file is not a store, or is damaged; it is left as it is.
        StoreTooNew: a later release wrote it.
        StoreLocked, StoreError: it cannot be opened now.

    Added in 0.1.0.
    """
    if where == "memory":
        return MemoryStore(max_sessions=max_sessions)
    from refold.sessions._stores.engines import Postgres, SQLite
    from refold.sessions._stores.sql import SQLStore

    if where is None:
        return SQLStore(SQLite(default_path(), timeout, read_only=read_only))
    if isinstance(where, str) and "://" in where:
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(where)
        except (ArgumentError, ValueError):  # whose words may hold a part of the password
            remedy = "write postgresql://user:password@host:port/database, and @ : / of a password as %40 %3A %2F"
            raise UsageError(f"the address of the store cannot be read: {remedy}") from None
        if url.drivername == "sqlite" and url.database:
            return SQLStore(SQLite(Path(url.database), timeout, read_only=read_only))
        if url.drivername not in POSTGRES:
            raise UsageError(f"no store is opened by {url.drivername}://: give a path, sqlite:///… or postgresql://…")
        try:
            return SQLStore(Postgres(url, timeout, read_only=read_only))
        except ImportError as error:
            raise StoreError(f"PostgreSQL needs the extra: pip install 'refold[postgres]' ({error})") from error
    return SQLStore(SQLite(Path(where).expanduser(), timeout, read_only=read_only))
