"""Puts the originals back into a request in place of the compaction items that stand for them."""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from refold import formats
from refold._gateway.native.items import MARK, RecordedItem, Reference, digest_of, long_form
from refold._gateway.native.wishes import ITEMS, TRIGGER
from refold._gateway.server.asgi import GatewayError
from refold._gateway.wire.body import native
from refold.core._json import Json, listing, mapping, objects, string
from refold.core.messages import Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from refold.errors import RefoldError, SessionNotFound, StoreError
from refold.formats._base import arguments_of, arguments_text, content_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._gateway.conversations.plan_store import PlanStore
    from refold._gateway.conversations.tracker import ConversationTracker
    from refold._gateway.native.items import Sealer
    from refold._gateway.wire.body import Bytes
    from refold.core.messages import Part

__all__ = ["Expanded", "Expansion"]

WORD = b"compaction"
MOST = 16  # histories from the store that are remembered
MOST_ITEMS = 10_000  # items of providers that are remembered, and items that are known to be of nobody
LONGEST_NAME = 64  # characters of the id of a call and of the name of a tool: OpenAI takes no more
OTHER_SIGNS = re.compile(r"[^a-zA-Z0-9_-]")  # that Anthropic does not take in them
HEADING = "This is what the conversation so far held; it was compacted:\n\n"


class Expanded(Struct, frozen=True):
    """The messages of a request with originals in place of items, and the plans in force when these were made."""

    raws: list[Bytes]
    plans: frozenset[str] = frozenset()


class Expansion:
    """Finds the histories behind items; `salt` of the tracker must be set."""

    def __init__(self, tracker: ConversationTracker, keeper: PlanStore, sealer: Sealer) -> None:
        self._tracks = tracker
        self._keeper = keeper
        self._sealer = sealer
        self._histories: OrderedDict[tuple[str, int, str, str], list[Bytes]] = OrderedDict()
        self._items: OrderedDict[tuple[str, str], RecordedItem | None] = OrderedDict()

    def record(self, item: RecordedItem) -> None:
        """Remember the history behind an item of a provider."""
        self._remember((item.reference.owner, item.digest), item)

    def forget(self, session: str) -> None:
        """Forget what is remembered of a session of the store that was deleted."""
        for key in [key for key in self._histories if key[0] == session]:
            del self._histories[key]

    async def expand(self, raws: list[Bytes], format: str, owner: str, *, upstream: str, foreign: bool) -> Expanded:
        """Return messages with the originals in place of the newest item whose history is known, and of all before it.

        Items that the `upstream` made itself stay. With `foreign` it knows no items: a block of a provider whose words
        can be read becomes a user's message with these words, as does one of ours whose history is no longer kept.
        Where a provider has compacted several times, the history behind an item begins with the item before it. A
        history in the format of another provider is converted.

        Raises:
            GatewayError: an item of ours was sealed elsewhere or altered, and holds no words (400).
        """
        plans: frozenset[str] = frozenset()
        while True:
            expanded = await self._newest(raws, format, owner, upstream, foreign)
            plans |= expanded.plans
            if expanded.raws is raws:
                return Expanded(raws, plans)
            raws = expanded.raws

    async def _newest(self, raws: list[Bytes], format: str, owner: str, upstream: str, foreign: bool) -> Expanded:
        """Return messages with what is behind the newest item; the very same where nothing is known to be."""
        for place in range(len(raws) - 1, -1, -1):
            if WORD not in bytes(raws[place]):
                continue
            message = native(raws[place])
            items = [message] if format == "openai-responses" else objects(mapping(message).get("content"))
            item = next((each for each in reversed(items) if string(mapping(each), "type") in ITEMS), None)
            if item is None or not digest_of(item):
                continue
            reference = await self._reference(item, format, owner, upstream)
            ours = string(item, "encrypted_content").startswith(MARK)
            if reference is None and not ((foreign or ours) and string(item, "content")):
                return Expanded(raws)
            history = None if reference is None else await self._history(reference, format)
            rest = _behind(message, item, format)
            after = [*([msgspec.json.encode(rest)] if rest is not None else []), *raws[place + 1 :]]
            if history is None:
                words = (reference.words if reference is not None else "") or string(item, "content")
                if not words:  # an opaque item of a provider, which may know what to do with it
                    return Expanded(raws)
                return Expanded([_user_message(words, format), *after])
            assert reference is not None
            added = _added(raws[:place], history, format) if format == "openai-responses" else []
            return Expanded([*history, *added, *after], frozenset(reference.plans))
        return Expanded(raws)

    async def _reference(self, item: Json, format: str, owner: str, upstream: str) -> Reference | None:
        """Return the history an item of ours, or one that was recorded for another upstream, stands for."""
        sealed = string(item, "encrypted_content")
        if sealed.startswith(MARK):
            reference = self._sealer.opened(sealed, owner)
            if reference is None and not string(item, "content"):
                message = (
                    "this compaction item was sealed by a gateway with another store or key, or it was altered: send "
                    "the messages that it stands for"
                )
                raise GatewayError(400, message, "invalid_encrypted_content")
            return reference
        recorded = await self._recorded(digest_of(item), owner)
        return recorded.reference if recorded is not None and recorded.upstream != upstream else None

    async def _recorded(self, digest: str, owner: str) -> RecordedItem | None:
        key = owner, digest
        if key not in self._items:
            try:
                item = await self._keeper.recorded_item(digest, owner)
            except StoreError:  # counted and logged where it was raised; the next request asks again
                return None
            self._remember(key, item)
        return self._items[key]

    async def _history(self, reference: Reference, format: str) -> list[Bytes] | None:
        """Return the messages that a reference names, from memory or the store; None where they are no more.

        The store is asked each time: another process may have deleted the conversation.
        The item by which the client asked for the compaction is left out: the history ends before it.
        """
        key = reference.session, reference.count, reference.tip, format
        if reference.session and await self._is_deleted(reference):
            self._histories.pop(key, None)
            return None
        raws = self._in_memory(reference, format) or self._histories.get(key)
        if raws is None:
            try:
                raws = await self._stored(reference, format)
            except RefoldError:
                return None
            if raws is None:
                return None
            self._histories[key] = raws
            if len(self._histories) > MOST:
                self._histories.popitem(last=False)
        return [_unmarked(raw) for raw in raws if not _is_trigger(raw)]

    async def _is_deleted(self, reference: Reference) -> bool:
        try:
            await self._keeper.head(reference.session, reference.owner)
        except SessionNotFound:
            return True
        except StoreError:  # counted and logged where it was raised; nothing is deleted while the store fails
            pass
        return False

    def _in_memory(self, reference: Reference, format: str) -> list[Bytes] | None:
        conversation = self._tracks.get(reference.conversation)
        if conversation is None or conversation.owner != reference.owner or conversation.format.name != format:
            return None
        messages = conversation.transcript.messages
        if len(messages) < reference.count or messages[reference.count - 1].id != reference.tip:
            return None
        return conversation.body.raws[: reference.count]

    async def _stored(self, reference: Reference, format: str) -> list[Bytes] | None:
        stored = (await self._keeper.head(reference.session, reference.owner)).format
        body = b"[" + await self._keeper.messages(reference.session) + b"]"
        natives = json.loads(body)[: reference.count]
        read = formats.read(formats.find(stored), natives)
        if len(read) < reference.count or read.tip != reference.tip:
            return None
        if stored != format:
            return _converted(read.messages, format)
        return [json.dumps(each).encode() for each in natives]

    def _remember(self, key: tuple[str, str], item: RecordedItem | None) -> None:
        self._items[key] = item
        self._items.move_to_end(key)
        if len(self._items) > MOST_ITEMS:
            self._items.popitem(last=False)


