"""The WebSocket mode of the Responses API: each message of a client is a request over HTTP to this same gateway.

Theory of operation. A client that sends `response.create` gets the events of the answer as messages, as it would get
them from `POST /v1/responses` with `stream`. It is served as that request is: compaction, recall and limits are the
same, and the provider need not know WebSockets.

A connection remembers the history of its newest response: what was sent and what was answered. A client that goes on
with `previous_response_id` sends new items alone, and the request that is served holds all of them, so the gateway
sees and compacts a history that nobody stores. If a request that goes on fails, the history is forgotten, as it is
where there is no memory for it: the client learns that the response is not found, and sends the whole history.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
from msgspec import Raw, Struct

from refold._gateway.native.answers import local_response, response_events
from refold._gateway.server.asgi import GatewayError, Pace
from refold._gateway.wire.routes import error_body
from refold.core._decoders import decoder
from refold.core._json import Json, mapping, string
from refold.formats._streaming.sse import Decoder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from refold._gateway.server.asgi import BodyShare, Headers

__all__ = ["ResponsesSocket", "request_scope"]

LONGEST = 3_600.0  # seconds that a connection lasts, as at OpenAI
WAITING = 16  # messages that wait for the answer to another one; a connection ends with the next
TOO_MANY = 1008  # the code with which a connection ends that breaks a rule
SMALL = 64 * 1024  # bytes of a message that take no room: no keepalive frame ends a connection where there is none
BETA = b"responses_websockets"  # what a client sends with a handshake, and nobody knows in a request over HTTP
HANDSHAKE = (b"sec-websocket-", b"content-", b"accept", b"connection", b"upgrade", b"transfer-encoding")
SENT: Headers = [
    (b"content-type", b"application/json"), (b"accept", b"text/event-stream"), (b"accept-encoding", b"identity"),
]  # fmt: skip
GOOD = frozenset({"response.completed", "response.incomplete"})
BAD = frozenset({"response.failed", "error"})
PREVIOUS = "previous_response_id"
NOT_FOUND = "previous_response_not_found"
NOTHING = Raw()
FALSE = Raw(b"false")


class _SocketEvent(Struct):
    """What of an event is looked at."""

    type: str = ""
    item: Raw = NOTHING
    response: Raw = NOTHING


class _EndedResponse(Struct):
    """What of a response is looked at."""

    id: str = ""
    output: list[Raw] = msgspec.field(default_factory=list)


class _SocketRequest(Struct, frozen=True):
    """A request of a client: its body, and its whole history unless that is stored elsewhere.

    `continues` is whether its history was remembered here. Where it `warms_up`, no model is called.
    """

    body: dict[str, Raw]
    items: list[Raw] | None
    continues: bool
    warms_up: bool


_event = decoder(_SocketEvent)
_response = decoder(_EndedResponse)
_fields = decoder(dict[str, Raw])
_items = decoder(list[Raw])


class ResponsesSocket:
    """One connection of a client.

    `scope` is that of the requests, which `app` serves; `admit` raises where it would refuse them. `share` is memory
    for the history, `new_share` makes one for a message, and `abort` ends the connection.
    """

    def __init__(
        self,
        app: ASGIApp,
        admit: Callable[[], object],
        scope: Scope,
        receive: Receive,
        send: Send,
        share: BodyShare,
        new_share: Callable[[], BodyShare],
        abort: Callable[[], object],
    ) -> None:
        self._app = app
        self._admit = admit
        self._scope = scope
        self._receive = receive
        self._send = send
        self._share = share
        self._new_share = new_share
        self._abort = abort
        self._shares = deque([new_share()])  # of the messages that wait, then of the one that arrives
        self._size = 0  # of the latter
        self._pace = Pace()
        self._newest = ""  # id of the response whose history is remembered
        self._history: list[Raw] = []
        self._messages: asyncio.Queue[str | bytes | None] = asyncio.Queue(WAITING)
        self._left = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Accept the connection, and answer its messages one after another until it ends."""
        await self._receive()  # that it is open
        await self._deliver({"type": "websocket.accept"})
        reading = asyncio.create_task(self._read())
        end = asyncio.get_running_loop().time() + LONGEST
        try:
            while (text := await self._next(end)) is not None:
                self._shares.popleft().release()  # its request counts instead
                await self._answer(text)
                del text  # which else is held, and counts nowhere, until the next one comes
        except TimeoutError:
            message = "this connection has lasted as long as it may: open another one"
            await self._reject(GatewayError(400, message, "websocket_connection_limit_reached"))
            await self._deliver({"type": "websocket.close", "code": 1000})
        finally:
            reading.cancel()
            for share in self._shares:
                share.release()
            if self._ending is not None:
                await self._ending  # before the server closes the connection

    def arrived(self, size: int) -> None:
        """Count so many bytes of the message that arrives.

        Raises:
            GatewayError: there is no room for them.
        """
        self._size += size
        self._pace.arrived(size, self._size)
        if self._size > SMALL:
            share = self._shares[-1]
            share.take(self._size - share.size)
            share.lend(self._pace.has_stopped, self._abort)

    def exceeded(self, reason: str) -> None:
        """End the connection, whose client sends more than any needs."""
        self._ending = asyncio.create_task(self._end(reason))

    async def _read(self) -> None:
        """Take messages from the client, which wait while another is answered.

        None is left unread: that the client has left is noticed by reading.
        """
        while (message := await self._receive())["type"] != "websocket.disconnect":
            if self._messages.full():
                await self._end("too many requests wait")
                return
            text = message.get("text")
            self._shares[-1].keep()
            self._shares.append(self._new_share())
            self._size = 0
            self._messages.put_nowait(message.get("bytes", b"") if text is None else text)
            del message, text  # which would be held until the next one comes
        self._leave()

    async def _end(self, reason: str) -> None:
        self._leave()  # so that nothing is sent behind the end
        with suppress(OSError):
            await self._send({"type": "websocket.close", "code": TOO_MANY, "reason": reason})

    def _leave(self) -> None:
        self._left.set()
        if self._messages.empty():
            self._messages.put_nowait(None)

    async def _next(self, end: float) -> str | bytes | None:
        async with asyncio.timeout_at(end):
            text = await self._messages.get()
        return None if self._left.is_set() else text

    async def _deliver(self, message: Message) -> None:
        if not self._left.is_set():
            try:
                await self._send(message)
            except OSError:  # what servers raise where the client has left
                self._left.set()

    async def _answer(self, text: str | bytes) -> None:
        answer = _Answer(self._deliver)
        try:
            turn = self._turn(text)
            if turn.warms_up:
                await self._warm_up(turn, answer)
            else:
                await self._serve(turn, answer)
        except GatewayError as error:
            await self._reject(error)
            return
        if answer.is_good and turn.items is not None:
            stored = turn.body.get("store") != FALSE
            self._remember(answer.id, [*turn.items, *(item for item in answer.items if stored or _is_whole(item))])
        elif answer.is_good or turn.continues:
            self._forget()

    def _turn(self, text: str | bytes) -> _SocketRequest:
        """Return the request in a message.

        Raises:
            GatewayError: it is none, or goes on from a response whose history is nowhere.
        """
        try:
            body = _fields(text)
            kind, previous, generate = (_value(body.pop(key, NOTHING)) for key in ("type", PREVIOUS, "generate"))
            content = body.get("input", NOTHING)
            if isinstance(words := _value(content), str):
                new = [Raw(msgspec.json.encode({"type": "message", "role": "user", "content": words}))]
            else:
                new = _items(content) if words else []
        except (ValueError, RecursionError):
            raise _bad_message() from None
        if kind != "response.create":
            raise GatewayError(400, "this WebSocket takes messages of the type response.create alone", "bad_body")
        items: list[Raw] | None = new
        continues = bool(previous) and previous == self._newest
        if continues:
            items = [*self._history, *new]
            body["input"] = Raw(msgspec.json.encode(items))
        elif previous:
            if body.get("store") == FALSE:
                message = f"the response {previous!r} is not remembered here: send the whole history"
                raise GatewayError(400, message, NOT_FOUND)
            body[PREVIOUS] = Raw(msgspec.json.encode(previous))
            items = None
        if _value(body.get("conversation", NOTHING)):
            items = None
        body["stream"] = Raw(b"true")
        return _SocketRequest(body, items, continues, generate is False and items is not None)

    async def _serve(self, turn: _SocketRequest, answer: _Answer) -> None:
        body = msgspec.json.encode(turn.body)
        headers = [*self._scope["headers"], *SENT, (b"content-length", b"%d" % len(body))]
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if parts:
                return parts.pop()
            await self._left.wait()
            return {"type": "http.disconnect"}

        with suppress(Exception):  # which the gateway has logged; then the answer is an error, or has no end
            await self._app({**self._scope, "headers": headers}, receive, answer)
        if answer.status != 200:
            await self._fail(answer.status, answer.error())
        elif not answer.has_ended:
            await self._reject(GatewayError(502, "the provider's answer broke off: try again", "upstream_cut"))

    async def _warm_up(self, turn: _SocketRequest, answer: _Answer) -> None:
        """Answer a request that only makes its history known, to be continued.

        Raises:
            GatewayError: the client may send no request any more, or this is none.
        """
        self._admit()
        try:
            request = {key: _value(raw) for key, raw in turn.body.items()}
        except (ValueError, RecursionError):
            raise _bad_message() from None
        response = local_response(uuid4().hex, string(request, "model"), [], request)
        for event in response_events(response):
            await answer.event(msgspec.json.encode(event))

    async def _reject(self, error: GatewayError) -> None:
        fields = msgspec.json.decode(error_body("openai", error.status, str(error), error.code))["error"]
        await self._fail(error.status, {**fields, "param": PREVIOUS} if error.code == NOT_FOUND else fields)

    async def _fail(self, status: int, error: Json) -> None:
        text = msgspec.json.encode({"type": "error", "status": status, "error": error}).decode()
        await self._deliver({"type": "websocket.send", "text": text})

    def _remember(self, id: str, items: list[Raw]) -> None:
        self._forget()
        try:
            self._share.take(sum(len(memoryview(item)) for item in items))
        except GatewayError:  # the client sends all when it goes on
            return
        self._newest, self._history = id, items

    def _forget(self) -> None:
        self._share.release()
        self._newest, self._history = "", []


