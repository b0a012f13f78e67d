"""What the gateway remembers of each conversation, and how a resent history is known again.

A client sends everything it has said with every call. Its newest body is compared with the ones before: first as bytes
from the start, then message by message as bytes, then by what was said (`cache_control` moves from call to call). What
differs earlier than at the end is another conversation that shares a beginning: an edit, a branch, a sub-agent.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from refold._gateway.conversations.conversation import Conversation, differs
from refold._gateway.wire.body import continued, native, opened, repeats
from refold.sessions._stores.protocol import GATEWAY_IDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold._gateway.wire.body import Bytes, ParsedBody
    from refold._gateway.wire.routes import Dialect
    from refold.formats import Format

__all__ = ["ConversationLocked", "ConversationTracker", "OpenedBody", "open_body"]

HEAD = 512  # bytes at the start of a body by which those that may continue it are found
CANDIDATES = 128  # conversations with one beginning that are looked at, the newest first
MUCH = 4 * 1024 * 1024  # bytes of new messages that are not read at once
TAIL = 64  # bytes at the end of a body's messages by which it is looked for in a longer one
FIRST = 8  # leading messages at most that are the opening of a conversation
INSTRUCTIONS = ("system", "developer")
Key: TypeAlias = tuple[str, str, str, bytes]  # format, owner, session, and bytes of a body or an opening


class ConversationLocked(Exception):  # the caller waits for the conversation's lock and looks again
    """The conversation that a body belongs to is at work on an earlier request."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(conversation.id)
        self.conversation = conversation


class OpenedBody(Struct, frozen=True):
    """A body that was opened, and what tells whose it is.

    `opening` is by what a conversation is looked for, `name` what names it, and `lead` how many leading messages are
    instructions.
    """

    body: ParsedBody
    opening: bytes
    name: bytes
    lead: int


def open_body(dialect: Dialect, format: Format, raw: bytes) -> OpenedBody | None:
    """Open a body; None where it has no messages. It looks at nothing else, so a thread can do it.

    All conversations of an application may begin with the same instructions, and those of one may change with the time
    of day: it is looked for by the message after them.

    Raises:
        ValueError: the body is no JSON object.
    """
    body = opened(raw, dialect.messages)
    if body is None or not body.raws:
        return None
    digest, lead, identity = blake2b(digest_size=12), 0, b""
    for each in body.raws[:FIRST]:
        message = native(each)
        identity = blake2b(format.identity(message), digest_size=12).digest()
        digest.update(identity)
        if not (isinstance(message, dict) and message.get("role") in INSTRUCTIONS):
            break
        lead, identity = lead + 1, b""
    return OpenedBody(body, identity, digest.digest(), lead)


