"""Asks upstream for a WebSocket; what follows its consent are bytes that nobody here reads.

Upstream gets nothing of the client behind the request until it has answered 101: before that it would take it for
further requests, which nobody has admitted.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import aiohttp
import h11

from refold._gateway.server.asgi import GatewayError
from refold._gateway.upstream.connector import invalid_certificate

if TYPE_CHECKING:
    from yarl import URL

    from refold._gateway.server.asgi import Headers

__all__ = ["UpgradeResponse", "open_tunnel"]

OFFER = [(b"connection", b"Upgrade"), (b"upgrade", b"websocket")]
MAX_HEAD = 64 * 1024  # bytes of the head of a response
MAX_READ = 64 * 1024
ANNOUNCING = (100, 102, 103)  # statuses that only say that a response comes


class UpgradeResponse:
    """The response to a request for a WebSocket: its status, its headers, and its body unless it is `accepted`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout: float) -> None:
        self.reader = reader
        self.writer = writer
        self._timeout = timeout
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        self._head: h11.InformationalResponse | h11.Response

    @property
    def accepted(self) -> bool:
        """Whether the connection is a WebSocket now."""
        return self.status == 101

    @property
    def status(self) -> int:
        """The status code."""
        return self._head.status_code

    @property
    def raw_headers(self) -> Headers:
        """The headers with their names as they came."""
        return list(self._head.headers.raw_items())

    @property
    def opening(self) -> bytes:
        """The head of a response that is `accepted`, as the client gets it, and what came behind it."""
        headers = [header for header in self.raw_headers if header[0].lower() != b"set-cookie"]
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        return b"HTTP/1.1 101 Switching Protocols\r\n" + lines + b"\r\n" + self._protocol.trailing_data[0]

    async def begin(self, request: h11.Request) -> None:
        """Send a request and read the head of its response.

        Raises:
            GatewayError: as `read` does.
            h11.LocalProtocolError: the request cannot be sent as it is.
        """
        self.writer.write((self._protocol.send(request) or b"") + (self._protocol.send(h11.EndOfMessage()) or b""))
        while True:
            event = await self._next()
            if isinstance(event, h11.InformationalResponse | h11.Response) and event.status_code not in ANNOUNCING:
                self._head = event
                return

    async def read(self) -> bytes:
        """Return the next piece of the body; nothing at its end.

        Raises:
            GatewayError: upstream broke off (502), or was silent for too long (504).
        """
        while True:
            event = await self._next()
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if isinstance(event, h11.EndOfMessage):
                return b""

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()

    async def _next(self) -> object:
        try:
            while (event := self._protocol.next_event()) is h11.NEED_DATA:
                async with asyncio.timeout(self._timeout):
                    self._protocol.receive_data(await self.reader.read(MAX_READ))
        except TimeoutError:
            message = "the provider did not answer in time: try again, or start with a longer --timeout"
            raise GatewayError(504, message, "upstream_timeout") from None
        except (OSError, h11.RemoteProtocolError) as error:
            raise _broken(type(error).__name__) from error
        if isinstance(event, h11.ConnectionClosed):
            raise _broken("closed")
        return event


async def open_tunnel(url: URL, headers: Headers, connect_timeout: float, timeout: float) -> UpgradeResponse:
    """Ask upstream for a WebSocket and return its response, which is to be closed.

    The timeouts are seconds for the connection, and for each part of the response. A proxy of the environment is not
    used.

    Raises:
        GatewayError: upstream cannot be reached, has no valid certificate or breaks off (502), or does not respond in
            time (504).
    """
    if (login := aiohttp.BasicAuth.from_url(url)) is not None:  # it replaces the client's
        headers = [header for header in headers if header[0] != b"authorization"]
        headers.append((b"authorization", login.encode().encode()))
    try:
        async with asyncio.timeout(connect_timeout):
            secure = url.scheme == "https" or None
            reader, writer = await asyncio.open_connection(url.raw_host or "", url.port, ssl=secure)
    except ssl.SSLCertVerificationError as error:
        raise invalid_certificate(error) from error
    except OSError as error:  # a timeout among them
        raise _broken(type(error).__name__) from error
    answer = UpgradeResponse(reader, writer, timeout)
    try:
        head = [(b"host", (url.host_port_subcomponent or "").encode()), *OFFER, *headers]
        await answer.begin(h11.Request(method=b"GET", target=url.raw_path_qs.encode(), headers=head))
    except h11.LocalProtocolError:
        answer.close()
        raise GatewayError(400, "a header of the request cannot be sent on: send it in ASCII", "bad_header") from None
    except BaseException:
        answer.close()
        raise
    return answer


def _broken(why: str) -> GatewayError:
    return GatewayError(502, f"the provider cannot be reached ({why})", "upstream_down")
