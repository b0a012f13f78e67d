"""Opens a WebSocket upstream, as bytes that nobody here reads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp

from refold._gateway.server.asgi import GatewayError

if TYPE_CHECKING:
    from yarl import URL

    from refold._gateway.server.asgi import Headers

__all__ = ["open_tunnel"]

OFFER = b"connection: Upgrade\r\nupgrade: websocket\r\n"


async def open_tunnel(url: URL, headers: Headers, timeout: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection on which upstream was asked for a WebSocket; its response comes first.

    `timeout` is seconds for the connection. A proxy of the environment is not used.

    Raises:
        GatewayError: upstream cannot be reached (502).
    """
    host, secure = url.raw_host or "", url.scheme == "https"
    if (login := aiohttp.BasicAuth.from_url(url)) is not None:  # it replaces the client's
        headers = [header for header in headers if header[0] != b"authorization"]
        headers.append((b"authorization", login.encode().encode()))
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    start = f"GET {url.raw_path_qs} HTTP/1.1\r\nhost: {url.host_port_subcomponent}\r\n".encode()
    head = start + OFFER + lines + b"\r\n"
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(host, url.port, ssl=secure or None)
    except OSError as error:  # a timeout among them
        raise GatewayError(502, f"the provider cannot be reached ({type(error).__name__})", "upstream_down") from error
    writer.write(head)
    return reader, writer