class ConversationTracker:
    """The conversations in memory; those not used for longest are forgotten when they hold more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.salt = b""  # the store's own, so that nobody else can tell an id from the words of a conversation
        self.on_forget: Callable[[Conversation], None] = lambda conversation: None
        self._size = 0
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._tracks: dict[str, Conversation] = {}
        self._by_head: dict[Key, dict[str, tuple[int, bytes]]] = {}
        self._by_first: dict[Key, OrderedDict[str, None]] = {}
        self._keys: dict[str, tuple[Key, Key]] = {}

    def __len__(self) -> int:
        return len(self._tracks)

    @property
    def size(self) -> int:
        """Bytes that all conversations hold on to, about."""
        return self._size

    def all(self) -> list[Conversation]:
        """Return all conversations, the last used last."""
        return [self._tracks[id] for id in self._sizes]

    def get(self, id: str) -> Conversation | None:
        """Return a conversation by its id."""
        return self._tracks.get(id)

    def find(
        self,
        dialect: Dialect,
        format: Format,
        session: str,
        raw: bytes,
        owner: str = "",
        opened: OpenedBody | None = None,
    ) -> Conversation | None:
        """Return the owner's conversation that a body belongs to, with the body taken in; None without messages.

        `opened` is what `open_body` returns for the body, where it was opened already.

        Raises:
            ValueError: the body is no JSON object.
            ConversationLocked: the conversation is locked; nothing was taken in.
        """
        head = format.name, owner, session, raw[:HEAD]
        if opened is None and (known := self._continued(head, raw)) is not None:
            self._touch(known)
            return known
        opened = opened or open_body(dialect, format, raw)
        return None if opened is None else self._known(format, owner, session, opened, head)

    def continues(self, format: Format, session: str, raw: bytes, owner: str = "") -> bool:
        """Tell whether a body repeats the newest one of a conversation, so that only a little that is new is read."""
        likely = self._likely((format.name, owner, session, raw[:HEAD]), raw)
        return max((end for end, _ in likely), default=-MUCH) > len(raw) - MUCH

    def _likely(self, head: Key, raw: bytes) -> list[tuple[int, str]]:
        ends = self._by_head.get(head)
        return [(end, id) for id, (end, tail) in ends.items() if raw.endswith(tail, 0, end)] if ends else []

    def _continued(self, head: Key, raw: bytes) -> Conversation | None:
        """Let a body be taken by the conversation of which it repeats most: one whose newest body it begins with."""
        likely = self._likely(head, raw)
        for _, id in sorted(likely, reverse=True) if len(likely) > 1 else likely:
            conversation = self._tracks[id]
            if repeats(conversation.body, raw):
                _free(conversation)
                if (body := continued(conversation.body, raw)) is not None:
                    conversation.receive(body)
                    return conversation
        return None

    def forget(self, id: str, *, deleted: bool = False) -> None:
        """Forget a conversation; with `deleted` for good, so that work under way keeps nothing of it."""
        if id not in self._tracks:
            return
        if deleted:
            self._tracks[id].delete()
        self.on_forget(self._tracks.pop(id))
        self._size -= self._sizes.pop(id)
        by_head, by_first = self._keys.pop(id)
        self._unlisted(id, by_head, by_first)

    def resized(self, conversation: Conversation) -> None:
        """Reckon anew what a conversation holds on to, and forget others where all together is too much."""
        if conversation.id in self._sizes:
            conversation.touch()
            size = conversation.size
            self._size += size - self._sizes[conversation.id]
            self._sizes[conversation.id] = size
        while self._size > self._limit and len(self._sizes) > 1:
            idle = [id for id in self._sizes if not _busy(self._tracks[id]) and id != conversation.id]
            oldest = next((id for id in idle if not self._tracks[id].unsaved), idle[0] if idle else None)
            if oldest is None:
                break
            self.forget(oldest)

    def _known(self, format: Format, owner: str, session: str, opened: OpenedBody, head: Key) -> Conversation:
        body, lead = opened.body, opened.lead
        first = format.name, owner, session, opened.opening
        best: Conversation | None = None
        most, rank = 0, (0, False, False)
        for id in islice(reversed(self._by_first.get(first, ())), CANDIDATES):
            conversation = self._tracks[id]
            known = conversation.body.raws
            if conversation.lead != lead:
                continue
            same = _same(known, body.raws, lead)
            count = _shared(format, known, body.raws, same)
            alike = count > 0 and _shared(format, known[:lead], body.raws, _same(known[:lead], body.raws)) == lead
            if (alike or count > lead + 1) and (count, count == len(known), alike) > rank:
                best, most, rank = conversation, same, (count, count == len(known), alike)
        shared = rank[0]
        if best is not None and shared == len(best.body.raws):
            _free(best)
            best.advance(body, most)
            self._index(best, head, first)
            return best
        id = self._named(f"{owner}\0{session}", opened.name, format, body, shared)
        conversation = (
            Conversation(id, format, session, body, lead, owner) if best is None else best.fork(id, body, shared, most)
        )
        self._index(conversation, head, first)
        return conversation

    def _named(self, whose: str, first: bytes, format: Format, body: ParsedBody, shared: int) -> str:
        """Return an id that follows from owner, session and what was said: opening, and where another branch begins."""
        key = blake2b(whose.encode() + b"\0" + first, digest_size=16, key=self.salt)
        if shared:
            own = _identity(format, body.raws[shared]) if shared < len(body.raws) else b"shorter"
            key.update(b"%d" % shared + own)
        id = f"{GATEWAY_IDS}{key.hexdigest()}"
        while id in self._tracks:  # the same words again, after a history that is no more
            key.update(b"again")
            id = f"{GATEWAY_IDS}{key.hexdigest()}"
        return id

    def _index(self, conversation: Conversation, head: Key, first: Key) -> None:
        if conversation.id in self._tracks:
            self._size -= self._sizes.pop(conversation.id)
            self._unlisted(conversation.id, *self._keys[conversation.id])
        self._tracks[conversation.id] = conversation
        self._keys[conversation.id] = head, first
        self._by_head.setdefault(head, {})[conversation.id] = _end(conversation.body)
        self._by_first.setdefault(first, OrderedDict())[conversation.id] = None
        self._sizes[conversation.id] = 0
        self.resized(conversation)

    def _unlisted(self, id: str, head: Key, first: Key) -> None:
        for index, key in ((self._by_head, head), (self._by_first, first)):
            del index[key][id]
            if not index[key]:
                del index[key]

    def _touch(self, conversation: Conversation) -> None:
        head, first = self._keys[conversation.id]
        self._by_head[head][conversation.id] = _end(conversation.body)
        self._by_first[first].move_to_end(conversation.id)
        self._sizes.move_to_end(conversation.id)


def _free(conversation: Conversation) -> None:
    if conversation.lock.locked():
        raise ConversationLocked(conversation)


def _busy(conversation: Conversation) -> bool:
    return conversation.lock.locked() or conversation.compacting


def _same(known: list[Bytes], fresh: list[Bytes], start: int = 0) -> int:
    """Return how many leading messages are the same bytes; those before the start are passed over."""
    stop = min(len(known), len(fresh))
    return next((place for place in range(start, stop) if differs(known[place], fresh[place])), stop)


def _shared(format: Format, known: list[Bytes], fresh: list[Bytes], same: int) -> int:
    """Return how many leading messages say the same."""
    for place in range(same, min(len(known), len(fresh))):
        if _identity(format, known[place]) != _identity(format, fresh[place]):
            return place
    return min(len(known), len(fresh))


def _end(body: ParsedBody) -> tuple[int, bytes]:
    """Return where the messages of a body end, and their last bytes."""
    return body.end, body.body[max(body.end - TAIL, 0) : body.end]


def _identity(format: Format, raw: Bytes) -> bytes:
    return blake2b(format.identity(native(raw)), digest_size=12).digest()
