"""Closes connections on which the head of a request does not arrive in time.

Theory of operation. uvicorn bounds the size of a head and closes idle connections, but waits forever for a head that
has begun or that never begins. `HeadTimeout` stands between the event loop and uvicorn's protocol, and in front of the
application, with the public interfaces of both:

    connected, or data on an idle connection -> timer runs -> the application gets a request -> timer stops
                                                           -> time is over                   -> connection closed

The peer's address, which the scope of a request names, says which connection a request came by.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import uvicorn

if TYPE_CHECKING:
    from refold._gateway.server.asgi import Receive, Scope, Send

__all__ = ["HeadTimeout", "bounded_protocol"]


class HeadTimeout(asyncio.Protocol):
    """A connection that passes all on to uvicorn's protocol, and is closed where a head does not arrive in time."""

    seconds = 20.0
    served_by: type[asyncio.Protocol]
    connections: dict[Any, HeadTimeout]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._protocol = self.served_by(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._requests = 0  # that the application works on

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._peer = transport.get_extra_info("peername")
        self.connections[self._peer] = self
        self._start_timer()
        self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._timer is None and not self._requests:
            self._start_timer()
        self._protocol.data_received(data)

    def request_began(self) -> None:
        """Stop the timer: the head is complete."""
        self._requests += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def request_ended(self) -> None:
        """Count a request as done; the next data begins a head."""
        self._requests -= 1

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.connections.pop(self._peer, None)
        self._protocol.connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.seconds, self._transport.close)


def bounded_protocol(seconds: float) -> type[HeadTimeout]:
    """Return a protocol class for `uvicorn.Config(http=...)` that allows this many seconds for a head."""
    config = uvicorn.Config(_no_application, http="h11", log_config=None)
    config.load()
    attributes = {"seconds": seconds, "served_by": config.http_protocol_class, "connections": {}}
    return type("BoundedProtocol", (HeadTimeout,), attributes)


async def _no_application(scope: Scope, receive: Receive, send: Send) -> None:
    """Stand in for an application while uvicorn resolves its protocol class."""
