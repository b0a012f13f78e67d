"""A store in memory, for tests and for agents whose sessions end with the process."""

from __future__ import annotations

import os
import time
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold.errors import WriteConflict
from refold.sessions._entries import Appended, Renewed, SessionOpened, kind_of
from refold.sessions._leases import check_lease
from refold.sessions._stores.head import check_deletable, next_head, session_not_found, successor
from refold.sessions._stores.protocol import (
    Head,
    Hit,
    Loaded,
    StoredEntry,
    Version,
    Write,
    Writing,
)
from refold.sessions._stores.search_terms import terms, word_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from refold.core.messages import MessageId

__all__ = ["MemoryStore"]

NO_LEASE = ("", 0.0, 0.0)
AT_ONCE = 10_000  # of them that are forgotten in one call
MOST_CLAIMS = 1_000_000  # hashes of ids, of about 200 bytes each; those not used for longest are forgotten


class MemoryStore(Writing):
    """Sessions in memory; safe for threads. `clock` returns the time, in seconds since 1970.

    With `max_sessions`, a new session beyond that number removes the one that was not used for longest, with those
    that it continues.
    """

    def __init__(self, clock: Callable[[], float] = time.time, *, max_sessions: int | None = None) -> None:
        self.name = "memory"
        self._max_sessions = max_sessions
        self._clock = clock
        self._lock = RLock()
        self._sessions: dict[str, Head] = {}
        self._entries: dict[str, list[StoredEntry]] = {}
        self._session_messages: dict[str, dict[MessageId, None]] = {}
        self._natives: dict[tuple[str, MessageId], str] = {}  # by owner and id
        self._words: dict[tuple[str, MessageId], _Words] = {}
        self._holders: dict[tuple[str, MessageId], dict[str, None]] = {}  # sessions that contain a message
        self._salt = os.urandom(32)
        self._leases: dict[str, tuple[str, float, float]] = {}
        self._claims: dict[str, tuple[str, float]] = {}  # owner and last use, that of long ago first

    def create(self, session: str, format: str, owner: str = "") -> Head:
        """Create a session of an owner, or return the stored one."""
        with self._lock:
            if session not in self._sessions:
                now = self._clock()
                head = Head(session, format, created=now, touched=now, seq=1, owner=owner)
                self._begin(head, SessionOpened(format), now)
                self._remove_oldest(session)
            return self._sessions[session]

    def write(self, session: str, writes: Sequence[Write], renew: str = "") -> Head:
        """Write entries together; `renew` begins the session of that id, which continues this one."""
        with self._lock:
            head, now = self._head(session), self._clock()
            if renew in self._sessions:
                raise WriteConflict(f"there is a session {renew} in {self.name} already: choose another id")
            entries = []
            for write in writes:
                head = next_head(head, write, now)
                entries.append(StoredEntry(head.seq, now, write.entry))
            for write in writes:
                for message in write.messages:
                    key = head.owner, message.id
                    if key not in self._natives:
                        self._natives[key], self._words[key] = message.native, _Words(message.words)
                    self._holders.setdefault(key, {}).setdefault(session)
                    self._session_messages[session].setdefault(message.id)
            if renew:
                child, opened = successor(head, renew, now)
                head = next_head(head, Write(Renewed(renew)), now)
                entries.append(StoredEntry(head.seq, now, Renewed(renew)))
                self._begin(child, opened, now)
            self._entries[session] += entries
            self._sessions[session] = head
            return self._sessions[renew or session]

    def load(self, session: str, after: int = 0, upto: int | None = None) -> Loaded:
        """Return the entries after number `after` and up to `upto`, with the messages they appended."""
        with self._lock:
            head = self._head(session)
            entries = tuple(self._entries[session][after:upto])
            ids = (id for each in entries if isinstance(each.entry, Appended) for id in each.entry.ids)
            return Loaded(head, entries, {id: self._natives[head.owner, id] for id in ids})

    def version(self, session: str) -> Version | None:
        """Return when a session was created and how many entries it has; None without it."""
        head = self._sessions.get(session)
        return None if head is None else (head.created, head.seq)

    async def aversion(self, session: str) -> Version | None:
        """Return the same as `version`."""
        return self.version(session)

    def entries(
        self, session: str, kinds: Sequence[str] = (), after: int = 0, upto: int | None = None
    ) -> tuple[StoredEntry, ...]:
        """Return the entries after number `after` and up to `upto`, of some kinds or all, without any message."""
        with self._lock:
            self._head(session)
            entries = self._entries[session][after:upto]
        return tuple(each for each in entries if not kinds or kind_of(each.entry) in kinds)

    def sizes(self, session: str) -> dict[MessageId, int]:
        """Return the characters of the JSON text of each message that a session ever contained."""
        with self._lock:
            owner = self._head(session).owner
            return {id: len(self._natives[owner, id]) for id in self._session_messages[session]}

    def natives(self, ids: Sequence[MessageId], owner: str = "") -> dict[MessageId, str]:
        """Return the JSON text of those messages that are stored for an owner."""
        with self._lock:
            return {id: self._natives[owner, id] for id in ids if (owner, id) in self._natives}

    def holder(self, ids: Sequence[MessageId], owner: str = "") -> str | None:
        """Return the owner's newest session that contains the last of these messages which any of them contains."""
        with self._lock:
            holders = next((known for id in reversed(ids) if (known := self._holders.get((owner, id)))), {})
            sessions = [self._sessions[session] for session in holders]
            newest = min(sessions, key=lambda head: (-head.created, -head.touched, head.id), default=None)
            return None if newest is None else newest.id

    def search(
        self, query: str, sessions: Sequence[str] = (), limit: int = 20, owner: str | None = None
    ) -> tuple[Hit, ...]:
        """Return messages that contain all words of a query, newest first; in some sessions, or all (of an owner)."""
        phrases = [_line([run]) for run in terms(query)]
        with self._lock:
            where = {
                (head.owner, id): session
                for session in sessions or self._sessions
                if (head := self._sessions.get(session)) is not None and owner in (None, head.owner)
                for id in self._session_messages[session]
            }
            texts = [(key, self._words[key]) for key in reversed(self._natives) if phrases and key in where]
        # without the lock: the words of long messages take a while when they are searched first
        hits = list(islice((key for key, words in texts if words.contain(phrases)), limit))
        with self._lock:
            return tuple(Hit(key[1], where[key], self._natives[key]) for key in hits if key in self._natives)

    def sessions(self, owner: str | None = None) -> tuple[Head, ...]:
        """Return all sessions, or those of an owner, the last used first."""
        with self._lock:
            own = [head for head in self._sessions.values() if owner in (None, head.owner)]
            return tuple(sorted(own, key=lambda head: (-head.touched, head.id)))

    def salt(self) -> bytes:
        """Return 32 random bytes that are this store's own."""
        return self._salt

    def delete(self, session: str) -> None:
        """Remove a session and the messages that no other session contains; one that is continued stays."""
        with self._lock:
            head = self._head(session)
            check_deletable(head)
            if head.parent in self._sessions:
                self._sessions[head.parent] = replace(self._sessions[head.parent], next="")
            ids = self._session_messages.pop(session)
            del self._sessions[session], self._entries[session]
            self._leases.pop(session, None)
            for id in ids:
                key = head.owner, id
                del self._holders[key][session]
                if not self._holders[key]:
                    del self._natives[key], self._words[key], self._holders[key]

    def lease(self, session: str, owner: str, seconds: float) -> None:
        """Take or renew the compaction lease of a session; see `Store.lease`."""
        with self._lock:
            self._head(session)
            now = self._clock()
            check_lease(session, owner, *self._leases.get(session, NO_LEASE), now)
            self._leases[session] = owner, now, now + seconds

    def release(self, session: str, owner: str) -> None:
        """Release the lease, if this owner still has it."""
        with self._lock:
            if self._leases.get(session, NO_LEASE)[0] == owner:
                del self._leases[session]

    def leased(self, session: str) -> bool:
        """Tell whether somebody has the compaction lease of a session."""
        with self._lock:
            return self._leases.get(session, NO_LEASE)[2] > self._clock()

    def claim(self, keys: Sequence[str], owner: str) -> None:
        """Record for hashes of a provider's ids whose they are, and that they were used; the first owner stays."""
        with self._lock:
            now = self._clock()
            for key in keys:
                if (known := self._claims.get(key, (owner, now)))[0] == owner:
                    self._claims.pop(key, None)
                    self._claims[key] = known[0], now
            while len(self._claims) > MOST_CLAIMS:
                del self._claims[next(iter(self._claims))]

    def owners(self, keys: Sequence[str]) -> dict[str, str]:
        """Return whose those of the hashes are that an owner is recorded for."""
        with self._lock:
            return {key: self._claims[key][0] for key in keys if key in self._claims}

    def drop_claims(self, before: float) -> None:
        """Forget hashes that were not used since a time of the clock."""
        with self._lock:
            for key, (_, used) in list(islice(self._claims.items(), AT_ONCE)):
                if used >= before:
                    break
                del self._claims[key]

    def now(self) -> float:
        """Return the clock's time."""
        return self._clock()

    def check_write(self) -> None:
        """Do nothing: memory can be written."""

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _head(self, session: str) -> Head:
        if session not in self._sessions:
            raise session_not_found(session, self.name)
        return self._sessions[session]

    def _remove_oldest(self, newest: str) -> None:
        """Remove whole lines of sessions, the longest unused first, while there are too many."""
        while self._max_sessions is not None and len(self._sessions) > self._max_sessions:
            continued = {head.parent for head in self._sessions.values()}
            last = [head for head in self._sessions.values() if head.id not in {*continued, newest}]
            oldest = min(last, key=lambda head: head.touched, default=None)
            if oldest is None:
                return
            while oldest is not None and not any(head.parent == oldest.id for head in self._sessions.values()):
                parent = oldest.parent
                self.delete(oldest.id)
                oldest = self._sessions.get(parent)

    def _begin(self, head: Head, opened: SessionOpened, now: float) -> None:
        self._sessions[head.id] = head
        self._entries[head.id] = [StoredEntry(1, now, opened)]
        self._session_messages[head.id] = {}


class _Words:
    """The words of a message for a search; most messages are never searched, so they are found with the first one."""

    __slots__ = ("_line", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = ""

    def contain(self, phrases: Sequence[str]) -> bool:
        """Tell whether all phrases, which are lines of words too, are among them."""
        text = self._text  # read first: another search may find the words now
        if not self._line:
            self._line = _line(word_runs(text))
            self._text = ""
        return all(phrase in self._line for phrase in phrases)


def _line(runs: Iterable[Sequence[str]]) -> str:
    """Return words, which are given in runs, as a string in which a phrase is matched by whole words."""
    return "".join([f" {' '.join(words)}" for words in runs]) + " "
