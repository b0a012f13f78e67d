"""The differences between SQLite and PostgreSQL: connecting, waiting, and full-text search."""

from __future__ import annotations

import os
import stat
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    event,
    text,
)

from refold._text.urls import without_query_secrets
from refold.errors import StoreCorrupt, StoreError, StoreLocked
from refold.sessions._stores.file_versions import FileVersions
from refold.sessions._stores.search_terms import pieces, terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from refold.sessions._stores.protocol import Version

__all__ = ["Database", "Postgres", "SQLite"]

LOCK = 7_733_653  # advisory lock of one store; shared by writers, exclusive for a delete or an upgrade
HEADER = b"SQLite format 3\0"


class Versions(Protocol):
    """Asks for versions of sessions on an event loop."""

    async def version(self, session: str) -> Version | None:
        """Return the version of a session; None without it.

        Raises:
            Disconnected: the connection failed; the caller asks over another one.
        """

    def close(self) -> None:
        """Close the connection."""


class Database(Protocol):
    """A database of one kind."""

    name: str
    engine: Engine
    reading: Engine  # the same connections; all that one transaction reads is of one moment
    single: Engine  # the same connections, for one statement: no transaction is begun and ended around it
    versions: Versions  # a connection of its own for an event loop
    read_only: bool

    def turn(self) -> AbstractContextManager[None]:
        """Wait for the other threads of this process where the database has one writer at a time."""

    def hold(self, connection: Connection, *, alone: bool) -> None:
        """Exclude deletes and upgrades until the transaction ends; `alone` excludes all writers."""

    def index(self, connection: Connection, words: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Add the words of messages, by their numbers, to the search index."""

    def forget(self, connection: Connection, numbers: Sequence[int]) -> None:
        """Remove messages from the search index."""

    def erase(self) -> None:
        """Overwrite what was deleted outside of the tables, as far as the database allows it."""

    def now(self, connection: Connection) -> float:
        """Return the time that all processes of this database share, in seconds since 1970."""

    def matching(self, query: str) -> tuple[str, dict[str, str]]:
        """Return SQL for the numbers of the messages that contain all words of a query, with its parameters."""

    def search_tables(self) -> tuple[str, ...]:
        """Return the statements that create the search index."""


class SQLite:
    """A file of one user: readable by its owner only, journal ahead of the file, every commit on the disk.

    With `read_only` the file must exist, and neither its content nor its permissions change.
    """

    def __init__(self, path: Path, timeout: float, *, read_only: bool = False) -> None:
        self.name = f"the store {path}"
        self.read_only = read_only
        self._timeout = timeout
        self._writing = Lock()
        self._written = 0  # transactions of this process
        url = URL.create("sqlite", database=str(path))
        if read_only:
            url = _read_only_url(path, self.name)
        else:
            _private(path, self.name)
        self.engine = create_engine(url, connect_args={"timeout": timeout}, pool_timeout=max(timeout, 0.1))

        self.reading: Engine = self.engine
        self.single: Engine = self.engine
        self.versions: Versions = FileVersions(path)

        @event.listens_for(self.engine, "connect")
        def connected(native: Any, _: Any) -> None:
            native.isolation_level = None  # we begin transactions, not the driver
            native.execute(f"PRAGMA busy_timeout={int(timeout * 1000)}")
            if read_only:
                return
            if native.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                native.execute("PRAGMA journal_mode=WAL")
            # FULL: a stored message survives a power cut; a turn takes seconds, this milliseconds
            native.execute("PRAGMA synchronous=FULL")
            native.execute("PRAGMA foreign_keys=ON")
            native.execute("PRAGMA secure_delete=ON")  # overwrite what is deleted; not every build does so by default

        @event.listens_for(self.engine, "begin")
        def begun(connection: Connection) -> None:
            writing = connection.get_execution_options().get("writing")
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the other threads of this process, for as long as they get on.

        SQLite lets writers try again and again, and under load one of many would find the file locked each time.

        Raises:
            StoreLocked: no other thread has finished within the timeout.
        """
        written = -1
        while not self._writing.acquire(timeout=self._timeout):
            if written == self._written:
                raise StoreLocked(f"{self.name} is locked by another process: try again")
            written = self._written
        try:
            yield
            self._written += 1
        finally:
            self._writing.release()

    def hold(self, connection: Connection, *, alone: bool) -> None:
        """Do nothing: SQLite has one writer at a time."""

    def index(self, connection: Connection, words: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Add the words of messages, by their numbers, to the search index."""
        rows = [{"number": number, "words": " ".join(each)} for number, each in words]
        connection.execute(text("INSERT INTO words (rowid, said) VALUES (:number, :words)"), rows)

    def forget(self, connection: Connection, numbers: Sequence[int]) -> None:
        """Remove messages from the search index."""
        connection.execute(text("DELETE FROM words WHERE rowid = :number"), [{"number": number} for number in numbers])
        connection.execute(text("INSERT INTO words (words) VALUES ('optimize')"))  # else their words stay in the index

    def erase(self) -> None:
        """Empty the journal, unless it is being read."""
        native = self.engine.raw_connection()  # outside of a transaction, in which a journal cannot be emptied
        try:
            native.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            native.close()

    def now(self, connection: Connection) -> float:
        """Return the time of this machine: only its processes have the file."""
        return time.time()

    def matching(self, query: str) -> tuple[str, dict[str, str]]:
        """Return SQL for the numbers of the messages that contain all words of a query, with its parameters."""
        match = " AND ".join(f'"{" ".join(run)}"' for run in terms(query))
        return "SELECT rowid AS number FROM words WHERE words MATCH :match", {"match": match}

    def search_tables(self) -> tuple[str, ...]:
        """Return the statements that create the search index."""
        return ("CREATE VIRTUAL TABLE words USING fts5(said, tokenize='unicode61 remove_diacritics 0')",)


class Postgres:
    """A server's database, in a schema of its own."""

    def __init__(self, url: URL, timeout: float, *, read_only: bool = False) -> None:
        self.read_only = read_only
        self.name = f"the store {without_query_secrets(url.render_as_string(hide_password=True))}"
        wait = max(1, int(timeout * 1000))  # 0 would mean for ever
        options = f"-c search_path=refold -c lock_timeout={wait}"
        if read_only:
            options = f"{options} -c default_transaction_read_only=on"
        from_url = url.query.get("options")
        if isinstance(from_url, str):
            options = f"{from_url} {options}"
        query = {key: value for key, value in url.query.items() if key != "options"}
        arguments = {
            "options": options,
            "connect_timeout": max(2, round(timeout)),
            # a server that is gone without a word is noticed before the system gives up after minutes
            "tcp_user_timeout": max(2_000, wait),
        }
        self.engine = create_engine(
            url.set(drivername="postgresql+psycopg", query=query),
            connect_args=arguments,
            pool_timeout=max(timeout, 0.1),
            pool_pre_ping=True,  # a server may have been restarted since
        )
        self.reading: Engine = self.engine.execution_options(isolation_level="REPEATABLE READ")
        self.single: Engine = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        from refold.sessions._stores.async_versions import AsyncVersions  # it needs the driver, which is an extra

        address = self.engine.dialect.create_connect_args(self.engine.url)[1]
        self.versions: Versions = AsyncVersions({**address, **arguments}, self.name, max(timeout, 0.1))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Do nothing: the server takes many writers."""
        yield

    def hold(self, connection: Connection, *, alone: bool) -> None:
        """Exclude deletes and upgrades until the transaction ends; `alone` excludes all writers."""
        kind = "" if alone else "_shared"
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock{kind}({LOCK})")

    def index(self, connection: Connection, words: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Add the words of messages, by their numbers, to the search index; all at once, since each way takes time.

        Another connection that has stored the same messages in the meantime has added the same words.
        """
        rows = [
            {"number": number, "piece": place, "words": " ".join(f"{word}:{at}" for at, word in enumerate(run, 1))}
            for number, each in words
            for place, run in enumerate(pieces(each))
        ]
        if rows:
            statement = "INSERT INTO words (number, piece, words) VALUES (:number, :piece, CAST(:words AS tsvector))"
            connection.execute(text(f"{statement} ON CONFLICT DO NOTHING"), rows)

    def forget(self, connection: Connection, numbers: Sequence[int]) -> None:
        """Remove messages from the search index."""
        connection.execute(text("DELETE FROM words WHERE number = ANY(:numbers)"), {"numbers": list(numbers)})

    def erase(self) -> None:
        """Do nothing: the server's vacuum does."""

    def now(self, connection: Connection) -> float:
        """Return the time of the server, not of the machines that it serves."""
        now: float = connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())::float8").scalar_one()
        return now

    def matching(self, query: str) -> tuple[str, dict[str, str]]:
        """Return SQL for the numbers of the messages that contain all words of a query, with its parameters."""
        phrases = {f"phrase{place}": " <-> ".join(run) for place, run in enumerate(terms(query))}
        matches = ("SELECT number FROM words WHERE words @@ CAST(:" + name + " AS tsquery)" for name in phrases)  # noqa: S608 - our names
        return " INTERSECT ".join(matches), phrases

    def search_tables(self) -> tuple[str, ...]:
        """Return the statements that create the search index; a long message has several rows."""
        return (
            "CREATE TABLE words (number BIGINT NOT NULL REFERENCES messages (number) ON DELETE CASCADE, "
            "piece INTEGER NOT NULL, words TSVECTOR NOT NULL, PRIMARY KEY (number, piece))",
            "CREATE INDEX words_words ON words USING gin (words)",
        )


def _read_only_url(path: Path, name: str) -> URL:
    """Return the URL that opens a file for reading alone.

    Raises:
        StoreError: there is no such file.
        StoreCorrupt: it is something else than a database of SQLite.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(len(HEADER))
    except OSError as error:
        raise StoreError(f"{name} cannot be read ({error.strerror}): name one that you may read") from error
    if head != HEADER:
        raise StoreCorrupt(f"{name} is not a database: name another file")
    query = {"mode": "ro", "uri": "true"}
    # A journal needs a folder that can be written; where there is neither, nobody else writes either.
    if not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists():
        query["immutable"] = "1"
    return URL.create("sqlite", database=f"file:{quote(str(path.absolute()))}", query=query)


def _private(path: Path, name: str) -> None:
    """Make the file, or take an existing one, and let nobody but its owner read it.

    Raises:
        StoreCorrupt: it is something else than a database of SQLite.
        StoreError: it cannot be made or read.
    """
    try:
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            mode = os.fstat(number).st_mode
            regular = stat.S_ISREG(mode)  # a device, as /dev/null, stays everybody's
            if regular and stat.S_IMODE(mode) & 0o077:
                os.fchmod(number, 0o600)
            head = os.read(number, len(HEADER)) if regular else b""
        finally:
            os.close(number)
    except OSError as error:
        raise StoreError(f"{name} cannot be opened ({error.strerror}): name a file that you may write") from error
    if not regular or (head and head != HEADER):
        raise StoreCorrupt(f"{name} is not a database and was left as it is: restore a copy, or name another file")
