"""What starlette has not: bodies with limits, a disconnect as an exception, and errors in the client's protocol."""

from __future__ import annotations

import asyncio
import io
import time
from typing import TYPE_CHECKING, TypeAlias

from starlette.responses import Response

from refold._gateway.wire.routes import error_body

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

    from starlette.types import Message, Receive

__all__ = [
    "CLOSE",
    "BodyMemory",
    "BodyShare",
    "ClientDisconnected",
    "GatewayError",
    "Headers",
    "Pace",
    "disconnected",
    "error_response",
    "internal_error",
    "read_body",
    "receive_in_time",
    "too_large",
]  # fmt: skip

Headers: TypeAlias = list[tuple[bytes, bytes]]
CLOSE: Headers = [(b"connection", b"close")]  # the rest of the request is not awaited
OVERLOADED = 2  # seconds after which a request for which there was no room may be sent again
TIMES_LEFT = 3  # times what is left that one client may hold: three quarters where it is the only one, a fifth of five
SILENCE = 5.0  # seconds for which a body may stop whose room is needed
SLOWEST = 32 * 1024  # bytes a second that such a body brings at least,
DOUBLES = 60.0  # and seconds in which it at least doubles, so that a long one that is nearly complete cannot rest


class GatewayError(Exception):  # ends a request, like an HTTP status
    """An error response of the gateway's own; `code` names its kind for clients and metrics."""

    def __init__(self, status: int, message: str, code: str, headers: Headers | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or []


class ClientDisconnected(Exception):  # no response can be sent any more
    """The client has closed its connection."""


class BodyMemory:
    """The memory of a gateway for bodies of requests, of which `limit` bytes may be held at a time.

    Bytes count from their arrival on. Who announces many and sends none takes nothing from others. One client may hold
    `TIMES_LEFT` times what is left for all others (the dynamic threshold of Choudhury and Hahne), so that no number of
    its requests takes everything. Where there is no room, requests end whose clients have stopped: those whose bodies
    hardly arrive, and those whose responses nobody reads.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0  # bytes that are held
        self.by_client: dict[str, int] = {}
        self.lent: dict[BodyShare, tuple[Callable[[], bool], Callable[[], object]]] = {}

    def share(self, client: str = "") -> BodyShare:
        """Return what one request of a client holds, which is nothing yet."""
        return BodyShare(self, client)

    def make_room(self, share: BodyShare, size: int) -> bool:
        """End requests whose clients have stopped, the largest first, until there is room; tell whether there is."""
        stopped = [each for each, (has_stopped, _) in self.lent.items() if each is not share and has_stopped()]
        for each in sorted(stopped, key=lambda each: -each.size):
            end = self.lent[each][1]
            each.release()
            end()
            if share.has_room(size):
                return True
        return False


class BodyShare:
    """What one request holds of the memory for bodies, to the end of a block: `with memory.share() as share: ...`."""

    __slots__ = ("_memory", "client", "size")

    def __init__(self, memory: BodyMemory, client: str) -> None:
        self._memory = memory
        self.client = client
        self.size = 0

    def take(self, size: int) -> None:
        """Hold so many bytes more; a request that is alone may hold any number.

        Raises:
            GatewayError: its client, or all together, would hold more than they may (503).
        """
        memory = self._memory
        if not self.has_room(size) and not memory.make_room(self, size):
            message = f"this gateway has no room left in {memory.limit:,} bytes for requests: send it again later"
            raise GatewayError(503, message, "overloaded", [*CLOSE, (b"retry-after", b"%d" % OVERLOADED)])
        memory.size += size
        memory.by_client[self.client] = memory.by_client.get(self.client, 0) + size
        self.size += size

    def has_room(self, size: int) -> bool:
        """Tell whether this request may hold so many bytes more."""
        memory = self._memory
        left = memory.limit - memory.size - size
        return memory.size == self.size or memory.by_client.get(self.client, 0) + size <= TIMES_LEFT * left

    def lend(self, has_stopped: Callable[[], bool], end: Callable[[], object]) -> None:
        """Let this request be ended by a function, where its room is needed and its client has stopped."""
        self._memory.lent[self] = has_stopped, end

    def keep(self) -> None:
        """Let this request be ended for its room no more."""
        self._memory.lent.pop(self, None)

    def release(self) -> None:
        """Hold nothing any more."""
        self.keep()
        memory = self._memory
        memory.size -= self.size
        left = memory.by_client.get(self.client, 0) - self.size
        self.size = 0
        if left:
            memory.by_client[self.client] = left
        else:
            memory.by_client.pop(self.client, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.release()


class Pace:
    """How fast a body arrives: what has come lets its client be silent for a while, and the more it holds the less."""

    def __init__(self) -> None:
        self._until = time.monotonic() + SILENCE
        self._wait: asyncio.Timeout | None = None  # for the next part
        self.ended = False  # the room was needed

    def arrived(self, size: int, total: int) -> None:
        """Take notice of so many bytes more, which makes so many in all."""
        now = time.monotonic()
        self._until = min(max(self._until, now) + size / max(SLOWEST, total / DOUBLES), now + SILENCE)

    def has_stopped(self) -> bool:
        """Tell whether too little has arrived lately."""
        return time.monotonic() > self._until

    def waits(self, wait: asyncio.Timeout) -> None:
        """Take notice of what the request waits in for the next part."""
        self._wait = wait

    def end(self) -> None:
        """Await no more."""
        self.ended = True
        if self._wait is not None and not self._wait.expired():
            self._wait.reschedule(asyncio.get_running_loop().time())


async def read_body(
    receive: Receive,
    headers: Mapping[bytes, bytes],
    limit: int,
    share: BodyShare,
    timeout: float | None,
    whole: float | None = None,
) -> bytes:
    """Return a request's whole body; the timeouts, in seconds, are for each part and for the whole of it.

    Without a timeout it is known to have arrived, and needs no headers that announce it.

    Raises:
        GatewayError: it is longer than the limit (413), does not arrive in time (408), or there is no room (503).
        ClientDisconnected: the client left before it was complete.
    """
    announced = headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced) > limit:
        raise too_large(limit)
    arrived: io.BytesIO | None = None
    size = 0
    deadline = None if whole is None else time.monotonic() + whole
    pace = None
    while True:
        message = await (receive() if timeout is None else receive_in_time(receive, timeout, pace))
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        if deadline is not None and time.monotonic() > deadline:
            late = f"the request's body did not arrive within {whole:g} s: send it again"
            raise GatewayError(408, late, "request_timeout", CLOSE)
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        share.take(len(chunk))
        if arrived is None:
            if not message.get("more_body"):
                return chunk
            arrived = io.BytesIO()
            pace = Pace()
            share.lend(pace.has_stopped, pace.end)
        arrived.write(chunk)  # to join all of a long body at its end takes 45 ms, in which nobody else is served
        if not message.get("more_body"):
            share.keep()
            return arrived.getvalue()
        if pace is not None:
            pace.arrived(len(chunk), share.size)


async def receive_in_time(receive: Receive, timeout: float, pace: Pace | None = None) -> Message:
    """Return the next message from a client.

    Raises:
        GatewayError: it does not arrive in time, or too slowly where others need the room of what has arrived (408).
    """
    try:
        async with asyncio.timeout(timeout) as wait:
            if pace is not None:
                pace.waits(wait)
            message = await receive()
    except TimeoutError:
        if pace is None or not pace.ended:
            late = f"no part of the request's body arrived within {timeout:g} s: send it again"
            raise GatewayError(408, late, "request_timeout", CLOSE) from None
    if pace is not None and pace.ended:
        slow = "the request's body arrived too slowly while others waited for room: send it again"
        raise GatewayError(408, slow, "request_timeout", CLOSE)
    return message


async def disconnected(receive: Receive) -> None:
    """Return when the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def error_response(provider: str, error: GatewayError) -> Response:
    """Return the response for an error of the gateway's own, in the client's protocol."""
    headers = {name.decode(): value.decode("latin-1") for name, value in error.headers}
    headers |= {"x-refold-done": "rejected", "x-refold-reason": error.code}
    body = error_body(provider, error.status, str(error), error.code)
    return Response(body, error.status, headers, "application/json")


def internal_error(error: Exception) -> GatewayError:
    """Return the error that a client sees for a bug of the gateway."""
    message = f"the gateway failed ({type(error).__name__}): send x-refold-bypass: 1 to go past it, and report it"
    return GatewayError(500, message, "internal")


def too_large(limit: int) -> GatewayError:
    """Return the error for a body of more bytes than the limit."""
    return GatewayError(
        413, f"the request body is larger than {limit:,} bytes, the most that this client may send",
        "request_too_large", CLOSE,
    )  # fmt: skip
