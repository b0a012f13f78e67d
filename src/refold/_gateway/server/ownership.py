"""Whose is what a provider stores: each id belongs to the owner in whose answer it came by, and to nobody else.

Where several owners share one key of a provider, the provider finds what it stores by the key and an id alone. So the
gateway records the ids in answers as they pass, as salted hashes in the store, before the client has the end of the
answer, and refuses an id of another owner in the words of its provider. An id that did not pass here is refused where
the gateway sends its own key, and forwarded where a client sends its own, unless the settings say otherwise.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from contextlib import suppress
from hashlib import blake2b
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from refold._gateway.conversations.store_access import finished
from refold._gateway.server.asgi import GatewayError
from refold._gateway.wire.body import LONGEST_MESSAGE
from refold._gateway.wire.compression import Unreadable, decompressor
from refold._gateway.wire.stored_ids import (
    made_in_answer,
    made_in_event,
    makes_ids,
    may_name,
    named_in_bytes,
    named_in_raws,
    named_in_values,
    not_found,
)
from refold.core._json import mapping
from refold.errors import BadValue, StoreError
from refold.formats._streaming.sse import Decoder, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import Message, Send

    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.conversations.plan_store import PlanStore
    from refold._gateway.settings import GatewaySettings
    from refold._gateway.wire.routes import Dialect
    from refold._gateway.wire.stored_ids import StoredId
    from refold.core._json import Json

__all__ = ["ClaimingSend", "Ownership"]

REMEMBERED = 65_536  # ids whose owner is known without the store
FRESH = 600.0  # seconds after which the store is asked again, where a used id is recorded as used
UNWRITTEN = 100_000  # ids that wait for a store that fails
MOST_NAMED = 10_000  # ids of one request
AT_ONCE = 64 * 1024  # bytes of new messages that are read without leaving the event loop
BACKGROUND = re.compile(rb'"background"\s*:\s*true')  # an answer that may be asked for while it is made
LARGEST = 64 * 1024 * 1024  # bytes of an answer that are read
MARKS = (b'"response"', b'"message"', b'"container"', b'"audio"', b'"choices"')  # of events that may have ids


class Ownership:
    """Checks the ids that requests name, and records those in answers."""

    def __init__(self, settings: GatewaySettings, keeper: PlanStore, salt: bytes) -> None:
        self._settings = settings
        self._keeper = keeper
        self._salt = salt[:64]
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()  # owner, and until when nobody is asked
        self._unwritten: dict[str, str] = {}  # what the store, which decides who was first, has yet to record
        self._writing = asyncio.Lock()  # whoever comes meanwhile waits: their ids may be among those
        self._fresh = min(FRESH, settings.retention / 4) if settings.retention else FRESH

    async def check(self, provider: str, owner: str, ids: Sequence[StoredId], *, passes: bool = False) -> None:
        """Refuse ids of other owners, and ids that nobody is known to own unless these may be used.

        Raises:
            GatewayError: there is one; as its provider answers for an id that does not exist.
        """
        if not ids:
            return
        if len(ids) > MOST_NAMED:
            raise GatewayError(400, f"a request names {MOST_NAMED:,} ids at most: send the rest later", "bad_body")
        keys = [self._key(stored.id) for stored in ids]
        owners = await self._owners(list(dict.fromkeys(keys)), owner)
        passes = passes or self._passes(provider)
        for key, stored in zip(keys, ids, strict=True):
            known = owners.get(key)
            if known != owner and not (known is None and (passes or stored.inline)):
                raise GatewayError(*not_found(stored, provider))

    async def check_conversation(self, dialect: Dialect, conversation: Conversation) -> bool:
        """Check what is new in the newest body of a conversation; tell whether its answer has ids to be recorded.

        Raises:
            GatewayError: see `check`.
        """
        body = conversation.body
        raws, values = conversation.unchecked()
        named = named_in_values(values) if values else []
        if sum(len(memoryview(raw)) for raw in raws) > AT_ONCE:
            named += await finished(asyncio.to_thread(named_in_raws, raws))
        else:
            named += named_in_raws(raws)
        await self.check(dialect.provider, conversation.owner, named)
        conversation.mark_checked(body)
        return makes_ids(dialect.format, body.raw)

    async def check_body(self, dialect: Dialect, owner: str, plain: bytes | None) -> bool:
        """Check a body that belongs to no conversation here; tell whether its answer has ids to be recorded.

        Raises:
            GatewayError: see `check`; or nobody can read it here, so that it might name anything.
        """
        if plain is None:
            message = "this body cannot be decompressed here: send it plain, or with gzip"
            raise GatewayError(415, message, "bad_encoding")
        if len(plain) > AT_ONCE and not await asyncio.to_thread(may_name, plain):
            return True  # it names nothing, and need not be read to know that
        if len(plain) > LONGEST_MESSAGE:
            message = f"a body that names stored content has at most {LONGEST_MESSAGE:,} bytes: shorten it"
            raise GatewayError(413, message, "request_too_large")
        body = await self.check_json(dialect.provider, owner, plain)
        return makes_ids(dialect.format, lambda key: msgspec.json.encode(body[key]) if key in body else None)

    async def check_json(self, provider: str, owner: str, plain: bytes) -> Json:
        """Check a JSON body, and return it.

        Raises:
            GatewayError: see `check`; or it is no JSON object (400), or too much to be read while others wait (413).
        """
        try:
            if len(plain) > AT_ONCE:
                body, named = await finished(asyncio.to_thread(named_in_bytes, plain))
            else:
                body, named = named_in_bytes(plain)
        except BadValue as error:
            raise GatewayError(413, str(error), "request_too_large") from None
        except (ValueError, RecursionError):
            message = "the body is no JSON object with each key once: send one"
            raise GatewayError(400, message, "bad_body") from None
        await self.check(provider, owner, named)
        return body

    async def claim(self, owner: str, ids: Sequence[str], *, write: bool = True) -> None:
        """Record ids as an owner's; without `write` only in memory, until the next ones are written."""
        now = monotonic()
        for key in map(self._key, ids):
            if self._known.get(key, ("", 0.0))[1] < now and len(self._unwritten) < UNWRITTEN:
                self._unwritten.setdefault(key, owner)
        if write and (self._unwritten or self._writing.locked()):
            async with self._writing:
                await self._write()

    async def drop_unused(self, before: float) -> None:
        """Forget ids that were not used since a time of the store's clock.

        Raises:
            StoreError: the store has failed.
        """
        await self._keeper.drop_claims(before)

    async def _owners(self, keys: list[str], owner: str) -> dict[str, str]:
        now = monotonic()
        owners = {key: known[0] for key in keys if (known := self._known.get(key)) is not None and known[1] >= now}
        missing = [key for key in keys if key not in owners]
        if not missing:
            return owners
        unwritten = {key: self._unwritten[key] for key in missing if key in self._unwritten}
        stored: dict[str, str] = {}
        try:
            stored = await self._keeper.owners(missing)
            own = [key for key, other in stored.items() if other == owner]
            if own and self._settings.retention:
                await self._keeper.claim(own, owner)
        except StoreError:
            if len(unwritten) < len(missing):
                message = "the store could not be asked whose an id of this request is: try again"
                raise GatewayError(503, message, "store", [(b"retry-after", b"1")]) from None
        for key, other in stored.items():
            self._remember(key, other)
        return owners | unwritten | stored

    def _remember(self, key: str, owner: str) -> None:
        self._known[key] = owner, monotonic() + self._fresh
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    async def _write(self) -> None:
        by_owner: dict[str, list[str]] = {}
        for key, owner in self._unwritten.items():
            by_owner.setdefault(owner, []).append(key)
        for owner, keys in by_owner.items():
            with suppress(StoreError):  # counted and logged where it was raised; with the next ones it is tried again
                await self._keeper.claim(keys, owner)
                for key, first in (await self._keeper.owners(keys)).items():
                    self._remember(key, first)
                for key in keys:
                    del self._unwritten[key]

    def _passes(self, provider: str) -> bool:
        """Tell whether an id that nobody is known to own may be used."""
        setting = self._settings.unknown_ids
        return setting == "pass" if setting else provider not in self._settings.upstream_keys

    def _key(self, id: str) -> str:
        return blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16, key=self._salt).hexdigest()


