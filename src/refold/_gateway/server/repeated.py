"""Serves the requests of a connection that repeat the head of the one before and whose body has arrived, unparsed.

uvicorn's protocol takes 12 µs for such a request, of 180 that the gateway takes in all: it reads a line that is known,
builds a scope that the application has, sets a timer for each pause, and looks at each header of the response twice.
This one does what ASGI asks of a server, and no more.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Scope

    from refold._gateway.server.asgi import Headers

__all__ = ["RepeatedRequests"]

CONTROLS = bytes([*range(9), *range(10, 32), 127])  # what stands in no header
BODILESS = frozenset({204, 304})  # statuses
FAILED = b"Internal Server Error"


class RepeatedRequests(asyncio.Protocol):
    """The server's side of a connection, while its requests repeat one head; uvicorn's `shutdown` ends it too.

    `state` is uvicorn's, which waits at its end for the tasks in it. `is_idle` tells whether nothing of a next request
    has arrived, so that the connection may be closed after `keep_alive` seconds.
    """

    def __init__(self, app: ASGIApp, scope: Scope, state: Any, keep_alive: float, is_idle: Callable[[], bool]) -> None:
        self.app = app
        self.scope = scope
        self.tasks: set[asyncio.Task[None]] = state.tasks
        self.transport: asyncio.Transport
        self.loop = asyncio.get_running_loop()
        self.paused: asyncio.Future[None] | None = None  # while the client does not read
        self.lost = False
        self._connections: set[object] = state.connections
        self._keep_alive = keep_alive
        self._is_idle = is_idle
        self._request: _Request | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rests_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def serve(self, body: Callable[[], bytes | None]) -> None:
        """Begin to serve a request, once the one before is done; `body` returns the whole body of it, once."""
        self._request = request = _Request(self, body)
        request.task = self.loop.create_task(request.run())
        self.tasks.add(request.task)

    def rest(self) -> None:
        """Take notice that a request is done: the connection waits for the next one."""
        self._rests_since = self.loop.time()
        if self._timer is None:  # one for all pauses
            self._timer = self.loop.call_later(self._keep_alive, self._close_idle)

    def shutdown(self) -> None:
        """Close the connection, after the response to the present request."""
        if self._request is None or self._request.complete:
            self.transport.close()
        else:
            self._request.keep_alive = False

    def pause_writing(self) -> None:
        if self.paused is None:
            self.paused = self.loop.create_future()

    def resume_writing(self) -> None:
        if self.paused is not None:
            if not self.paused.done():
                self.paused.set_result(None)
            self.paused = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._connections.discard(self)
        self.resume_writing()
        if self._timer is not None:
            self._timer.cancel()
        if self._request is not None:
            self._request.end()

    def _close_idle(self) -> None:
        left = self._rests_since + self._keep_alive - self.loop.time()
        if not self._is_idle():
            left = self._keep_alive
        if left > 0:
            self._timer = self.loop.call_later(left, self._close_idle)
        else:
            self.transport.close()


class _Request:
    """One request: what the application gets of it, and its response on the way to the client."""

    __slots__ = ("_chunked", "_ended", "_head", "_left", "_protocol", "_take_body", "complete", "keep_alive", "task")

    task: asyncio.Task[None]

    def __init__(self, protocol: RepeatedRequests, take_body: Callable[[], bytes | None]) -> None:
        self._protocol = protocol
        self._take_body = take_body
        self._head: bytes | None = None  # of the response, b"" once it is written
        self._left = 0  # bytes of the body that the head announced
        self._chunked = False
        self._ended: asyncio.Event | None = None
        self.keep_alive = True
        self.complete = False

    async def run(self) -> None:
        """Let the application answer; what it leaves undone is answered for it, or ends the connection."""
        protocol = self._protocol
        try:
            await protocol.app(protocol.scope.copy(), self.receive, self.send)  # type: ignore[attr-defined]
        except BaseException:  # the application logs its own errors; a task that is cut ends so too
            await self._fail()
        else:
            if not self.complete:
                await self._fail()
        finally:
            protocol.tasks.discard(self.task)

    async def receive(self) -> Message:
        """Return the body, and then the end of the connection, or of the response, when it comes."""
        body = self._take_body()
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        if not (self.complete or self._protocol.lost):
            self._ended = self._ended or asyncio.Event()
            await self._ended.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send the head of the response, or a part of its body; what follows in the same turn goes with the head."""
        protocol = self._protocol
        if protocol.paused is not None and not protocol.lost:
            await asyncio.shield(protocol.paused)
        if protocol.lost:
            return
        kind = message["type"]
        if self._head is None and kind == "http.response.start":
            self._head = self._start(message["status"], message.get("headers") or [])
            protocol.loop.call_soon(self._flush)
            return
        if self._head is None or kind != "http.response.body" or self.complete:
            raise RuntimeError(f"unexpected message {kind}")
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        if self._chunked:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            if not more:
                body += b"0\r\n\r\n"
        else:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("the body is not as long as its content-length says")
        if self._head:
            body, self._head = self._head + body, b""
        if body:
            protocol.transport.write(body)
        if not more:
            self.end()
            self.complete = True
            if self.keep_alive:
                protocol.rest()
            else:
                protocol.transport.close()

    def end(self) -> None:
        """Let who waits for the end of the connection, or of the response, go on."""
        if self._ended is not None:
            self._ended.set()

    def _start(self, status: int, headers: Headers) -> bytes:
        """Return the head of the response.

        Raises:
            RuntimeError: a header holds what stands in none.
        """
        values = dict(headers)
        lines = [name + b": " + value for name, value in headers]
        text = b"".join(lines)
        if len(text.translate(None, CONTROLS)) != len(text):
            raise RuntimeError("a header of the response is not one line")
        if b"close" in values.get(b"connection", b"").lower():
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close")
        if (length := values.get(b"content-length")) is not None:
            self._left = int(length)
        elif status not in BODILESS:
            self._chunked = True
            lines.append(b"transfer-encoding: chunked")
        return b"%b%b\r\n\r\n" % (_status_line(status), b"\r\n".join(lines))

    def _flush(self) -> None:
        if self._head and not self._protocol.lost:
            self._protocol.transport.write(self._head)
        if self._head:
            self._head = b""

    async def _fail(self) -> None:
        """Answer that the application failed where it has not begun an answer; else end the connection."""
        protocol = self._protocol
        if self._head is None and not protocol.lost:
            self.keep_alive = False
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(FAILED))]
            await self.send({"type": "http.response.start", "status": 500, "headers": headers})
            await self.send({"type": "http.response.body", "body": FAILED})
        else:
            protocol.transport.close()


@lru_cache(64)
def _status_line(status: int) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return b"HTTP/1.1 %d %b\r\n" % (status, phrase.encode())
