"""A store in a database, SQLite or PostgreSQL, by SQLAlchemy's expression language."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext, suppress
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

from refold.core.messages import MessageId
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
from refold.sessions._stores.store_errors import Disconnected, map_database_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Table

    from refold.sessions._stores.engines import Database
    from refold.sessions._stores.protocol import StoredMessage, Version

__all__ = ["SQLStore"]

AT_ONCE = 500  # parameters of one statement; SQLite allows 32,766, older builds 999
CHECKED = 16 * 1024  # bytes that prove that a write succeeds
_HEAD = schema.sessions.columns
_VERSION = text("SELECT created, seq FROM sessions WHERE id = :session")  # as text, which nothing compiles again


class SQLStore(Writing):
    """Sessions in a database; opening it migrates it to the schema of this release.

    Every write is one transaction, so a kill at any point leaves the last committed state. Safe for threads and
    processes. `clock` returns the time in seconds since 1970; by default it is that of the database.

    Raises:
        StoreTooNew, StoreCorrupt, StoreLocked, StoreError: it cannot be opened as a store.
    """

    def __init__(self, database: Database, clock: Callable[[], float] | None = None) -> None:
        self.name = database.name
        self._database = database
        self._clock = clock
        try:
            upgrade(database)
        except BaseException:
            self.close()
            raise

    def create(self, session: str, format: str, owner: str = "") -> Head:
        """Create a session of an owner, or return the stored one."""
        with self._transaction() as connection:
            now = self._now(connection)
            begun = Head(session, format, created=now, touched=now, seq=1, owner=owner)
            if self._insert_session(connection, begun):
                self._insert_entry(connection, session, 1, now, SessionOpened(format))
            return self._head(connection, session)

    def write(self, session: str, writes: Sequence[Write], renew: str = "") -> Head:
        """Write entries together; `renew` begins the session of that id, which continues this one."""
        with self._transaction() as connection:
            head, now = self._head(connection, session, locked=True), self._now(connection)
            for write in writes:
                before, head = head, next_head(head, write, now)
                self._insert_entry(connection, session, head.seq, now, write.entry)
                self._insert_message_pages(connection, before, head, write)
            child = self._create_successor(connection, head, renew, now) if renew else None
            head = next_head(head, Write(Renewed(renew)), now) if renew else head
            connection.execute(update(schema.sessions).where(_HEAD.id == session).values(**_row(head)))
            return child or head

    def load(self, session: str, after: int = 0, upto: int | None = None) -> Loaded:
        """Return the entries after number `after` and up to `upto`, with the messages they appended."""
        logs, links, messages = schema.entries.columns, schema.session_messages.columns, schema.messages.columns
        last = 2**31 - 1 if upto is None else upto
        if after:  # mostly nothing is new, which one statement tells
            with self._transaction(writing=False, single=True) as connection:
                head = self._head(connection, session)
            if head.seq <= after:
                return Loaded(head, (), {})
        with self._transaction(writing=False) as connection:
            head = self._head(connection, session)
            if head.seq <= after:
                return Loaded(head, (), {})
            rows = connection.execute(
                select(logs.seq, logs.at, logs.body)
                .where(logs.session == session, logs.seq > after, logs.seq <= last)
                .order_by(logs.seq)
            )
            entries = tuple(StoredEntry(seq, at, entry_of(body)) for seq, at, body in rows)
            natives = connection.execute(
                select(messages.id, messages.native)
                .join(schema.session_messages, links.message == messages.id)
                .where(links.session == session, links.seq > after, links.seq <= last)
            )
            return Loaded(head, entries, {_id(key): native for key, native in natives})

    def version(self, session: str) -> Version | None:
        """Return when a session was created and how many entries it has, by one statement; None without it."""
        with map_database_errors(self.name), self._database.single.connect() as connection:
            row = connection.execute(_VERSION, {"session": session}).first()
        return None if row is None else (row[0], row[1])

    async def aversion(self, session: str) -> Version | None:
        """Return the same as `version` without blocking the event loop."""
        import asyncio  # slow to import, and many programs need none of it

        with suppress(Disconnected):
            return await self._database.versions.version(session)
        return await asyncio.to_thread(self.version, session)

    def entries(
        self, session: str, kinds: Sequence[str] = (), after: int = 0, upto: int | None = None
    ) -> tuple[StoredEntry, ...]:
        """Return the entries after number `after` and up to `upto`, of some kinds or all, without any message."""
        logs = schema.entries.columns
        query = select(logs.seq, logs.at, logs.body).where(logs.session == session, logs.seq > after)
        if upto is not None:
            query = query.where(logs.seq <= upto)
        if kinds:
            query = query.where(logs.kind.in_(list(kinds)))
        with self._transaction(writing=False) as connection:
            rows = connection.execute(query.order_by(logs.seq)).all()
            if not rows:
                self._head(connection, session)
        with map_database_errors(self.name):  # an entry may be damaged
            return tuple(StoredEntry(seq, at, entry_of(body)) for seq, at, body in rows)

    def sizes(self, session: str) -> dict[MessageId, int]:
        """Return the characters of the JSON text of each message that a session ever contained."""
        messages, links = schema.messages.columns, schema.session_messages.columns
        query = (
            select(messages.id, func.length(messages.native))
            .join(schema.session_messages, links.message == messages.id)
            .where(links.session == session)
        )
        with self._transaction(writing=False) as connection:
            rows = connection.execute(query).all()
            if not rows:
                self._head(connection, session)
        return {_id(key): size for key, size in rows}

    def natives(self, ids: Sequence[MessageId], owner: str = "") -> dict[MessageId, str]:
        """Return the JSON text of those messages that are stored for an owner."""
        messages = schema.messages.columns
        texts: dict[MessageId, str] = {}
        with self._transaction(writing=False) as connection:
            for start in range(0, len(ids), AT_ONCE):
                some = [_key(id, owner) for id in ids[start : start + AT_ONCE]]
                rows = connection.execute(select(messages.id, messages.native).where(messages.id.in_(some)))
                texts |= {_id(key): native for key, native in rows}
        return {id: texts[id] for id in ids if id in texts}

    def holder(self, ids: Sequence[MessageId], owner: str = "") -> str | None:
        """Return the owner's newest session that contains the last of these messages which any of them contains."""
        links = schema.session_messages.columns
        with self._transaction(writing=False) as connection:
            for stop in range(len(ids), 0, -AT_ONCE):
                some = [_key(id, owner) for id in ids[max(0, stop - AT_ONCE) : stop]]
                place = {key: number for number, key in enumerate(some)}
                rows = connection.execute(
                    select(links.message, _HEAD.created, links.session)
                    .join(schema.sessions, _HEAD.id == links.session)
                    .where(links.message.in_(some), _HEAD.owner == owner)
                ).all()
                if rows:
                    best: str = max(rows, key=lambda row: (place[row[0]], row[1]))[2]
                    return best
        return None

    def search(
        self, query: str, sessions: Sequence[str] = (), limit: int = 20, owner: str | None = None
    ) -> tuple[Hit, ...]:
        """Return messages that contain all words of a query, newest first; in some sessions, or all (of an owner)."""
        if not terms(query):
            return ()
        messages, links = schema.messages.columns, schema.session_messages.columns
        condition, parameters = self._database.matching(query)
        # joined, not looked up in a list: SQLite went through the list again for each message of the session
        numbers = select(text(condition).columns(schema.messages.c.number).subquery().c.number).distinct().subquery()
        hits = (
            select(messages.id, func.max(links.session), messages.native)
            .join(schema.session_messages, links.message == messages.id)
            .join(numbers, numbers.c.number == messages.number)
            .group_by(messages.number, messages.id, messages.native)
            .order_by(messages.number.desc())
            .limit(limit)
        )
        if sessions:
            hits = hits.where(links.session.in_(list(sessions)))
        if owner is not None:
            hits = hits.join(schema.sessions, _HEAD.id == links.session).where(_HEAD.owner == owner)
        with self._transaction(writing=False) as connection:
            return tuple(Hit(_id(key), *rest) for key, *rest in connection.execute(hits, parameters))

    def sessions(self, owner: str | None = None) -> tuple[Head, ...]:
        """Return all sessions, or those of an owner, the last used first."""
        query = select(schema.sessions).order_by(_HEAD.touched.desc(), _HEAD.id)
        with self._transaction(writing=False) as connection:
            rows = connection.execute(query if owner is None else query.where(_HEAD.owner == owner))
            return tuple(Head(**row._mapping) for row in rows)

    def salt(self) -> bytes:
        """Return 32 random bytes that are this store's own, made when they are first asked for."""
        table = schema.properties
        query = select(table.c.value).where(table.c.name == "salt")
        with self._transaction(writing=False) as connection:
            salt: str | None = connection.execute(query).scalar()
        if salt is None:
            with self._transaction() as connection:
                fresh = {"name": "salt", "value": os.urandom(32).hex()}
                connection.execute(_inserting(connection, table).on_conflict_do_nothing(), fresh)
                salt = connection.execute(query).scalar_one()
        return bytes.fromhex(salt)

    def delete(self, session: str) -> None:
        """Remove a session and the messages that no other session contains; one that is continued stays.

        In a file nothing of them is left, nor of their summaries; on a server, its vacuum clears the space.
        """
        messages, links = schema.messages.columns, schema.session_messages.columns
        others = schema.session_messages.alias()
        shared = select(others.c.message).where(others.c.message == links.message, others.c.session != session)
        with self._transaction(alone=True) as connection:
            head = self._head(connection, session, locked=True)
            check_deletable(head)
            numbers = connection.execute(
                select(messages.number)
                .join(schema.session_messages, links.message == messages.id)
                .where(links.session == session, ~shared.exists())
            ).scalars().all()  # fmt: skip
            connection.execute(update(schema.sessions).where(_HEAD.id == head.parent).values(next=""))
            connection.execute(delete(schema.sessions).where(_HEAD.id == session))
            if numbers:
                self._database.forget(connection, numbers)
            for start in range(0, len(numbers), AT_ONCE):
                some = numbers[start : start + AT_ONCE]
                connection.execute(delete(schema.messages).where(messages.number.in_(some)))
        with map_database_errors(self.name):
            self._database.erase()

    def lease(self, session: str, owner: str, seconds: float) -> None:
        """Take or renew the compaction lease of a session; see `Store.lease`."""
        table = schema.leases
        columns = table.c.owner, table.c.taken, table.c.until
        with self._transaction() as connection:
            self._head(connection, session, locked=True)
            now = self._now(connection)
            row = connection.execute(select(*columns).where(table.c.session == session)).first()
            current, taken, until = ("", 0.0, 0.0) if row is None else row
            check_lease(session, owner, current, taken, until, now)
            connection.execute(delete(table).where(table.c.session == session))
            connection.execute(insert(table).values(session=session, owner=owner, taken=now, until=now + seconds))

    def release(self, session: str, owner: str) -> None:
        """Release the lease, if this owner still has it."""
        table = schema.leases
        with self._transaction() as connection:
            connection.execute(delete(table).where(table.c.session == session, table.c.owner == owner))

    def leased(self, session: str) -> bool:
        """Tell whether somebody has the compaction lease of a session."""
        table = schema.leases
        with self._transaction(writing=False) as connection:
            until = connection.execute(select(table.c.until).where(table.c.session == session)).scalar()
            return until is not None and until > self._now(connection)

    def claim(self, keys: Sequence[str], owner: str) -> None:
        """Record for hashes of a provider's ids whose they are, and that they were used; the first owner stays."""
        table = schema.provider_ids
        with self._transaction() as connection:
            now = self._now(connection)
            insertion = _inserting(connection, table)
            statement = insertion.on_conflict_do_update(
                index_elements=[table.c.key], set_={"used": now}, where=table.c.owner == owner
            )
            rows = [{"key": key, "owner": owner, "used": now} for key in sorted(keys)]  # in one order: no deadlock
            for start in range(0, len(rows), AT_ONCE):
                connection.execute(statement, rows[start : start + AT_ONCE])

    def owners(self, keys: Sequence[str]) -> dict[str, str]:
        """Return whose those of the hashes are that an owner is recorded for."""
        table, owners = schema.provider_ids, dict[str, str]()
        with map_database_errors(self.name), self._database.single.connect() as connection:
            for start in range(0, len(keys), AT_ONCE):
                some = keys[start : start + AT_ONCE]
                owners |= dict(
                    connection.execute(select(table.c.key, table.c.owner).where(table.c.key.in_(some))).all()
                )
        return owners

    def drop_claims(self, before: float) -> None:
        """Forget hashes that were not used since a time of the store's clock."""
        with self._transaction() as connection:
            connection.execute(delete(schema.provider_ids).where(schema.provider_ids.c.used < before))

    def now(self) -> float:
        """Return the store's clock, which all its processes share, in seconds since 1970."""
        with self._transaction(writing=False) as connection:
            return self._now(connection)

    def check_write(self) -> None:
        """Prove that a write of a few pages succeeds; nothing of it stays."""
        messages, id = schema.messages, f"check:{os.urandom(8).hex()}"
        with self._transaction() as connection:  # of new pages, which a full disk has not; chance cannot be compressed
            connection.execute(insert(messages).values(id=id, parent="", native=os.urandom(CHECKED // 2).hex()))
            connection.execute(delete(messages).where(messages.c.id == id))

    def close(self) -> None:
        """Close connections."""
        self._database.engine.dispose()
        self._database.versions.close()

    def _now(self, connection: Connection) -> float:
        return self._database.now(connection) if self._clock is None else self._clock()

    @contextmanager
    def _transaction(self, *, writing: bool = True, alone: bool = False, single: bool = False) -> Iterator[Connection]:
        database = self._database
        engine = database.engine if writing else database.single if single else database.reading
        turn = database.turn() if writing else nullcontext()
        with turn, map_database_errors(self.name), engine.connect() as plain:
            connection = plain.execution_options(writing=writing)
            with connection.begin():
                if writing:
                    self._database.hold(connection, alone=alone)
                yield connection

    def _head(self, connection: Connection, session: str, *, locked: bool = False) -> Head:
        query = select(schema.sessions).where(_HEAD.id == session)
        row = connection.execute(query.with_for_update() if locked else query).first()
        if row is None:
            raise session_not_found(session, self.name)
        return Head(**row._mapping)

    def _insert_session(self, connection: Connection, head: Head) -> bool:
        """Insert the row of a session; tell whether it was new."""
        statement = _inserting(connection, schema.sessions).on_conflict_do_nothing().returning(_HEAD.id)
        return connection.execute(statement, _row(head)).first() is not None

    def _insert_entry(self, connection: Connection, session: str, seq: int, at: float, entry: Entry) -> None:
        connection.execute(
            insert(schema.entries).values(session=session, seq=seq, at=at, kind=kind_of(entry), body=body_of(entry))
        )

    def _insert_message_pages(self, connection: Connection, before: Head, head: Head, write: Write) -> None:
        parent: str = before.tip or ROOT
        rows, links = [], []
        for message in write.messages:
            key = _key(message.id, head.owner)
            rows.append({"id": key, "parent": parent, "native": message.native})
            links.append({"session": head.id, "message": key, "seq": head.seq})
            parent = key
        for start in range(0, len(rows), AT_ONCE):
            self._insert_messages(connection, rows[start : start + AT_ONCE], write.messages[start : start + AT_ONCE])
            connection.execute(
                _inserting(connection, schema.session_messages).on_conflict_do_nothing(), links[start : start + AT_ONCE]
            )

    def _insert_messages(
        self, connection: Connection, rows: list[dict[str, Any]], stored: Sequence[StoredMessage]
    ) -> None:
        messages = schema.messages.columns
        ids = [row["id"] for row in rows]
        numbered = select(messages.id, messages.number).where(messages.id.in_(ids))
        there = {id for id, _ in connection.execute(numbered)}
        fresh = [row for row in rows if row["id"] not in there]
        if not fresh:
            return
        connection.execute(_inserting(connection, schema.messages).on_conflict_do_nothing(), fresh)
        numbers = dict(connection.execute(numbered).all())
        new = [(numbers[key], message) for key, message in zip(ids, stored, strict=True) if key not in there]
        self._database.index(connection, ((number, words_of(message.words)) for number, message in new))

    def _create_successor(self, connection: Connection, head: Head, renew: str, now: float) -> Head:
        child, opened = successor(head, renew, now)
        if not self._insert_session(connection, child):
            raise WriteConflict(f"there is a session {renew} in {self.name} already: choose another id")
        self._insert_entry(connection, renew, 1, now, opened)
        self._insert_entry(connection, head.id, head.seq + 1, now, Renewed(renew))
        return child


def _key(id: MessageId, owner: str) -> str:
    """Return the key of an owner's message, so that nobody gets the text that another owner stored under its id."""
    return f"{id}@{owner}" if owner else id


def _id(key: str) -> MessageId:
    return MessageId(key.partition("@")[0])


def _inserting(connection: Connection, table: Table) -> Any:
    return (postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert)(table)


def _row(head: Head) -> dict[str, Any]:
    return {name: getattr(head, name) for name in head.__struct_fields__}
