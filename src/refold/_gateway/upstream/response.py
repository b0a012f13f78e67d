"""A response from upstream with its body still to be read, and the error raised if upstream breaks off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

from refold._gateway.server.asgi import GatewayError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

__all__ = ["UpstreamAborted", "UpstreamResponse"]

READ_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class UpstreamAborted(Exception):  # once the response has begun, the server closes the client's connection too
    """Upstream broke off in the middle of a response, or was silent for too long."""

    code = "upstream_aborted"  # the `error.type` of its span

    def refusal(self) -> GatewayError:
        """Return the error for a client to which no part of the response was sent yet."""
        return GatewayError(502, f"the provider broke off ({self})", "upstream_down")


class UpstreamResponse:
    """The status, the headers and the body of a response, whose errors are `UpstreamAborted`.

    The body is bytes as upstream sent them, read once: piece by piece (`async for piece in response`) or as a whole.
    A piece that was read to look at it can be put back.
    """

    __slots__ = ("_content", "_response", "_unread", "headers", "raw_headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.raw_headers = response.raw_headers
        self._response = response
        self._content = response.content
        self._unread = b""

    @property
    def at_end(self) -> bool:
        """Whether all of the body was read."""
        return not self._unread and self._content.at_eof()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body as they arrive."""
        while piece := await self.read_any():
            yield piece

    async def read_any(self) -> bytes:
        """Return what has arrived, waiting for the next piece where nothing has; empty at the end.

        Raises:
            UpstreamAborted: upstream broke off.
        """
        if self._unread:
            return self._take_unread()
        try:
            return await self._content.readany()
        except READ_ERRORS as error:
            raise UpstreamAborted(type(error).__name__) from error

    async def read(self) -> bytes:
        """Return the rest of the body.

        Raises:
            UpstreamAborted: upstream broke off.
        """
        return b"".join([piece async for piece in self])

    def read_nowait(self) -> bytes:
        """Return what has arrived, which may be nothing.

        Raises:
            UpstreamAborted: upstream broke off.
        """
        try:
            return self._take_unread() + self._content.read_nowait()
        except READ_ERRORS as error:
            raise UpstreamAborted(type(error).__name__) from error

    def unread(self, data: bytes) -> None:
        """Put data back in front of what is still to be read."""
        self._unread = data + self._unread

    def close(self) -> None:
        """Drop the connection where the body has not come to its end; else it has been given back already."""
        if not self._response.closed:
            self._response.close()

    def _take_unread(self) -> bytes:
        data, self._unread = self._unread, b""
        return data
