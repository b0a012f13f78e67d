"""What starlette has not: bodies with limits, a disconnect as an exception, and errors in the client's protocol."""

from __future__ import annotations

import asyncio
import io
import time
from typing import TYPE_CHECKING, TypeAlias

from starlette.responses import Response

from refold._gateway.wire.routes import error_body

if TYPE_CHECKING:
    from collections.abc import Mapping
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

    Bytes count from their arrival on. Who announces many and sends none takes nothing from others.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0  # bytes that are held

    def share(self) -> BodyShare:
        """Return what one request holds, which is nothing yet."""
        return BodyShare(self)


class BodyShare:
    """What one request holds of the memory for bodies, to the end of a block: `with memory.share() as share: ...`."""

    __slots__ = ("_memory", "_size")

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self._size = 0

    def take(self, size: int) -> None:
        """Hold so many bytes more; a request that is alone may hold any number.

        Raises:
            GatewayError: all requests together would hold more than they may (503).
        """
        memory = self._memory
        if memory.size + size > memory.limit and memory.size > self._size:
            message = f"this gateway is at work on {memory.limit:,} bytes of requests, its limit: send it again later"
            raise GatewayError(503, message, "overloaded", [*CLOSE, (b"retry-after", b"%d" % OVERLOADED)])
        memory.size += size
        self._size += size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._memory.size -= self._size
        self._size = 0


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
    while True:
        message = await (receive() if timeout is None else receive_in_time(receive, timeout))
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
        arrived.write(chunk)  # to join all of a long body at its end takes 45 ms, in which nobody else is served
        if not message.get("more_body"):
            return arrived.getvalue()


async def receive_in_time(receive: Receive, timeout: float) -> Message:
    """Return the next message from a client.

    Raises:
        GatewayError: it does not arrive in time (408).
    """
    try:
        async with asyncio.timeout(timeout):
            return await receive()
    except TimeoutError:
        message = f"no part of the request's body arrived within {timeout:g} s: send it again"
        raise GatewayError(408, message, "request_timeout", CLOSE) from None


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