def _converted(messages: Sequence[Message], format: str) -> list[Bytes]:
    """Return messages as those of another format: words, calls and results; of media and server tools what they say.

    Reasoning and other items that only their provider can read are left out, and instructions, which each request has.
    """
    moved = [
        Message(message.id, message.role, parts)
        for message in messages
        if message.role != "system"
        for parts in _moved_parts(message)
        if parts
    ]
    return [json.dumps(each).encode() for each in formats.assemble(formats.find(format), moved)]


def _moved_parts(message: Message) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Return results apart from what a user says to them, which some formats would write before them."""
    parts = [part for each in message.parts if (part := _movable(each)) is not None]
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    return results, tuple(part for part in parts if not isinstance(part, ToolResult))


def _movable(part: Part) -> Part | None:
    """Return a part as another provider can read it; None where only its own can, and of text without words."""
    match part:
        case ToolCall(server=True):
            return Text(f"[{part.name} {part.arguments}]")
        case ToolResult(server=True):
            return Text(content_text(part.content))
        case ToolCall():
            arguments = arguments_text(arguments_of(part.arguments))
            return ToolCall(_portable(part.call_id), _portable(part.name), arguments)
        case ToolResult():
            content = (Text(content_text(part.content)),)
            return ToolResult(_portable(part.call_id), content, _portable(part.name), part.is_error)
        case Opaque(text=words) | Text(text=words):
            return Text(words) if words.strip() else None
        case Reasoning():
            return None
        case _:
            return Text(content_text([part]))


def _portable(name: str) -> str:
    """Return an id of a call or a name of a tool as all providers take it; two that differ stay apart."""
    if len(name) <= LONGEST_NAME and not OTHER_SIGNS.search(name):
        return name
    mark = f"_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return OTHER_SIGNS.sub("_", name)[: LONGEST_NAME - len(mark)] + mark


def _behind(message: Any, item: Json, format: str) -> Any:
    """Return what follows an item in its message; None where nothing does."""
    if format == "openai-responses":
        return None
    content = listing(message.get("content"))
    rest = content[next(at for at, each in enumerate(content) if each is item) + 1 :]
    return {**message, "content": rest} if rest else None


def _added(before: list[Bytes], history: list[Bytes], format: str) -> list[Bytes]:
    """Return what stands before an item and is not in its history: clients put newer instructions there."""
    shape = formats.find(format)
    known = {_identity(shape, raw) for raw in history}
    return [raw for raw in before if WORD not in bytes(raw) and _identity(shape, raw) not in known]


def _identity(shape: formats.Format, raw: Bytes) -> bytes:
    """Return what identifies a message in whichever form it is: the answer to a compaction holds the long one."""
    value = native(raw)
    return shape.identity(long_form(value) if string(mapping(value), "role") else value)


def _user_message(words: str, format: str) -> bytes:
    kind = "input_text" if format == "openai-responses" else "text"
    message: Json = {"role": "user", "content": [{"type": kind, "text": HEADING + words}]}
    return msgspec.json.encode({"type": "message", **message} if format == "openai-responses" else message)


def _is_trigger(raw: Bytes) -> bool:
    return TRIGGER.encode() in bytes(raw) and string(mapping(native(raw)), "type") == TRIGGER


def _unmarked(raw: Bytes) -> Bytes:
    """Return a message without marks for the cache: a request has four at most, and the client sets its own."""
    if b'"cache_control"' not in bytes(raw):
        return raw
    value = native(raw)
    return json.dumps(_without_marks(value)).encode()


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(each) for key, each in value.items() if key != "cache_control"}
    return [_without_marks(each) for each in value] if isinstance(value, list) else value
