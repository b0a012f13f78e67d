"""Requests over aiohttp's connections, written as the bytes they are.

A session of aiohttp makes a request out of parts: headers merged, cookies looked up, a payload wrapped, a task that
writes it. What a gateway sends on is whole already, so it goes out in one write; connecting, TLS, pooling, reading the
answer and its timeouts are aiohttp's.
"""

from __future__ import annotations

import asyncio
from functools import cached_property, partial
from time import monotonic
from typing import TYPE_CHECKING, Protocol, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import get_env_proxy_for_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection
    from yarl import URL

    from refold._gateway.server.asgi import Headers

__all__ = ["LONGEST_FIELD", "BadRequest", "Connector", "Pool", "UpstreamResponse", "proxy_of"]

LONGEST_FIELD = 64 * 1024  # bytes of a line in the head of an answer
BUFFER = 64 * 1024  # bytes of an answer that wait for a slow client
SMALL = 16 * 1024  # bytes that are copied to be written with the head
MOST = 1_024  # addresses whose lines are remembered
STALE = 1.0  # seconds in which a connection shows that its server had closed it before the request was sent


class BadRequest(Exception):  # the client is told so
    """A header that cannot be sent on: it would end its line."""


class UpstreamResponse(Protocol):
    """An answer from upstream whose body is still to be read; aiohttp's own response is one."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]: ...
    @property
    def content(self) -> aiohttp.StreamReader: ...
    def close(self) -> None:
        """Drop the connection where the answer has not come to its end."""


class _RawResponse:
    """An answer that gives its connection back to the pool when it has come to its end."""

    __slots__ = ("_connection", "content", "headers", "raw_headers", "status")

    def __init__(self, connection: Connection, message: aiohttp.http.RawResponseMessage, content: aiohttp.StreamReader):
        self._connection: Connection | None = connection
        self.status: int = message.code
        self.headers: Mapping[str, str] = message.headers
        self.raw_headers = message.raw_headers
        self.content = content
        content.on_eof(self._ended)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __del__(self) -> None:  # whoever was cancelled in between has closed nothing
        self.close()

    def _ended(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        transport = connection.transport
        if transport is None or transport.get_write_buffer_size():  # answered before the request was sent
            connection.close()
        else:
            connection.release()


def proxy_of(url: URL) -> tuple[URL | None, aiohttp.BasicAuth | None]:
    """Return the proxy that the environment names for a server, as clients of their own heed it; it sees no words.

    Servers without TLS, which stand nearby, are asked without.
    """
    try:
        return get_env_proxy_for_url(url) if url.scheme == "https" else (None, None)
    except LookupError:
        return None, None


class _Stale(Exception):  # the pool sends once more
    """A connection that was used before has been closed by its server without a byte of an answer."""


class _Handler(ResponseHandler):
    """An end of a connection that knows whether it was used before, and whether its server said anything since."""

    used = False
    heard = False

    def data_received(self, data: bytes) -> None:
        self.heard = True
        super().data_received(data)


class Connector(aiohttp.TCPConnector):
    """Connects to servers, and keeps connections to be used again."""

    def __init__(self, *, limit: int = 100, keepalive_timeout: float = 15, ttl_dns_cache: int = 10) -> None:
        super().__init__(limit=limit, keepalive_timeout=keepalive_timeout, ttl_dns_cache=ttl_dns_cache)
        self._factory = cast("partial[ResponseHandler]", partial(_Handler, loop=self._loop))


class _Origin(aiohttp.ClientRequest):
    """What a connector asks a request for, to connect: always the same for one server."""

    @cached_property
    def connection_key(self) -> ConnectionKey:  # theirs is made anew each time
        return super().connection_key


class Pool:
    """Sends requests over the connections of a connector."""

    def __init__(self, connector: Connector, timeout: aiohttp.ClientTimeout) -> None:
        self._connector = connector
        self._timeout = timeout
        self._origins: dict[URL, aiohttp.ClientRequest] = {}
        self._known: dict[tuple[str, URL], tuple[bytes, aiohttp.ClientRequest]] = {}

    async def send(self, method: str, url: URL, headers: Headers, body: bytes) -> UpstreamResponse:
        """Send a request and return its answer when the head of it is there.

        A server may close an idle connection in the moment in which it is used again. Such a request is sent once more,
        on a new connection; one that an answer was begun to, or that had a new connection, never is.

        Raises:
            BadRequest: a header is not one line.
            aiohttp.ClientError, HttpProcessingError, OSError, TimeoutError: upstream cannot be reached, or misspeaks.
        """
        line, origin = self._known.get((method, url)) or self._addressed(method, url)
        head = b"".join([b"%s: %s\r\n" % header for header in headers])
        if head.count(b"\n") != len(headers) or head.count(b"\r") != len(headers) or b"\0" in head:
            raise BadRequest
        head = b"%s%scontent-length: %d\r\n\r\n" % (line, head, len(body))
        connection = await self._connector.connect(origin, [], self._timeout)
        try:
            return await self._asked(connection, method, head, body)
        except _Stale:
            return await self._asked(await self._fresh(origin), method, head, body)

    async def _fresh(self, origin: aiohttp.ClientRequest) -> Connection:
        """Return a connection that was never used; idle ones to that server may be as stale, and are closed."""
        while cast("_Handler", (connection := await self._connector.connect(origin, [], self._timeout)).protocol).used:
            connection.close()
        return connection

    async def _asked(self, connection: Connection, method: str, head: bytes, body: bytes) -> UpstreamResponse:
        protocol = cast("_Handler", connection.protocol)
        again, protocol.used, protocol.heard = protocol.used, True, False
        sent = monotonic()
        try:
            protocol.set_response_params(
                skip_payload=method == "HEAD", read_until_eof=True, auto_decompress=False, read_bufsize=BUFFER,
                read_timeout=self._timeout.sock_read, max_line_size=LONGEST_FIELD, max_field_size=LONGEST_FIELD,
            )  # fmt: skip
            assert protocol.transport is not None
            if len(body) < SMALL:
                protocol.transport.write(head + body)
            else:
                protocol.transport.writelines((head, body))
            protocol.start_timeout()
            while True:
                message, content = await protocol.read()
                if message.code >= 200 or message.code == 101:
                    return _RawResponse(connection, message, content)
        except BaseException as error:
            connection.close()
            lost = isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError))
            if lost and again and not protocol.heard and monotonic() - sent < STALE:
                raise _Stale from error
            raise

    def _addressed(self, method: str, url: URL) -> tuple[bytes, aiohttp.ClientRequest]:
        base = url.origin()
        origin = self._origins.get(base)
        if origin is None:
            loop = asyncio.get_running_loop()
            proxy, proxy_auth = proxy_of(base)
            origin = _Origin("POST", base, loop=loop, proxy=proxy, proxy_auth=proxy_auth)
            self._origins[base] = origin
        line = f"{method} {url.raw_path_qs} HTTP/1.1\r\nhost: {url.host_port_subcomponent}\r\n".encode()
        if not url.raw_query_string and len(self._known) < MOST:  # a query may hold a client's key
            self._known[method, url] = line, origin
        return line, origin
