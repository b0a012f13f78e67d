"""What the gateway remembers of each conversation, and how a resent history is known again.

A client sends everything it has said with every call. Its newest body is compared with the ones before: first as bytes
from the start, then message by message as bytes, then by what was said (`cache_control` moves from call to call). What
differs earlier than at the end is another conversation that shares a beginning: an edit, a branch, a sub-agent.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from hashlib import blake2b
from itertools import islice
from time import time
from typing import TYPE_CHECKING

from msgspec import Struct

from refold.core.transcript import Transcript
from refold.gateway.body import continued, native, opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.core.budget import Usage
    from refold.core.counting import Counter
    from refold.core.messages import Message, MessageId
    from refold.core.plan import Plan
    from refold.formats import Format
    from refold.gateway.body import Bytes, Opened
    from refold.gateway.dialects import Dialect

__all__ = ["Busy", "Fixed", "Reported", "Track", "Tracks", "Written", "within"]

HEAD = 512  # bytes at the start of a body by which those that may continue it are found
CANDIDATES = 128  # conversations with one beginning that are looked at, the newest first


class Busy(Exception):  # the caller waits for the track's lock and looks again
    """The conversation that a body belongs to is at work on an earlier request."""

    def __init__(self, track: Track) -> None:
        super().__init__(track.id)
        self.track = track


class Fixed(Struct, frozen=True):
    """What stands beside the messages: system prompt and tools, and their tokens."""

    system: object = None
    tools: object = None
    tokens: int = 0


class Reported(Struct, frozen=True):
    """A usage report: how many messages of the client were in that request, and under which plans it was sent."""

    usage: Usage
    count: int
    size: int  # bytes of the messages in the request
    plans: tuple[str, ...] = ()


class Written(Struct, frozen=True):
    """A view as bytes: what stands for the first `count` messages of the client.

    More of the client's messages can follow as they are where it is `open`; else the border must be written again.
    """

    count: int
    body: bytes
    open: bool
    plans: tuple[str, ...]


class Track:
    """One conversation: the newest body, and what was read, counted and planned of it.

    `natives`, messages and estimates are there for the first messages alone, until somebody needs to know; far below
    the trigger nobody does.
    """

    def __init__(self, id: str, format: Format, session: str, body: Opened) -> None:
        self.id = id
        self.format = format
        self.session = session
        self.body = body
        self.transcript = Transcript()
        self.view: tuple[Message, ...] = ()
        self.estimated = 0
        self.estimates: dict[MessageId, int] = {}
        self.plans: tuple[Plan, ...] = ()
        self.written: Written | None = None
        self.reported: Reported | None = None
        self.counter: Counter | None = None  # who made the estimates
        self.beside: tuple[Bytes | None, Bytes | None, Counter, Fixed] | None = None
        self.resting = 0  # tokens below which no further compaction is tried
        self.shadow: Plan | None = None  # what a gateway that only reports would have done
        self.full = False  # the last answer showed that the window was full
        self.sent = 0  # leading messages that were in an earlier request
        self.searched = 0  # bytes of the body that were searched for what is not text
        self.costly = 0  # how many messages there were when some was found
        self.used = 0.0  # when the last request was done, in seconds since 1970
        self.deleted = False  # nothing more of it is kept
        self.followed = False  # the store was asked what it knows
        self.stored = ""  # the session of the store that holds it
        self.lock = asyncio.Lock()
        self.work: asyncio.Task[Plan] | None = None

    @property
    def size(self) -> int:
        """Bytes that this conversation holds on to, about: bodies, what was read of them, plans, and what is kept."""
        body = len(self.body.body)
        read = body * len(self.transcript) // max(len(self.body.raws), 1)
        written = len(self.written.body) if self.written is not None else 0
        return 2_000 + 2 * body + 6 * read + written + sum(500 * len(plan.edits) for plan in self.plans)

    def advance(self, body: Opened, same: int) -> None:
        """Take a newer body, of which so many leading messages are the same bytes."""
        if same < len(self.body.raws):
            self.searched = self.costly = 0
            self.sent = min(self.sent, same)
        self.searched = min(self.searched, self.body.end)
        self.body = body
        if same < len(self.transcript):
            self.transcript = Transcript(self.transcript.messages[:same])
            self.view = ()
        if self.written is not None and same < self.written.count:
            self.written = None

    def fork(self, id: str, body: Opened, shared: int, same: int) -> Track:
        """Return another conversation that begins with so many messages of this one."""
        made = Track(id, self.format, self.session, body)
        made.transcript = Transcript(self.transcript.messages[: min(same, len(self.transcript))])
        made.estimates, made.counter = dict(self.estimates), self.counter
        made.plans = within(self.plans, shared)
        return made


def within(plans: tuple[Plan, ...], count: int) -> tuple[Plan, ...]:
    """Return the leading plans that were made for no more than so many messages."""
    fitting = enumerate(plans)
    stop = next((place for place, plan in fitting if not 0 < plan.base.length <= count), len(plans))
    return plans[:stop]


class Tracks:
    """The conversations in memory; those not used for longest are forgotten when they hold more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.on_forget: Callable[[Track], None] = lambda track: None
        self._held = 0
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._tracks: dict[str, Track] = {}
        self._by_head: dict[tuple[str, str, bytes], OrderedDict[str, None]] = {}
        self._by_first: dict[tuple[str, str, bytes], OrderedDict[str, None]] = {}
        self._keys: dict[str, tuple[tuple[str, str, bytes], tuple[str, str, bytes]]] = {}

    def __len__(self) -> int:
        return len(self._tracks)

    @property
    def held(self) -> int:
        """Bytes that all conversations hold on to, about."""
        return self._held

    def all(self) -> list[Track]:
        """Return all conversations, the last used last."""
        return [self._tracks[id] for id in self._sizes]

    def get(self, id: str) -> Track | None:
        """Return a conversation by its id."""
        return self._tracks.get(id)

    def find(self, dialect: Dialect, format: Format, session: str, raw: bytes) -> Track | None:
        """Return the conversation that a body belongs to, with the body taken in; None where it has no messages.

        Raises:
            ValueError: the body is no JSON object.
            Busy: the conversation is locked; nothing was taken in.
        """
        head = format.name, session, raw[:HEAD]
        if (found := self._continued(head, raw)) is not None:
            known, body = found
            _free(known)
            known.advance(body, len(known.body.raws))
            self._touch(known)
            return known
        fresh = opened(raw, dialect.messages)
        if fresh is None or not fresh.raws:
            return None
        return self._known(format, session, fresh, head)

    def _continued(self, head: tuple[str, str, bytes], raw: bytes) -> tuple[Track, Opened] | None:
        """Return the conversation of which a body repeats most: one whose newest body it begins with, whole."""
        ids = self._by_head.get(head)
        if ids is None:
            return None
        known = [self._tracks[id] for id in islice(reversed(ids), CANDIDATES)]
        if len(known) > 1:
            known.sort(key=lambda track: -track.body.end)
        for track in known:
            if (body := continued(track.body, raw)) is not None:
                return track, body
        return None

    def forget(self, id: str, *, deleted: bool = False) -> None:
        """Forget a conversation; with `deleted` for good, so that work under way keeps nothing of it."""
        if id not in self._tracks:
            return
        self._tracks[id].deleted = deleted
        self.on_forget(self._tracks.pop(id))
        self._held -= self._sizes.pop(id)
        by_head, by_first = self._keys.pop(id)
        for index, key in ((self._by_head, by_head), (self._by_first, by_first)):
            ids = index[key]
            del ids[id]
            if not ids:
                del index[key]

    def resized(self, track: Track) -> None:
        """Reckon anew what a conversation holds on to, and forget others where all together is too much."""
        if track.id in self._sizes:
            track.used = time()
            size = track.size
            self._held += size - self._sizes[track.id]
            self._sizes[track.id] = size
        while self._held > self._limit and len(self._sizes) > 1:
            oldest = next((id for id in self._sizes if not _busy(self._tracks[id]) and id != track.id), None)
            if oldest is None:
                break
            self.forget(oldest)

    def _known(self, format: Format, session: str, body: Opened, head: tuple[str, str, bytes]) -> Track:
        first = format.name, session, _identity(format, body.raws[0])
        best: Track | None = None
        most = shared = 0
        for id in islice(reversed(self._by_first.get(first, ())), CANDIDATES):
            track = self._tracks[id]
            same = _same(track.body.raws, body.raws)
            count = _shared(format, track.body.raws, body.raws, same)
            if best is None or (count, count == len(track.body.raws)) > (shared, shared == len(best.body.raws)):
                best, most, shared = track, same, count
        if best is not None and shared == len(best.body.raws):
            _free(best)
            best.advance(body, most)
            self._index(best, head, first)
            return best
        id = self._named(session, first[2], format, body, shared)
        made = Track(id, format, session, body) if best is None else best.fork(id, body, shared, most)
        self._index(made, head, first)
        return made

    def _named(self, session: str, first: bytes, format: Format, body: Opened, shared: int) -> str:
        """Return an id that follows from what was said: the first message, and where another branch begins."""
        key = blake2b(session.encode() + b"\0" + first, digest_size=9)
        if shared:
            own = _identity(format, body.raws[shared]) if shared < len(body.raws) else b"shorter"
            key.update(b"%d" % shared + own)
        id = f"conv_{key.hexdigest()}"
        while id in self._tracks:  # the same words again, after a history that is no more
            key.update(b"again")
            id = f"conv_{key.hexdigest()}"
        return id

    def _index(self, track: Track, head: tuple[str, str, bytes], first: tuple[str, str, bytes]) -> None:
        if track.id in self._tracks:
            self._held -= self._sizes.pop(track.id)
            for index, key in zip((self._by_head, self._by_first), self._keys[track.id], strict=True):
                del index[key][track.id]
                if not index[key]:
                    del index[key]
        self._tracks[track.id] = track
        self._keys[track.id] = head, first
        self._by_head.setdefault(head, OrderedDict())[track.id] = None
        self._by_first.setdefault(first, OrderedDict())[track.id] = None
        self._sizes[track.id] = 0
        self.resized(track)

    def _touch(self, track: Track) -> None:
        head, first = self._keys[track.id]
        self._by_head[head].move_to_end(track.id)
        self._by_first[first].move_to_end(track.id)
        self._sizes.move_to_end(track.id)


def _free(track: Track) -> None:
    if track.lock.locked():
        raise Busy(track)


def _busy(track: Track) -> bool:
    return track.lock.locked() or (track.work is not None and not track.work.done())


def _same(known: list[Bytes], fresh: list[Bytes]) -> int:
    """Return how many leading messages are the same bytes."""
    pairs = enumerate(zip(known, fresh, strict=False))
    return next((place for place, (old, new) in pairs if old is not new and bytes(old) != bytes(new)),
                min(len(known), len(fresh)))  # fmt: skip


def _shared(format: Format, known: list[Bytes], fresh: list[Bytes], same: int) -> int:
    """Return how many leading messages say the same."""
    for place in range(same, min(len(known), len(fresh))):
        if _identity(format, known[place]) != _identity(format, fresh[place]):
            return place
    return min(len(known), len(fresh))


def _identity(format: Format, raw: Bytes) -> bytes:
    return blake2b(format.identity(native(raw)), digest_size=12).digest()
