"""The one connection outward: requests to the configured providers, and to nobody else."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from refold._gateway.server.asgi import GatewayError
from refold._gateway.upstream.connection_pool import (
    LONGEST_FIELD,
    BadRequest,
    Connector,
    Pool,
    UpstreamResponse,
    proxy_of,
)
from refold._gateway.wire.compression import READABLE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from refold._gateway.server.asgi import Headers
    from refold._gateway.settings import GatewaySettings

__all__ = ["Upstream", "from_upstream", "to_upstream"]

HOP = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade", b"host", b"content-length", b"expect", b"forwarded",
        b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"cookie",
    }
)  # fmt: skip
BACK = (HOP - {b"content-length"}) | {b"set-cookie"}
OURS = b"x-refold-"
ENCODINGS = re.compile(
    rf"\b({'|'.join(READABLE)}|identity)\b".encode()
)  # what the usage in an answer can be read through
SEGMENTS = re.compile(r"[/\\]")
DOTS = frozenset({".", ".."})
MOST = 1_024  # addresses that are remembered
VERSION = re.compile(r"/v\d+(?:alpha|beta)?$")


class Upstream:
    """Sends requests to the configured providers over a pool of connections; made inside the event loop."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._bases = {name: url.rstrip("/") for name, url in settings.upstreams.items()}
        connector = Connector(limit=settings.connections, keepalive_timeout=settings.keepalive, ttl_dns_cache=300)
        timeout = aiohttp.ClientTimeout(total=None, sock_read=settings.timeout, sock_connect=settings.connect_timeout)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            max_line_size=LONGEST_FIELD,
            max_field_size=LONGEST_FIELD,
        )
        self._pool = Pool(connector, timeout)
        self._known: dict[tuple[str, str], URL] = {}

    def address(self, provider: str, path: str, query: bytes) -> URL:
        """Return where a path of a provider is.

        Raises:
            Refusal: the provider is not configured (404), or a path that would leave what is configured (400).
        """
        found = None if query else self._known.get((provider, path))
        return found or self._made(provider, path, query)

    def _made(self, provider: str, path: str, query: bytes) -> URL:
        base = self._bases.get(provider)
        if base is None:
            said = f"this gateway has no upstream for {provider}: use another provider, or start it with one"
            raise GatewayError(404, said, "no_upstream")
        if not path.startswith("/") or not DOTS.isdisjoint(SEGMENTS.split(unquote(path))):
            raise GatewayError(
                400, "a path that leads out of its own beginning is not sent on: write it out", "bad_path"
            )
        version, whole = VERSION.search(base), path
        if version and (path == version[0] or path.startswith(version[0] + "/")):
            path = path[len(version[0]) :]  # the base names the version already
        elif provider == "openai" and path.startswith("/v1/") and urlsplit(base).path:
            path = path[3:]  # OpenAI's clients put nothing but /chat/completions behind a base
        url = URL(f"{base}{path}" + (f"?{query.decode('latin-1')}" if query else ""), encoded=True)
        if not query and len(self._known) < MOST:  # a query may hold a client's key
            self._known[provider, whole] = url
        return url

    async def send(
        self, method: str, url: URL, headers: Headers, body: bytes | AsyncIterator[bytes] | None
    ) -> UpstreamResponse:
        """Send a request and return the answer with its body still to be read.

        Raises:
            Refusal: upstream cannot be reached (502) or says nothing in time (504).
        """
        try:
            if isinstance(body, bytes) and url.raw_user is None:
                return await self._pool.send(method, url, headers, body)
            if url.raw_user is not None:  # what the address itself says goes before it, as with clients of their own
                headers = [header for header in headers if header[0] != b"authorization"]
            proxy, proxy_auth = proxy_of(url)
            return await self._session.request(
                method,
                url,
                proxy=proxy,
                proxy_auth=proxy_auth,
                headers=[(name.decode("latin-1"), _text(value)) for name, value in headers],
                data=body,
                allow_redirects=False,  # a redirect would carry a client's key to another host
            )
        except TimeoutError as error:
            said = f"{url.host_port_subcomponent} did not answer in time: try again, or start with a longer --timeout"
            raise GatewayError(504, said, "upstream_timeout") from error
        except BadRequest:
            raise GatewayError(
                400, "a header of the request is not one line: send it without line ends", "bad_header"
            ) from None
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            if isinstance(error.__cause__, GatewayError):  # of the client's own body, on its way
                raise error.__cause__ from None
            said = f"{url.host_port_subcomponent} cannot be reached ({type(error).__name__})"
            remedy = "try again, or see what address the gateway was started with"
            raise GatewayError(502, f"{said}: {remedy}", "upstream_down") from error

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


def to_upstream(headers: Headers) -> Headers:
    """Return a client's headers as upstream gets them: without those of one hop, and without ours."""
    out: Headers = []
    named: set[bytes] = set()
    for header in headers:
        name = header[0]
        if name in HOP:
            if name == b"connection":
                named.update(token.strip() for token in header[1].lower().split(b","))
        elif name == b"accept-encoding":
            out.append((name, _encodings(header[1])))
        elif not name.startswith(OURS):
            out.append(header)
    return [header for header in out if header[0] not in named] if named else out


def _text(value: bytes) -> str:
    """Return a header's value as the text that aiohttp writes as these bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


@lru_cache(64)
def _encodings(accepted: bytes) -> bytes:
    return b", ".join(ENCODINGS.findall(accepted)) or b"identity"


def from_upstream(answer: UpstreamResponse) -> Headers:
    """Return the headers of an answer as the client gets them; a length that was told stays."""
    return [(low, value) for name, value in answer.raw_headers if (low := _back(name))]


@lru_cache(1_024)
def _back(name: bytes) -> bytes:
    low = name.lower()
    return b"" if low in BACK or low.startswith(OURS) else low
