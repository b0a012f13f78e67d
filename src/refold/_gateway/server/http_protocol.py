"""Heads of requests: bounded in size and time on every request of a connection, and without what none here takes up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["LONGEST_HEAD", "BoundedHTTPProtocol"]

LONGEST_HEAD = 64 * 1024  # bytes of request line and headers; more is nobody's conversation


class _Nowhere(list[tuple[bytes, bytes]]):
    """A list that keeps nothing: what follows a body in trailers was seen by nobody who let the request in."""

    def append(self, _: tuple[bytes, bytes]) -> None:
        """Forget it."""


class BoundedHTTPProtocol(HttpToolsProtocol):
    """HTTP whose heads must come in time and have a bounded size.

    An offer of another protocol is passed over, as HTTP has it for whoever does not take it up: the parser would
    leave out the body of such a request (Java's own client offers HTTP/2 with each one). What was offered stands in the
    request's headers as `upgrade`.
    """

    head_timeout = 20.0
    _late: asyncio.TimerHandle | None = None
    _in_head = False
    _size = 0
    _data = b""
    _offered = b""  # another protocol

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        idle = self.timeout_keep_alive_task is not None
        self._data = data
        super().data_received(data)
        self._data = b""
        if self._in_head:
            self._size += len(data)
            if self._size > LONGEST_HEAD:
                self.transport.close()
        if self._late is None and (self._in_head or (idle and self.cycle.response_complete)):
            self._await_head()

    def on_message_begin(self) -> None:
        self._in_head, self._size = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._late is not None:
            self._late.cancel()
            self._late = None
        if self.parser.should_upgrade():
            return
        self.headed()
        self.headers = _Nowhere()

    def headed(self) -> None:
        """Begin with a request whose head is there."""
        super().on_headers_complete()
        if self._offered:
            self.scope["headers"] = [*self.scope["headers"], (b"upgrade", self._offered)]
            self._offered = b""

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._late = self.loop.call_later(self.head_timeout, self.transport.close)

    def _unsupported_upgrade_warning(self) -> None:
        """Read a request that offers another protocol once more without the offer; called where that was noticed."""
        found = sys.exception() if sys.version_info >= (3, 12) else sys.exc_info()[1]
        method, data = self.parser.get_method(), self._data
        if method == b"CONNECT" or not isinstance(found, httptools.HttpParserUpgrade):
            self.send_400_response("This server is no proxy.")
            return
        kept = [header for header in self.headers if header[0] != b"upgrade"]
        self._offered = next((value for name, value in self.headers if name == b"upgrade"), b"")
        lines = [b"%s %s HTTP/1.1" % (method, self.url), *(b"%s: %s" % header for header in kept)]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join(lines) + b"\r\n\r\n" + data[found.args[0] :])
