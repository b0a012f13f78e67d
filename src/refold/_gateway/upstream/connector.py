"""Connections to providers that count what arrives on them.

aiohttp reports how a connection ended, but not whether a part of a response had arrived before: after a reset, half a
head is lost without a trace. `CountingConnector` uses the two public interfaces below it. aiohttp's connector returns
each connection from `connect`; the protocol of a connection's transport may be replaced by one that forwards all calls.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import aiohttp

from refold._gateway.server.asgi import GatewayError

__all__ = ["Attempt", "CountingConnector", "invalid_certificate"]


class _CountingProtocol(asyncio.Protocol):
    """Forwards all calls to aiohttp's protocol, and counts the bytes received."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self.received = 0
        self._protocol = protocol
        self.connection_lost = protocol.connection_lost  # type: ignore[method-assign]
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        self._protocol.data_received(data)


class Attempt:
    """One attempt to send a request: what a session with such a connector sends in this task from now on."""

    def __init__(self) -> None:
        self._protocol: _CountingProtocol | None = None
        self._received_before = 0
        self._reused = False
        _ATTEMPT.set(self)

    @property
    def may_repeat(self) -> bool:
        """Whether the connection had been used before, and not one byte arrived in answer to this request."""
        return self._protocol is not None and self._reused and self._protocol.received == self._received_before

    def use(self, transport: asyncio.Transport) -> None:
        """Count on this connection from now on."""
        protocol = transport.get_protocol()
        self._reused = isinstance(protocol, _CountingProtocol)
        if not isinstance(protocol, _CountingProtocol):
            assert isinstance(protocol, asyncio.Protocol)
            protocol = _CountingProtocol(protocol)
            transport.set_protocol(protocol)
        self._protocol, self._received_before = protocol, protocol.received


_ATTEMPT: ContextVar[Attempt] = ContextVar("attempt")


class CountingConnector(aiohttp.TCPConnector):
    """A pool of connections; the present `Attempt` learns which of them it uses."""

    async def connect(self, *args: Any, **kwargs: Any) -> aiohttp.connector.Connection:
        connection = await super().connect(*args, **kwargs)
        attempt = _ATTEMPT.get(None)
        transport = connection.transport
        if attempt is not None and transport is not None:
            attempt.use(transport)
        return connection


def invalid_certificate(error: Exception) -> GatewayError:
    """Return the error for a provider whose certificate could not be verified."""
    reason = getattr(error, "verify_message", "") or type(error).__name__
    message = f"the provider's certificate is not valid ({reason}), so nothing was sent: have it renewed"
    return GatewayError(502, message, "upstream_certificate")