class ClaimingSend:
    """Sends an answer on, and records the ids in it before the client has the event or the body in which they are.

    Of a stream that only begins, ids are written with those of its end, since clients use them afterwards; `close`
    writes them where it was broken off. `read` returns the ids of a whole body of no more than `longest` bytes.
    """

    def __init__(
        self, ownership: Ownership, owner: str, send: Send, read: Callable[[Json], list[str]] = made_in_answer,
        longest: int = LARGEST,
    ) -> None:  # fmt: skip
        self._ownership = ownership
        self._owner = owner
        self._send = send
        self._read = read
        self._longest = longest
        self._decompress: Callable[[bytes], bytes] | None = None
        self._events: Decoder | None = None
        self._messages: list[Message] = []  # of a body that is not a stream, until its end
        self._body = bytearray()
        self._begun = False

    async def __call__(self, message: Message) -> None:
        """Send a message of ASGI."""
        if message["type"] == "http.response.start":
            self._start(message)
        elif self._decompress is not None:
            try:
                piece = self._decompress(message.get("body", b""))
            except Unreadable:
                await self._give_up()
            else:
                if self._events is None:
                    await self._collect(message, piece)
                    return
                await self._look(self._events.feed(piece))
                if not message.get("more_body", False):
                    await self._look(self._events.finish())
                    await self.close()
        await self._send(message)

    async def close(self) -> None:
        """Write what was only remembered."""
        await self._ownership.claim(self._owner, ())

    def _start(self, message: Message) -> None:
        headers = {name.lower(): value.decode("latin-1") for name, value in message["headers"]}
        kind = headers.get(b"content-type", "")
        streams = "text/event-stream" in kind
        if 200 <= message["status"] < 300 and (streams or "json" in kind):
            self._decompress = decompressor(headers.get(b"content-encoding", ""))
            self._events = Decoder(LARGEST) if streams else None

    async def _look(self, events: Sequence[Event]) -> None:
        for event in events:
            data = event.data or b""
            ids = made_in_event(data) if any(mark in data for mark in MARKS) else []
            if ids or event.done:
                await self._ownership.claim(self._owner, ids, write=self._begun or BACKGROUND.search(data) is not None)
                self._begun = True

    async def _collect(self, message: Message, piece: bytes) -> None:
        self._messages.append(message)
        self._body += piece
        if len(self._body) > self._longest:
            await self._give_up()
        elif not message.get("more_body", False):
            try:
                answer = mapping(msgspec.json.decode(self._body))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                answer = {}
            await self._ownership.claim(self._owner, self._read(answer))
            await self._give_up()

    async def _give_up(self) -> None:
        """Read no more, and send what has waited."""
        self._decompress = None
        waiting, self._messages = self._messages, []
        for message in waiting:
            await self._send(message)
