"""Connections of clients: limits for the head of a request, the parser for it, and notice of a disconnect.

Theory of operation. uvicorn has two parsers of HTTP. httptools takes 0.14 ms less for a request, but it sets no limit
to a head, loses the body of a request that offers another protocol, and takes the trailers of a body for headers. h11
does none of this. `ClientConnection` stands between the event loop and uvicorn's protocols. It uses only the interfaces
that asyncio defines between a transport and a protocol, and the `state` that ASGI passes from a server to each request:

                 +--- plain: the head, and as many bytes as its content-length says, to httptools ---+
                 |                                                                                   |
    collect a head, at most 64 KB, for at most 20 s <--- the response is complete -------------------+
                 |
                 +--- the handshake of a WebSocket that is served here: all bytes to uvicorn's protocol for WebSockets,
                 |    a few frames in each turn of the loop, until there are more of them than any client needs
                 |
                 +--- anything else: all bytes to h11, for the rest of the connection

A head is plain if it is HTTP/1.1 with a path, all its lines end alike, and it has one content-length or none. Most
clients repeat their head with every request, except for the number in content-length: such a head is plain as well,
and `known_head` is what the application has made of it. The body of such a request, if it is there with its head, goes
to the application as it is (`take_body`), and httptools gets the first line alone, as it has read the rest before.
What arrives after the body of a plain request waits until its response is complete. httptools alone decides where the
first request with a head ends; if it disagreed about the length, it would wait for a body and the request would time
out.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import uvicorn

from refold._gateway.server.frames import FrameCounter

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Scope, Send


__all__ = ["MAX_HEAD", "ClientConnection", "client_connection", "connection_of"]

MAX_HEAD = 64 * 1024  # bytes of request line and headers
MAX_WAITING = 64 * 1024  # bytes that wait for the end of the request before them
STATE = "refold.connection"
HEAD_END = re.compile(rb"\n\r?\n")
PLAIN = re.compile(rb'[A-Z]+ /[!"$-~]* HTTP/1\.1\r\n')
# the Responses API's WebSockets, which are answered here; those of other APIs are carried to the provider, or refused
SOCKET = re.compile(rb"GET (?:/[!->@-~]*)?/responses(?:\?[!-~]*)? HTTP/1\.1\r\n")
OFFERED = re.compile(rb"\nupgrade:[ \t]*websocket[ \t]*\r")
LENGTH = re.compile(rb"\ncontent-length: ?(\d{1,15})\r")
LONGEST_NUMBER = 15  # digits
PONG = b"\x8a\x80\0\0\0\0"  # an unasked one, which says nothing: a parser holds its last frame until the next one
STOPPED = 30.0  # seconds without reading after which a client has stopped, where others need what its request holds


class ClientConnection(asyncio.Protocol):
    """A connection on which heads have limits, and which knows when its client disconnects, or reads no more."""

    seconds: float  # for a head
    unread: float  # seconds for which a client may read nothing of what waits for it
    fast: type[asyncio.Protocol]
    strict: type[asyncio.Protocol]
    socket: type[asyncio.Protocol]

    def __init__(self, **arguments: Any) -> None:
        arguments["app_state"] = {**arguments["app_state"], STATE: self}
        self._arguments = arguments
        self._protocol = self.fast(**arguments)
        self._is_strict = False
        self._timer: asyncio.TimerHandle | None = None
        self._requests = 0  # that the application works on
        self._body_left = 0  # bytes of the present request that have not arrived
        self._waiting = b""  # a part of a head, or what follows the present request
        self._on_lost: Callable[[], object] | None = None
        self._stuck: asyncio.TimerHandle | None = None  # while the client does not read what waits for it
        self._last_head: _PlainHead | None = None
        self._body: bytes | None = None  # of the present request, where its parser did not get it
        self._frames: FrameCounter | None = None  # of a WebSocket
        self._unparsed = b""  # frames that wait for another turn of the loop
        self._turn: asyncio.Handle | None = None
        self._has_excess = False  # of frames: what follows is dropped
        self.on_data: Callable[[int], object] | None = None  # gets how many bytes of a WebSocket's messages arrived
        self.on_excess: Callable[[str], object] | None = None  # gets why a WebSocket has to end
        self.known_head: Any = None  # what the application remembers of the head for as long as it is repeated

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._view = _TransportView(cast("asyncio.Transport", transport))
        self._start_timer()
        self._protocol.connection_made(self._view)

    def data_received(self, data: bytes) -> None:
        if self._frames is not None:
            self._unparsed += data
            self._pass_frames()
            return
        if self._is_strict:
            self._await_head()
            self._protocol.data_received(data)
            return
        if self._body_left:
            self._await_head()
            body, data = data[: self._body_left], data[self._body_left :]
            self._body_left -= len(body)
            self._protocol.data_received(body)
            if not data:
                if not self._body_left and not self._requests:  # the rest of a body, after an early response
                    self._stop_timer()
                return
        self._waiting += data
        self._read_head()
        if self._requests and len(self._waiting) > MAX_WAITING:
            self._view.hold_reading()

    def request_began(self) -> None:
        """Stop the timer: the head is complete."""
        if self._is_strict:
            self._requests += 1
            self._stop_timer()

    def request_ended(self) -> None:
        """Count a request as done; the next data begins a head."""
        self._requests -= 1
        self._body = None
        if not self._is_strict and not self._requests:
            self._view.release_reading()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._read_head)  # when the application has returned

    def remember(self, known: object) -> None:
        """Take what is `known_head` in requests that repeat the head of the present one."""
        if self._last_head is not None and self._last_head.after:
            self.known_head = known

    @property
    def can_watch(self) -> bool:
        """Whether a disconnect is reported by `watch`, because nothing but the present request is read ahead."""
        return not self._is_strict

    @property
    def has_whole_body(self) -> bool:
        """Whether the whole body of the present request has arrived, so that no part of it need be waited for."""
        return not self._is_strict and not self._body_left

    def take_body(self) -> bytes | None:
        """Return the whole body of the present request where ASGI's messages do not hold it, once; else None."""
        body, self._body = self._body, None
        return body

    def watch(self, on_lost: Callable[[], object] | None) -> None:
        """Call a function when the connection is lost, at once if it is; the request's body must be complete."""
        self._on_lost = on_lost
        if on_lost is not None:
            self._view.resume_reading()  # a disconnect is noticed by reading
            if self._view.is_closing():
                on_lost()

    async def tunnel(
        self, opening: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle: float
    ) -> None:
        """Carry bytes between the client and another connection until either ends; nothing of them is read here.

        `opening` is what the client gets first. It ends too when no byte came from either side for `idle` seconds.
        """
        previous, self._view = self._protocol, self._view.replaced()
        self._protocol = tunnel = _Tunnel(writer, self._view, idle)
        previous.connection_lost(None)  # it has no transport any more, and waits for no response
        self._view.write(opening)
        self._view.resume_reading()  # which it has paused behind its request
        try:
            await tunnel.carry(reader)
        finally:
            writer.close()
            self._view.close()

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def has_stopped(self) -> bool:
        """Tell whether the client has not read what waits for it for some time."""
        if self._stuck is None:
            return False
        return asyncio.get_running_loop().time() > self._stuck.when() - self.unread + min(STOPPED, self.unread)

    def abort(self) -> None:
        """Close the connection without what waits for the client."""
        self._view.abort()

    def pause_writing(self) -> None:
        if self._stuck is None:
            self._stuck = asyncio.get_running_loop().call_later(self.unread, self.abort)
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._read_on()
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._read_on()
        self._stop_timer()
        self._waiting = self._unparsed = b""
        self._protocol.connection_lost(exc)
        if self._on_lost is not None:
            self._on_lost()

    def _read_head(self) -> None:
        """Pass on what waits if it holds a whole head, or one that is too long, and no request is in progress."""
        data = self._waiting
        if not data or self._requests or self._body_left or self._view.is_closing():
            return
        last = self._last_head
        known = last.repeated(data) if last is not None else None
        if known is None:
            end = HEAD_END.search(data, 0, MAX_HEAD)
            if end is None and len(data) < MAX_HEAD:
                self._await_head()
                return
            if end is None:
                self._replace_parser(self.strict, data[: MAX_HEAD + 1])  # which rejects it
                return
            text = data[: end.end()]
            last = _plain_head(text)
            if last is None:
                self._await_head()
                if not _opens_socket(text):
                    self._replace_parser(self.strict, data)
                    return
                self._replace_parser(self.socket, text)
                self._frames, self._unparsed = FrameCounter(), data[end.end() :]
                self._pass_frames()
                return
            self.known_head, self._last_head, known = None, last, (end.end(), last.length)
        start, length = known
        size = start + length
        self._waiting = data[size:]
        self._body_left = max(size - len(data), 0)
        self._requests = 1
        self._stop_timer()
        self._view.join_next_writes()
        if self.known_head is not None and last is not None and not self._body_left:
            self._body = data[start:size]
            self._protocol.data_received(last.first_line)
        else:
            self._protocol.data_received(data if size == len(data) else data[:size])

    def _replace_parser(self, protocol: type[asyncio.Protocol], data: bytes) -> None:
        """Replace the fast parser, which has no request, for this data and the rest of the connection."""
        previous = self._protocol
        self._view = self._view.replaced()
        previous.connection_lost(None)
        self._is_strict = True
        self.known_head = self._last_head = None  # whose heads are not compared
        self._protocol = protocol(**self._arguments)
        self._protocol.connection_made(self._view)
        self._waiting = b""
        self._protocol.data_received(data)

    def _pass_frames(self) -> None:
        """Pass frames of a WebSocket on, as many as one turn of the loop has time for."""
        if self._frames is None or self._turn is not None or self._view.is_closing():
            return
        loop = asyncio.get_running_loop()
        read = loop.time() if self._stuck is None else self._stuck.when() - self.unread
        end, size, excess, closes = self._frames.take(self._unparsed, read)
        data, self._unparsed = self._unparsed[:end], self._unparsed[end:]
        if self._has_excess:
            if closes:  # the client has read why
                self._view.close()
        elif excess:
            self._has_excess = True
            if self.on_excess is None:
                self.abort()
            else:
                self.on_excess(excess)
        elif data:
            if self.on_data is not None and size:
                self.on_data(size)
            self._protocol.data_received(data)
            if size and self._frames.is_between_frames and not self._view.is_closing():
                self._protocol.data_received(PONG)
        if self._view.is_closing():
            self._unparsed = b""
        elif self._unparsed:
            self._view.hold_reading()
            self._turn = loop.call_soon(self._next_frames)
        else:
            self._view.release_reading()

    def _next_frames(self) -> None:
        self._turn = None
        self._pass_frames()

    def _start_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.seconds, self._close)

    def _await_head(self) -> None:
        """Give the client time for what is not complete yet, unless a request is at work or the time runs."""
        if self._timer is None and not self._requests:
            self._start_timer()

    def _close(self) -> None:
        self._view.close()  # of the protocol that has the connection by then

    def _read_on(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Tunnel(asyncio.Protocol):
    """The client's side of a tunnel: what arrives goes on to a writer, and neither side outruns the other."""

    def __init__(self, writer: asyncio.StreamWriter, client: asyncio.Transport, idle: float) -> None:
        self._writer = writer
        self._client = client
        self._idle = idle
        self._timer: asyncio.Timeout | None = None
        self._draining: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._put_off_end()
        self._writer.write(data)
        if self._draining is None and self._writer.transport.get_write_buffer_size() > MAX_WAITING:
            self._client.pause_reading()
            self._draining = asyncio.ensure_future(self._drain())

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._writable.set()
        self._writer.close()

    async def _drain(self) -> None:
        with suppress(OSError):
            await self._writer.drain()
        self._draining = None
        self._client.resume_reading()

    async def carry(self, reader: asyncio.StreamReader) -> None:
        """Carry what a reader has to the client until it ends."""
        with suppress(OSError):  # either side broke off, or both were silent for too long
            try:
                async with asyncio.timeout(self._idle) as self._timer:
                    while data := await reader.read(MAX_WAITING):
                        self._put_off_end()
                        await self._writable.wait()
                        self._client.write(data)
            finally:
                self._timer = None

    def _put_off_end(self) -> None:
        if self._timer is not None and not self._timer.expired():
            self._timer.reschedule(asyncio.get_running_loop().time() + self._idle)


class _TransportView(asyncio.Transport):
    """The transport as one protocol uses it.

    Two writes in one turn of the loop are one: the head of a response and the beginning of its body. A view that was
    replaced has no effect any more. `hold_reading` overrides what the protocol decides.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport: asyncio.Transport | None = transport
        self._loop = asyncio.get_running_loop()
        self._holding = False
        self._joins = False
        self._unwritten = b""

    def join_next_writes(self) -> None:
        """Keep the next piece until another follows, or until the end of this turn of the loop."""
        self._joins = True

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._transport is None or self._transport.is_closing():  # where uvloop raises an error if the client left
            return
        if self._joins:
            self._joins, self._unwritten = False, bytes(data)
            self._loop.call_soon(self._flush)
        elif self._unwritten:
            self._unwritten += data
            self._flush()
        else:
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def get_extra_info(self, name: str, default: object = None) -> Any:
        return default if self._transport is None else self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._holding:
            self._transport.resume_reading()

    def hold_reading(self) -> None:
        """Read nothing until `release_reading`, whatever the protocol decides."""
        self._holding = True
        self.pause_reading()

    def release_reading(self) -> None:
        """Read again."""
        if self._holding:
            self._holding = False
            self.resume_reading()

    def replaced(self) -> _TransportView:
        """Return a view for another protocol; this one has no effect from now on."""
        transport, self._transport = self._transport, None
        assert transport is not None
        return _TransportView(transport)

    def _flush(self) -> None:
        data, self._unwritten = self._unwritten, b""
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


def connection_of(scope: Scope) -> ClientConnection | None:
    """Return the connection by which a request came; None under another server."""
    state = scope.get("state")
    connection: ClientConnection | None = state.get(STATE) if state else None
    return connection


def client_connection(seconds: float, unread: float) -> type[ClientConnection]:
    """Return a protocol class for `uvicorn.Config(http=...)`.

    It allows so many seconds for a head, and as many as `unread` without that the client reads what waits for it.
    """
    fast, strict = _config("httptools").http_protocol_class, _config("h11")
    parsers = {"fast": fast, "strict": strict.http_protocol_class, "socket": strict.ws_protocol_class}
    return type("BoundedConnection", (ClientConnection,), {"seconds": seconds, "unread": unread, **parsers})


def _config(name: Literal["httptools", "h11"]) -> uvicorn.Config:
    config = uvicorn.Config(_no_application, http=name, ws="websockets-sansio", log_config=None)
    config.load()
    return config


async def _no_application(scope: Scope, receive: Receive, send: Send) -> None:
    """Stand in for an application while uvicorn resolves its protocol class."""


class _PlainHead(NamedTuple):
    """A plain head: the length of the body after it, and what stands before and after the number that says so.

    `first_line` is a head of that line alone.
    """

    length: int
    before: bytes = b""
    after: bytes = b""
    first_line: bytes = b""

    def repeated(self, data: bytes) -> tuple[int, int] | None:
        """Return where a head ends that is the same but for this number, and the length of its body; else None."""
        if not self.after or not data.startswith(self.before):
            return None
        start = len(self.before)
        stop = data.find(b"\r", start, start + LONGEST_NUMBER + 1)
        number = data[start : max(stop, start)]
        if not number.isdigit() or not data.startswith(self.after, stop):
            return None
        return stop + len(self.after), int(number)


def _opens_socket(head: bytes) -> bool:
    """Tell whether a head is the handshake of a WebSocket that is served here, which no body may follow."""
    lines, low = head.count(b"\r\n"), head.lower()
    if head.count(b"\n") != lines or b"content-length" in low or b"transfer-encoding" in low:
        return False
    return bool(SOCKET.match(head) and OFFERED.search(low))


def _plain_head(head: bytes) -> _PlainHead | None:
    """Return what a plain head says; None where the strict parser has to read it."""
    lines, low = head.count(b"\r\n"), head.lower()
    if not PLAIN.match(head) or head.count(b"\n") != lines or head.count(b"\r") != lines:
        return None
    if b"\r\n " in head or b"\r\n\t" in head or b"upgrade" in low or b"transfer-encoding" in low:
        return None
    lengths = low.count(b"content-length")
    if not lengths:
        return _PlainHead(0)
    stated = LENGTH.search(low)
    if not stated or lengths != 1:
        return None
    first_line = head[: head.index(b"\r\n")] + b"\r\n\r\n"
    return _PlainHead(int(stated[1]), head[: stated.start(1)], head[stated.end(1) :], first_line)