class _Answer:
    """Takes an ASGI response, and delivers each event of its stream as a message."""

    def __init__(self, deliver: Callable[[Message], Awaitable[None]]) -> None:
        self._deliver = deliver
        self._decoder = Decoder()
        self._body = bytearray()
        self.status = 200
        self.is_good = False  # whether it ended, and not with an error
        self.has_ended = False
        self.id = ""
        self.items: list[Raw] = []

    async def __call__(self, message: Message) -> None:
        """Take one message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body" and self.status != 200:
            self._body += message.get("body", b"")
        elif message["type"] == "http.response.body":
            events = self._decoder.feed(message.get("body", b""))
            if not message.get("more_body"):
                events += self._decoder.finish()
            for event in events:
                if event.data is not None and not event.done:
                    await self.event(event.data)

    async def event(self, data: bytes) -> None:
        """Deliver one event."""
        try:
            event, text = _event(data), data.decode()
        except (ValueError, RecursionError):  # nothing that a client could read
            return
        if event.type == "response.output_item.done":
            self.items.append(event.item)
        elif event.type in GOOD:
            self.has_ended = True
            with suppress(ValueError):  # a response that nobody can continue
                response = _response(event.response)
                self.id, self.items, self.is_good = response.id, self.items or response.output, True
        elif event.type in BAD:
            self.has_ended = True
        await self._deliver({"type": "websocket.send", "text": text})

    def error(self) -> Json:
        """Return the error of a response that is one, with the code that schemas of the API require."""
        try:
            error = mapping(mapping(msgspec.json.decode(self._body)).get("error"))
        except (ValueError, RecursionError):
            error = {}
        code = string(error, "code") or string(error, "type") or f"http_{self.status}"
        message = string(error, "message") or f"the provider answered with status {self.status}"
        return {**error, "code": code, "message": message}


def request_scope(scope: Scope) -> Scope:
    """Return the scope of the requests over HTTP that the messages of a WebSocket are."""
    headers = [
        (name, value)
        for name, value in ((name.lower(), value) for name, value in scope["headers"])  # which came as the client wrote
        if not name.startswith(HANDSHAKE) and not (name == b"openai-beta" and value.startswith(BETA))
    ]
    scheme = "https" if scope["scheme"] == "wss" else "http"
    return {**scope, "type": "http", "method": "POST", "scheme": scheme, "headers": headers}


def _bad_message() -> GatewayError:
    return GatewayError(400, "a message is one JSON object, its input a list of items", "bad_body")


def _value(raw: Raw) -> Any:
    return msgspec.json.decode(raw) if raw else None


def _is_whole(item: Raw) -> bool:
    """Tell whether an item can be sent back: reasoning that nobody stores cannot be, unless it is there encrypted."""
    value = mapping(_value(item))
    return value.get("type") != "reasoning" or bool(value.get("encrypted_content"))
