"""Helpers over plain ASGI for the hot path: read a bounded body, respond, notice that the client disconnected."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias

from refold._gateway.wire.routes import error_body

__all__ = [
    "CLOSE",
    "ClientDisconnected",
    "GatewayError",
    "Headers",
    "Receive",
    "Scope",
    "Send",
    "disconnected",
    "read_body",
    "receive_in_time",
    "respond",
    "respond_with_error",
]  # fmt: skip

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]
CLOSE: Headers = [(b"connection", b"close")]  # the rest of the request is not awaited


class GatewayError(Exception):  # ends a request, like an HTTP status
    """An error response of the gateway's own; `code` names its kind for clients and metrics."""

    def __init__(self, status: int, message: str, code: str, headers: Headers | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or []


class ClientDisconnected(Exception):  # no response can be sent any more
    """The client has closed its connection."""


async def read_body(receive: Receive, headers: dict[bytes, bytes], limit: int, timeout: float | None) -> bytes:
    """Return a request's whole body; the timeout, in seconds, is for each part of it.

    Raises:
        GatewayError: it is longer than the limit (413), or does not arrive in time (408).
        ClientDisconnected: the client left before it was complete.
    """
    announced = headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive_in_time(receive, timeout)
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
        if not message.get("more_body"):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def receive_in_time(receive: Receive, timeout: float | None) -> MutableMapping[str, Any]:
    """Return the next message from a client; without a timeout if it is known to have arrived.

    Raises:
        GatewayError: it does not arrive in time (408).
    """
    if timeout is None:
        return await receive()
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


async def respond(
    send: Send, status: int, body: bytes, kind: bytes = b"application/json", extra: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Send a response with a complete body."""
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def respond_with_error(
    send: Send, provider: str, error: GatewayError, extra: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Send an error of the gateway's own, in the client's dialect."""
    body = error_body(provider, error.status, str(error), error.code)
    own = [(b"x-refold-done", b"rejected"), (b"x-refold-reason", error.code.encode())]
    await respond(send, error.status, body, extra=[*error.headers, *own, *extra])


def _too_large(limit: int) -> GatewayError:
    return GatewayError(
        413, f"the request body is larger than {limit:,} bytes, the most this gateway takes", "request_too_large",
        CLOSE,
    )  # fmt: skip
