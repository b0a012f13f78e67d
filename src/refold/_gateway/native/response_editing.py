"""Changes a response on its way to the client: a compaction before its content, and which edits were applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from refold._gateway.native.answers import ITERATION, opening_events
from refold._gateway.native.items import digest_of
from refold.core._json import Json, encoded, listing, mapping, objects
from refold.formats._streaming.accumulate import response_body
from refold.formats._streaming.sse import Decoder, Event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Message, Send

__all__ = ["AnthropicEdits", "ResponseEditor", "ResponseTap", "ResponsesEdits"]

BEGINNING = frozenset({"response.created", "response.queued", "response.in_progress"})


class AnthropicEdits:
    """Puts a block before the content of a message, and `applied` into it; either may be None."""

    def __init__(self, block: Json | None, applied: list[Json] | None) -> None:
        self._block = block
        self._applied = applied
        self._usage: Json = {}

    def whole(self, body: Json) -> Json:
        """Return a message with both."""
        changed = {**body, **self._managed()}
        if self._block is not None:
            changed["content"] = [self._block, *listing(body.get("content"))]
            changed["usage"] = self._iterated(mapping(body.get("usage")))
        return changed

    def concerns(self, event: Event) -> bool:
        """Tell whether an event may have to be changed."""
        return self._block is not None or b"message_delta" in event.raw

    def event(self, data: Json) -> list[Json]:
        """Return what stands for an event."""
        kind = data.get("type")
        if kind == "message_delta":
            usage = {"usage": self._iterated(mapping(data.get("usage")))} if self._block is not None else {}
            return [{**data, **self._managed(), **usage}]
        if self._block is None:
            return [data]
        if kind == "message_start":
            self._usage = mapping(mapping(data.get("message")).get("usage"))
            return [data, *opening_events(self._block)]
        return [{**data, "index": data["index"] + 1}] if isinstance(data.get("index"), int) else [data]

    def _managed(self) -> Json:
        return {} if self._applied is None else {"context_management": {"applied_edits": self._applied}}

    def _iterated(self, usage: Json) -> Json:
        known = {**self._usage, **{key: value for key, value in usage.items() if value is not None}}
        names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        message = {"type": "message", **{name: known.get(name) or 0 for name in names}}
        return {**usage, "iterations": [ITERATION, *(objects(usage.get("iterations")) or [message])]}


class ResponsesEdits:
    """Puts a compaction item before the output of a response."""

    def __init__(self, item: Json) -> None:
        self._item = item
        self._open = False
        self._shift = 0

    def whole(self, body: Json) -> Json:
        """Return a response with the item."""
        return {**body, "output": [self._item, *listing(body.get("output"))]} if "output" in body else body

    def concerns(self, event: Event) -> bool:
        """Tell whether an event may have to be changed."""
        return True

    def event(self, data: Json) -> list[Json]:
        """Return what stands for an event."""
        events: list[Json] = []
        kind = str(data.get("type"))
        if not self._open and kind.startswith("response.") and kind not in BEGINNING:
            number, self._open, self._shift = data.get("sequence_number"), True, 2
            for name in ("response.output_item.added", "response.output_item.done"):
                event = {"type": name, "output_index": 0, "item": self._item}
                at = {"sequence_number": number + len(events)} if isinstance(number, int) else {}
                events.append({**event, **at})
        changed = dict(data)
        for key, shift in (("sequence_number", self._shift), ("output_index", 1)):
            if isinstance(number := data.get(key), int):
                changed[key] = number + shift
        if self._open and isinstance(body := data.get("response"), dict):
            changed["response"] = self.whole(body)
        return [*events, changed]


class ResponseEditor:
    """Takes the messages of an ASGI response, and sends them on with `edits` made; errors pass as they are.

    `edits` is asked for when the response begins.
    """

    def __init__(self, send: Send, edits: Callable[[], AnthropicEdits | ResponsesEdits | None]) -> None:
        self._send = send
        self._make = edits
        self._edits: AnthropicEdits | ResponsesEdits | None = None
        self._decoder: Decoder | None = None
        self._start: Message = {}
        self._body: list[bytes] = []

    async def __call__(self, message: Message) -> None:
        """Take one message."""
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._edits is None or message["type"] != "http.response.body":
            await self._send(message)
        elif self._decoder is not None:
            events = self._decoder.feed(message.get("body", b""))
            if not (more := message.get("more_body", False)):
                events += self._decoder.finish()
            body = b"".join(map(self._edited, events))
            if body or not more:
                await self._send({**message, "body": body})
        else:
            self._body.append(message.get("body", b""))
            if not message.get("more_body"):
                await self._end(b"".join(self._body))

    async def _begin(self, message: Message) -> None:
        headers = message.get("headers", ())
        named = dict(headers)
        kind, encoding = named.get(b"content-type", b""), named.get(b"content-encoding", b"identity")
        streaming = b"text/event-stream" in kind
        if message["status"] == 200 and (streaming or b"json" in kind) and encoding == b"identity":
            self._edits = self._make()
        if self._edits is None:  # some servers compress although they were asked not to
            await self._send(message)
            return
        kept = [header for header in headers if header[0] != b"content-length"]
        self._start = {**message, "headers": kept}
        if streaming:
            self._decoder = Decoder()
            await self._send(self._start)

    async def _end(self, body: bytes) -> None:
        assert self._edits is not None
        value = _object(body)
        if value is not None:
            body = encoded(self._edits.whole(value))
        length = (b"content-length", b"%d" % len(body))
        await self._send({**self._start, "headers": [*self._start["headers"], length]})
        await self._send({"type": "http.response.body", "body": body})

    def _edited(self, event: Event) -> bytes:
        assert self._edits is not None
        data = event.json() if self._edits.concerns(event) else None
        if data is None:
            return event.raw
        changed = self._edits.event(data)
        return event.raw if changed == [data] else b"".join(map(_event, changed))


class ResponseTap:
    """Sends an ASGI response on as it is, and hands the compaction items in it over at its end."""

    def __init__(self, send: Send, format: str, take: Callable[[list[Json]], Awaitable[None]]) -> None:
        self._send = send
        self._format = format
        self._take = take
        self._decoder: Decoder | None = None
        self._events: list[Json] = []
        self._body: list[bytes] = []
        self._reads = False

    async def __call__(self, message: Message) -> None:
        """Take one message."""
        if message["type"] == "http.response.start":
            kind = dict(message.get("headers", ())).get(b"content-type", b"")
            self._reads = message["status"] == 200
            self._decoder = Decoder() if b"text/event-stream" in kind else None
        elif self._reads and message["type"] == "http.response.body":
            self._read(message.get("body", b""))
            if not message.get("more_body"):
                await self._take(self._items())  # before the client can send them back
        await self._send(message)

    def _read(self, body: bytes) -> None:
        if self._decoder is None:
            self._body.append(body)
            return
        for event in self._decoder.feed(body):
            data = event.json()
            if data is not None and (self._format == "anthropic" or b"compaction" in event.raw):
                self._events.append(data)

    def _items(self) -> list[Json]:
        if self._decoder is None:
            body = _object(b"".join(self._body)) or {}
        elif self._format == "anthropic":
            body = response_body(self._format, self._events)
        else:
            done = [event for event in self._events if event.get("type") == "response.output_item.done"]
            body = {"output": [event.get("item") for event in done]}
        return [item for item in objects(body.get("content") or body.get("output")) if digest_of(item)]


def _object(body: bytes) -> Json | None:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _event(data: Json) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (str(data.get("type", "message")).encode(), encoded(data))
