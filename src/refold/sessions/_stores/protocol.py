"""The store protocol that memory, SQLite and PostgreSQL implement, and its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from msgspec import Struct

from refold.core.messages import MessageId
from refold.core.transcript import ROOT
from refold.sessions._entries import (
    Appended,
    Entry,
    Planned,
    Position,
    Rewound,
    UsageEntry,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refold.core.plan import Plan, PlanId

__all__ = [
    "GATEWAY_IDS",
    "Head",
    "Hit",
    "Loaded",
    "Store",
    "StoredEntry",
    "StoredMessage",
    "Version",
    "Write",
    "Writing",
]

Version: TypeAlias = tuple[float, int]  # when a session was created, and how many entries it has

GATEWAY_IDS = "conv_"  # begins the ids of sessions that a gateway writes; a store may hold others


class StoredMessage(Struct, frozen=True):
    """A message to be stored: its chained id, its JSON text as received, and its text for the search."""

    id: MessageId
    native: str
    words: str = ""


class Head(Struct, frozen=True):
    """The head of a session: what a store returns of it without reading its log.

    `parent` is the session that it continues, `next` the one that continues it; `seq` counts its entries, `messages`
    the messages that are not rewound, `tip` is the newest of them. `revision` is the entry by which plans last changed.
    Times are seconds since 1970. `owner` is who alone may read it through a gateway; sessions of programs have none.
    """

    id: str
    format: str
    parent: str = ""
    next: str = ""
    created: float = 0.0
    touched: float = 0.0
    seq: int = 0
    messages: int = 0
    tip: MessageId = ROOT
    revision: int = 0
    owner: str = ""


class StoredEntry(Struct, frozen=True):
    """One entry of a session's log with its number and time."""

    seq: int
    at: float
    entry: Entry


class Loaded(Struct, frozen=True):
    """The newer part of a session: its head, the entries, and the JSON text of the messages they appended."""

    head: Head
    entries: tuple[StoredEntry, ...]
    natives: Mapping[MessageId, str]


class Hit(Struct, frozen=True):
    """A message that matches a search, and a session that contains it."""

    id: MessageId
    session: str
    native: str


class Write(Struct, frozen=True):
    """One entry to be written; `tip` and `revision` are those the writer expects in the head (None: any)."""

    entry: Entry
    messages: tuple[StoredMessage, ...] = ()
    tip: MessageId | None = None
    revision: int | None = None


