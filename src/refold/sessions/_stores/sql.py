"""A store in a database, SQLite or PostgreSQL, by SQLAlchemy's expression language."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Connection,
    delete,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from refold.core.transcript import ROOT
from refold.errors import WriteConflict
from refold.sessions._entries import (
    Entry,
    Renewed,
    SessionOpened,
    body_of,
    entry_of,
    kind_of,
)
from refold.sessions._leases import check_lease
from refold.sessions._stores import schema
from refold.sessions._stores.head import check_deletable, next_head, session_not_found, successor
from refold.sessions._stores.migrate import upgrade
from refold.sessions._stores.protocol import (
    Head,
    Hit,
    Loaded,
    StoredEntry,
    Write,
    Writing,
)
from refold.sessions._stores.search_terms import terms, words_of
from refold.sessions._stores.store_errors import told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Table

    from refold.core.messages import MessageId
    from refold.sessions._stores.engines import Database

__all__ = ["SQLStore"]

AT_ONCE = 500  # parameters of one statement; SQLite allows 32,766, older builds 999
_HEAD = schema.sessions.columns


class SQLStore(Writing):
    """Sessions in a database; opening it brings it to the shape of this release.

    Every write is one transaction, so a kill at any point leaves the last committed state. Safe for threads and
    processes.

    Raises:
        StoreTooNew, StoreCorrupt, StoreLocked, StoreError: it cannot be opened as a store.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.name = database.name
        self._database = database
        self._clock = clock
        try:
            upgrade(database)
        except BaseException:
            self.close()
            raise

    def create(self, session: str, format: str) -> Head:
        """Begin a session, or return the one there is."""
        now = self._clock()
        with self._transaction() as connection:
            begun = Head(session, format, created=now, touched=now, seq=1)
            if self._begun(connection, begun):
                self._enter(connection, session, 1, now, SessionOpened(format))
            return self._head(connection, session)

    def write(self, session: str, writes: Sequence[Write], renew: str = "") -> Head:
        """Write entries together; `renew` begins the session of that id, which continues this one."""
        now = self._clock()
        with self._transaction() as connection:
            head = self._head(connection, session, locked=True)
            for write in writes:
                before, head = head, next_head(head, write, now)
                self._enter(connection, session, head.seq, now, write.entry)
                self._keep(connection, before, head, write)
            child = self._renewed(connection, head, renew, now) if renew else None
            head = next_head(head, Write(Renewed(renew)), now) if renew else head
            connection.execute(update(schema.sessions).where(_HEAD.id == session).values(**_row(head)))
            return child or head

    def load(self, session: str, after: int = 0, upto: int | None = None) -> Loaded:
        """Return the entries after one number and up to another, with the messages they brought."""
        logs, held, kept = schema.entries.columns, schema.held.columns, schema.messages.columns
        last = 2**31 - 1 if upto is None else upto
        with self._transaction(writing=False) as connection:
            head = self._head(connection, session)
            if head.seq <= after:
                return Loaded(head, (), {})
            rows = connection.execute(
                select(logs.seq, logs.at, logs.body)
                .where(logs.session == session, logs.seq > after, logs.seq <= last)
                .order_by(logs.seq)
            )
            found = tuple(StoredEntry(seq, at, entry_of(body)) for seq, at, body in rows)
            natives = connection.execute(
                select(kept.id, kept.native)
                .join(schema.held, held.message == kept.id)
                .where(held.session == session, held.seq > after, held.seq <= last)
            )
            return Loaded(head, found, dict(natives.all()))

    def natives(self, ids: Sequence[MessageId]) -> dict[MessageId, str]:
        """Return the JSON text of those messages that the store holds."""
        kept = schema.messages.columns
        found: dict[MessageId, str] = {}
        with self._transaction(writing=False) as connection:
            for start in range(0, len(ids), AT_ONCE):
                some = ids[start : start + AT_ONCE]
                rows = connection.execute(select(kept.id, kept.native).where(kept.id.in_(some)))
                found |= dict(rows.all())
        return {id: found[id] for id in ids if id in found}

    def holder(self, ids: Sequence[MessageId]) -> str | None:
        """Return the session, the newest of several, that holds the last of these messages that any session holds."""
        held = schema.held.columns
        with self._transaction(writing=False) as connection:
            for stop in range(len(ids), 0, -AT_ONCE):
                some = ids[max(0, stop - AT_ONCE) : stop]
                place = {id: number for number, id in enumerate(some)}
                rows = connection.execute(
                    select(held.message, _HEAD.created, held.session)
                    .join(schema.sessions, _HEAD.id == held.session)
                    .where(held.message.in_(some))
                ).all()
                if rows:
                    best: str = max(rows, key=lambda row: (place[row[0]], row[1]))[2]
                    return best
        return None

    def search(self, query: str, sessions: Sequence[str] = (), limit: int = 20) -> tuple[Hit, ...]:
        """Return messages that hold all words of a query, newest first; in the given sessions, or in all."""
        if not terms(query):
            return ()
        kept, held = schema.messages.columns, schema.held.columns
        matching, asked = self._database.matching(query)
        numbers = text(matching).columns(schema.messages.c.number).subquery("found")
        found = (
            select(kept.id, func.max(held.session), kept.native)
            .join(schema.held, held.message == kept.id)
            .where(kept.number.in_(select(numbers.c.number)))
            .group_by(kept.number, kept.id, kept.native)
            .order_by(kept.number.desc())
            .limit(limit)
        )
        if sessions:
            found = found.where(held.session.in_(list(sessions)))
        with self._transaction(writing=False) as connection:
            return tuple(Hit(*row) for row in connection.execute(found, asked))

    def sessions(self) -> tuple[Head, ...]:
        """Return all sessions, the last used first."""
        with self._transaction(writing=False) as connection:
            rows = connection.execute(select(schema.sessions).order_by(_HEAD.touched.desc(), _HEAD.id))
            return tuple(Head(**row._mapping) for row in rows)

    def delete(self, session: str) -> None:
        """Remove a session and the messages that no other session holds; one that is continued stays.

        In a file nothing of them is left, nor of the summaries made of them; a server's space is its vacuum's to clear.
        """
        kept, held = schema.messages.columns, schema.held.columns
        others = schema.held.alias()
        shared = select(others.c.message).where(others.c.message == held.message, others.c.session != session)
        with self._transaction(alone=True) as connection:
            head = self._head(connection, session, locked=True)
            check_deletable(head)
            numbers = connection.execute(
                select(kept.number)
                .join(schema.held, held.message == kept.id)
                .where(held.session == session, ~shared.exists())
            ).scalars().all()  # fmt: skip
            connection.execute(update(schema.sessions).where(_HEAD.id == head.parent).values(next=""))
            connection.execute(delete(schema.sessions).where(_HEAD.id == session))
            if numbers:
                self._database.forget(connection, numbers)
            for start in range(0, len(numbers), AT_ONCE):
                some = numbers[start : start + AT_ONCE]
                connection.execute(delete(schema.messages).where(kept.number.in_(some)))
        with told(self.name):
            self._database.erase()

    def lease(self, session: str, owner: str, seconds: float) -> None:
        """Reserve the compaction of a session; a holder that is out of time or no longer runs loses it."""
        table, now = schema.leases, self._clock()
        with self._transaction() as connection:
            self._head(connection, session, locked=True)
            row = connection.execute(select(table.c.owner, table.c.until).where(table.c.session == session)).first()
            check_lease(session, owner, row[0] if row else "", row[1] if row else 0.0, now)
            connection.execute(delete(table).where(table.c.session == session))
            connection.execute(insert(table).values(session=session, owner=owner, until=now + seconds))

    def release(self, session: str, owner: str) -> None:
        """Give the reservation back, if it is still held."""
        table = schema.leases
        with self._transaction() as connection:
            connection.execute(delete(table).where(table.c.session == session, table.c.owner == owner))

    def close(self) -> None:
        """Give connections back."""
        self._database.engine.dispose()

    @contextmanager
    def _transaction(self, *, writing: bool = True, alone: bool = False) -> Iterator[Connection]:
        engine = self._database.engine if writing else self._database.reading
        with told(self.name), engine.connect() as plain:
            connection = plain.execution_options(writing=writing)
            with connection.begin():
                if writing:
                    self._database.hold(connection, alone=alone)
                yield connection

    def _head(self, connection: Connection, session: str, *, locked: bool = False) -> Head:
        found = select(schema.sessions).where(_HEAD.id == session)
        row = connection.execute(found.with_for_update() if locked else found).first()
        if row is None:
            raise session_not_found(session, self.name)
        return Head(**row._mapping)

    def _begun(self, connection: Connection, head: Head) -> bool:
        """Insert the row of a session; tell whether it was not there yet."""
        made = _inserting(connection, schema.sessions).on_conflict_do_nothing().returning(_HEAD.id)
        return connection.execute(made, _row(head)).first() is not None

    def _enter(self, connection: Connection, session: str, seq: int, at: float, entry: Entry) -> None:
        connection.execute(
            insert(schema.entries).values(session=session, seq=seq, at=at, kind=kind_of(entry), body=body_of(entry))
        )

    def _keep(self, connection: Connection, before: Head, head: Head, write: Write) -> None:
        parent = before.tip or ROOT
        rows, held = [], []
        for message in write.messages:
            rows.append({"id": message.id, "parent": parent, "native": message.native})
            held.append({"session": head.id, "message": message.id, "seq": head.seq})
            parent = message.id
        for start in range(0, len(rows), AT_ONCE):
            self._keep_some(connection, rows[start : start + AT_ONCE], write.messages[start : start + AT_ONCE])
            connection.execute(
                _inserting(connection, schema.held).on_conflict_do_nothing(), held[start : start + AT_ONCE]
            )

    def _keep_some(self, connection: Connection, rows: list[dict[str, Any]], messages: Sequence[Any]) -> None:
        kept = schema.messages.columns
        ids = [row["id"] for row in rows]
        numbered = select(kept.id, kept.number).where(kept.id.in_(ids))
        there = {id for id, _ in connection.execute(numbered)}
        fresh = [row for row in rows if row["id"] not in there]
        if not fresh:
            return
        connection.execute(_inserting(connection, schema.messages).on_conflict_do_nothing(), fresh)
        numbers = dict(connection.execute(numbered).all())
        for message in messages:
            if message.id not in there:
                self._database.index(connection, numbers[message.id], words_of(message.words))

    def _renewed(self, connection: Connection, head: Head, renew: str, now: float) -> Head:
        child, opened = successor(head, renew, now)
        if not self._begun(connection, child):
            raise WriteConflict(f"there is a session {renew} in {self.name} already: choose another id")
        self._enter(connection, renew, 1, now, opened)
        self._enter(connection, head.id, head.seq + 1, now, Renewed(renew))
        return child


def _inserting(connection: Connection, table: Table) -> Any:
    return (postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert)(table)


def _row(head: Head) -> dict[str, Any]:
    return {name: getattr(head, name) for name in head.__struct_fields__}
