"""Requests over aiohttp's connections, written as the bytes they are.

A session of aiohttp makes a request out of parts: headers merged, cookies looked up, a payload wrapped, a task that
writes it. What a gateway sends on is whole already, so it goes out in one write; connecting, TLS, pooling, reading the
answer and its timeouts are aiohttp's.
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection
    from yarl import URL

    from refold.gateway.http import Headers

__all__ = ["LONGEST_FIELD", "Answer", "BadRequest", "Pool"]

LONGEST_FIELD = 64 * 1024  # bytes of a line in the head of an answer
BUFFER = 64 * 1024  # bytes of an answer that wait for a slow client
SMALL = 16 * 1024  # bytes that are copied to be written with the head
MOST = 1_024  # addresses whose lines are remembered


class BadRequest(Exception):  # the client is told so
    """A header that cannot be sent on: it would end its line."""


class Answer(Protocol):
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


class _Answer:
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


class _Origin(aiohttp.ClientRequest):
    """What a connector asks a request for, to connect: always the same for one server."""

    @cached_property
    def connection_key(self) -> ConnectionKey:  # theirs is made anew each time
        return super().connection_key


class Pool:
    """Sends requests over the connections of a connector."""

    def __init__(self, connector: aiohttp.BaseConnector, timeout: aiohttp.ClientTimeout) -> None:
        self._connector = connector
        self._timeout = timeout
        self._origins: dict[URL, aiohttp.ClientRequest] = {}
        self._known: dict[tuple[str, URL], tuple[bytes, aiohttp.ClientRequest]] = {}

    async def send(self, method: str, url: URL, headers: Headers, body: bytes) -> Answer:
        """Send a request and return its answer when the head of it is there.

        Raises:
            BadRequest: a header is not one line.
            aiohttp.ClientError, HttpProcessingError, OSError, TimeoutError: upstream cannot be reached, or misspeaks.
        """
        line, origin = self._known.get((method, url)) or self._addressed(method, url)
        head = b"".join([b"%s: %s\r\n" % header for header in headers])
        if head.count(b"\n") != len(headers) or head.count(b"\r") != len(headers) or b"\0" in head:
            raise BadRequest
        connection = await self._connector.connect(origin, [], self._timeout)
        try:
            protocol = connection.protocol
            assert protocol is not None
            assert protocol.transport is not None
            protocol.set_response_params(
                skip_payload=method == "HEAD", read_until_eof=True, auto_decompress=False, read_bufsize=BUFFER,
                read_timeout=self._timeout.sock_read, max_line_size=LONGEST_FIELD, max_field_size=LONGEST_FIELD,
            )  # fmt: skip
            whole = b"%s%scontent-length: %d\r\n\r\n" % (line, head, len(body))
            if len(body) < SMALL:
                protocol.transport.write(whole + body)
            else:
                protocol.transport.writelines((whole, body))
            protocol.start_timeout()
            while True:
                message, content = await protocol.read()
                if message.code >= 200 or message.code == 101:
                    return _Answer(connection, message, content)
        except BaseException:
            connection.close()
            raise

    def _addressed(self, method: str, url: URL) -> tuple[bytes, aiohttp.ClientRequest]:
        base = url.origin()
        origin = self._origins.get(base)
        if origin is None:
            loop = asyncio.get_running_loop()
            origin = self._origins[base] = _Origin("POST", base, loop=loop)
        line = f"{method} {url.raw_path_qs} HTTP/1.1\r\nhost: {url.host_port_subcomponent}\r\n".encode()
        if not url.raw_query_string and len(self._known) < MOST:  # a query may hold a client's key
            self._known[method, url] = line, origin
        return line, origin
