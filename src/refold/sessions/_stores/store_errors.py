"""Maps a database's errors to ours, which name the store and the remedy."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from refold.errors import StoreCorrupt, StoreError, StoreFull, StoreLocked
from refold.sessions._stores.head import DAMAGED, corrupt_store

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Disconnected", "map_database_errors"]

# The low byte of SQLite's codes, and the class or code of PostgreSQL's.
_SQLITE: dict[int, type[StoreError]] = {
    5: StoreLocked,  # busy
    6: StoreLocked,  # locked
    11: StoreCorrupt,  # corrupt
    13: StoreFull,  # full
    26: StoreCorrupt,  # not a database
}
_POSTGRES: dict[str, type[StoreError]] = {
    "55P03": StoreLocked,  # lock not available
    "40P01": StoreLocked,  # deadlock
    "40001": StoreLocked,  # serialization failure
    "57014": StoreLocked,  # canceled by a timeout
    "53100": StoreFull,  # disk full
    "53200": StoreFull,  # out of memory
    "54": StoreFull,  # a limit of the program
    "XX001": StoreCorrupt,  # data corrupted
    "XX002": StoreCorrupt,  # index corrupted
}
_REMEDY = {
    StoreLocked: "is locked by another process: try again later, or set a longer timeout",
    StoreFull: "has no space left: make room; everything written before is intact",
    StoreCorrupt: DAMAGED,
    StoreError: "could not be used",
}


class Disconnected(Exception):  # the caller asks over another connection
    """A connection to a database has failed, which says nothing of the database."""


@contextmanager
def map_database_errors(store: str) -> Iterator[None]:
    """Map what the database raises inside to an error that names the store.

    Raises:
        StoreLocked, StoreFull, StoreCorrupt, StoreError: by the code of the database's error.
    """
    try:
        yield
    except DBAPIError as error:
        kind = _kind(error.orig)
        raise kind(f"{store} {_REMEDY[kind]} ({_first_line(error)})") from error
    except PoolTimeout as error:
        raise StoreLocked(f"{store} {_REMEDY[StoreLocked]} (all connections are in use)") from error
    except SQLAlchemyError as error:
        raise StoreError(f"{store} {_REMEDY[StoreError]} ({error})") from error
    except msgspec.MsgspecError as error:
        raise corrupt_store(store, str(error)) from error


def _kind(error: BaseException | None) -> type[StoreError]:
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int):
        return _SQLITE.get(code & 0xFF, StoreError)
    state = getattr(error, "sqlstate", None) or ""
    return _POSTGRES.get(state) or _POSTGRES.get(state[:2]) or StoreError


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().split("\n", 1)[0]