class Store(Protocol):
    """Where sessions outlive a process. All methods but `aversion` are synchronous; a write happens completely or not.

    Sessions of different owners share nothing, not even equal messages.

    Raises (all methods):
        SessionNotFound: no session of that id.
        WriteConflict: another process wrote first; load what is new and write again.
        StoreLocked, StoreFull, StoreCorrupt, StoreError: the database failed.
    """

    name: str

    def create(self, session: str, format: str, owner: str = "") -> Head:
        """Create a session of an owner, or return the stored one."""

    def write(self, session: str, writes: Sequence[Write], renew: str = "") -> Head:
        """Write entries together; `renew` is the id of a new session that continues this one."""

    def append(
        self,
        session: str,
        messages: Sequence[StoredMessage],
        expect: MessageId,
        *,
        under: tuple[PlanId, ...] | None = None,
        settings: str = "",
        format: str = "",
    ) -> Head:
        """Append messages after the expected newest message; for the other arguments see `Appended`."""

    def record(self, session: str, plan: Plan, expect: int, renew: str = "") -> Head:
        """Activate a plan, unless plans have changed since the expected revision; newer messages do not matter."""

    def rewind(self, session: str, to: Position, expect: Head, *, forward: bool = False) -> Head:
        """Go to a position, unless the session has moved from the expected head."""

    def report(self, session: str, report: UsageEntry) -> Head:
        """Store a usage report."""

    def load(self, session: str, after: int = 0, upto: int | None = None) -> Loaded:
        """Return the entries after number `after` and up to `upto`, with the messages they appended."""

    def version(self, session: str) -> Version | None:
        """Return when a session was created and how many entries it has, at the least cost; None without it."""

    async def aversion(self, session: str) -> Version | None:
        """Return the same without blocking the event loop."""

    def entries(
        self, session: str, kinds: Sequence[str] = (), after: int = 0, upto: int | None = None
    ) -> tuple[StoredEntry, ...]:
        """Return the entries after number `after` and up to `upto`, of some kinds or all, without any message."""

    def sizes(self, session: str) -> dict[MessageId, int]:
        """Return the characters of the JSON text of each message that a session ever contained."""

    def natives(self, ids: Sequence[MessageId], owner: str = "") -> dict[MessageId, str]:
        """Return the JSON text of those messages that are stored for an owner."""

    def holder(self, ids: Sequence[MessageId], owner: str = "") -> str | None:
        """Return the owner's newest session that contains the last of these messages which any of them contains."""

    def search(
        self, query: str, sessions: Sequence[str] = (), limit: int = 20, owner: str | None = None
    ) -> tuple[Hit, ...]:
        """Return messages that contain all words of a query, newest first; in some sessions, or all (of an owner)."""

    def sessions(self, owner: str | None = None) -> tuple[Head, ...]:
        """Return all sessions, or those of an owner, the last used first."""

    def salt(self) -> bytes:
        """Return 32 random bytes that are this store's own, made when they are first asked for."""

    def delete(self, session: str) -> None:
        """Remove a session and the messages that no other session contains; one that is continued stays."""

    def lease(self, session: str, owner: str, seconds: float) -> None:
        """Take or renew the compaction lease of a session for some seconds, unless another owner has it.

        A lease ends when it is released, when its time is over by the store's clock, when that clock was set back
        behind its beginning, or with its process where that was on this machine.
        """

    def release(self, session: str, owner: str) -> None:
        """Release the lease, if this owner still has it."""

    def leased(self, session: str) -> bool:
        """Tell whether somebody has the compaction lease of a session."""

    def claim(self, keys: Sequence[str], owner: str) -> None:
        """Record for hashes of a provider's ids whose they are, and that they were used; the first owner stays."""

    def owners(self, keys: Sequence[str]) -> dict[str, str]:
        """Return whose those of the hashes are that an owner is recorded for."""

    def drop_claims(self, before: float) -> None:
        """Forget hashes that were not used since a time of the store's clock."""

    def now(self) -> float:
        """Return the store's clock, which all its processes share, in seconds since 1970."""

    def check_write(self) -> None:
        """Prove that a write of a few pages succeeds; nothing of it stays."""

    def close(self) -> None:
        """Close connections; leaving a `with` block does the same."""

    def __enter__(self) -> Self:
        """Return the store."""

    def __exit__(self, *_: object) -> None:
        """Close it."""


class Writing:
    """The four writes of a store, each one entry; and closing it at the end of a `with` block."""

    def close(self) -> None:
        """Close connections."""

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def write(self, session: str, writes: Sequence[Write], renew: str = "") -> Head:
        """Write entries together."""
        raise NotImplementedError

    def append(
        self,
        session: str,
        messages: Sequence[StoredMessage],
        expect: MessageId,
        *,
        under: tuple[PlanId, ...] | None = None,
        settings: str = "",
        format: str = "",
    ) -> Head:
        """Append messages after the message that is expected to be the newest."""
        entry = Appended(tuple(message.id for message in messages), under, settings, format)
        return self.write(session, (Write(entry, tuple(messages), tip=expect),))

    def record(self, session: str, plan: Plan, expect: int, renew: str = "") -> Head:
        """Activate a plan, unless plans have changed since the expected revision."""
        return self.write(session, (Write(Planned.of(plan), revision=expect),), renew)

    def rewind(self, session: str, to: Position, expect: Head, *, forward: bool = False) -> Head:
        """Go to a position, unless the session has moved from the expected head."""
        return self.write(session, (Write(Rewound(to, forward), tip=expect.tip, revision=expect.revision),))

    def report(self, session: str, report: UsageEntry) -> Head:
        """Store a usage report."""
        return self.write(session, (Write(report),))
