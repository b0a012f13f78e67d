"""Requests to the configured providers, and to no other server, over a session of aiohttp.

A request is forwarded as it came: no cookies, no redirects, no header that the client did not send except `host` and
`content-length`. A server may close an idle connection in the moment in which it is used again; aiohttp repeats only
idempotent requests then. A POST to a model is repeated once, on a connection of its own, if the lost connection had
been used before and not one byte of a response had arrived (`CountingConnector`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from refold._gateway.server.asgi import GatewayError
from refold._gateway.server.auth import CREDENTIALS
from refold._gateway.upstream.connector import Attempt, CountingConnector, invalid_certificate
from refold._gateway.upstream.response import UpstreamResponse
from refold._gateway.wire.compression import READABLE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from refold._gateway.server.asgi import Headers
    from refold._gateway.settings import GatewaySettings
    from refold._gateway.upstream.tunnel import UpgradeResponse

__all__ = ["Upstream", "from_upstream", "sendable", "to_upstream"]

MAX_LINE = 64 * 1024  # bytes of a line in the head of a response
BUFFER = 64 * 1024  # bytes of a response that wait for a slow client
ONE_PIECE = 1024 * 1024  # bytes of a body that are written at once; aiohttp warns about more
PIECE = 256 * 1024  # bytes of the parts of a longer one
STALE = 1.0  # seconds in which a connection shows that its server had closed it before the request was sent
HOP = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade", b"host", b"content-length", b"expect", b"forwarded",
        b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"cookie",
    }
)  # fmt: skip
# by which some servers take a request for another one than its line says, which is what was looked at here
REWRITING = frozenset(
    {b"x-http-method-override", b"x-http-method", b"x-method-override", b"x-original-url", b"x-rewrite-url"}
)
LASTING = frozenset({b"content-encoding", b"content-type"})  # of the body, whatever `connection` names
BACK = (HOP - {b"content-length"}) | {b"set-cookie"}
OURS = b"x-refold-"
ENCODINGS = re.compile(
    rf"\b({'|'.join(READABLE)}|identity)\b".encode()
)  # what the usage in a response can be read through
SEGMENTS = re.compile(r"[/\\]")
DOTS = frozenset({".", ".."})
MAX_REMEMBERED = 1_024  # addresses
VERSION = re.compile(r"/v\d+(?:alpha|beta)?$")
UNVERSIONED = frozenset({"/messages", "/messages/count_tokens"})  # of clients whose own base URL ends with /v1
KEY_HEADERS = {"openai": b"authorization", "anthropic": b"x-api-key", "gemini": b"x-goog-api-key"}
AZURE = ".azure.com"  # which takes keys, unlike the tokens of its directory, in a header of its own
NOT_MODIFIED = 304
LINE_ENDS = re.compile(rb"[\r\n\0]")
AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")  # headers that aiohttp adds if they are missing


class Upstream:
    """Sends requests to the configured providers; made inside the event loop."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._bases = {name: url.rstrip("/") for name, url in settings.upstreams.items()}
        self._keys = settings.upstream_keys
        self._settings = settings
        self._session = self._new_session(
            CountingConnector(limit=settings.connections, keepalive_timeout=settings.keepalive, ttl_dns_cache=300)
        )
        self._unpooled: aiohttp.ClientSession | None = None  # a new connection for every request
        self._addresses: dict[tuple[str, str], URL] = {}
        self._proxies: dict[str, URL | None] = {}

    def address(self, provider: str, path: str, query: bytes) -> URL:
        """Return the address of a path of a provider.

        Raises:
            GatewayError: the provider is not configured (404), or a path that would leave what is configured (400).
        """
        if provider in self._keys and b"key=" in query:
            query = b"&".join([part for part in query.split(b"&") if not part.startswith(b"key=")])
        known = None if query else self._addresses.get((provider, path))
        if known is not None:
            return known
        base = self._bases.get(provider)
        if base is None:
            message = f"this gateway has no upstream for {provider}: use another provider, or start it with one"
            raise GatewayError(404, message, "no_upstream")
        if not path.startswith("/") or not DOTS.isdisjoint(SEGMENTS.split(unquote(path))):
            raise GatewayError(
                400, "a path that leads out of its own beginning is not sent on: write it out", "bad_path"
            )
        version, whole = VERSION.search(base), path
        if version and (path == version[0] or path.startswith(version[0] + "/")):
            path = path[len(version[0]) :]  # the base names the version already
        elif provider == "openai" and path.startswith("/v1/") and urlsplit(base).path:
            path = path[3:]  # OpenAI's clients put nothing but /chat/completions behind a base
        elif provider == "anthropic" and path in UNVERSIONED and not version:
            path = f"/v1{path}"
        url = URL(f"{base}{path}" + (f"?{query.decode('latin-1')}" if query else ""), encoded=True)
        if not query and len(self._addresses) < MAX_REMEMBERED:  # a query may hold a client's key
            self._addresses[provider, whole] = url
        return url

    def authorized(self, provider: str, headers: Headers, url: URL) -> Headers:
        """Return headers with the gateway's own key for a provider instead of the client's, if it has one."""
        key = self._keys.get(provider)
        if key is None:
            return headers
        name, value = KEY_HEADERS[provider], key.encode()
        if provider == "openai" and (url.host or "").endswith(AZURE):
            name = b"api-key"
        elif provider == "openai":
            value = b"Bearer " + value
        return [*(header for header in headers if header[0] not in CREDENTIALS), (name, value)]

    def headers(self, provider: str, headers: Headers, url: URL) -> CIMultiDict[str]:
        """Return the headers of a client's request as a provider gets them.

        Raises:
            GatewayError: one of them is not one line (400).
        """
        headers = self.authorized(provider, to_upstream(headers), url)
        if url.raw_user is not None:  # the credentials of the address replace the client's
            headers = [header for header in headers if header[0] != b"authorization"]
        return sendable(headers)

    async def send(
        self, method: str, url: URL, headers: CIMultiDict[str], body: bytes | AsyncIterator[bytes] | None
    ) -> UpstreamResponse:
        """Send a request and return the response with its body still to be read.

        Raises:
            GatewayError: upstream cannot be reached, has no valid certificate or answers with no status of a response
                (502), or does not respond in time (504).
        """
        begun, attempt = monotonic(), Attempt()
        try:
            try:
                return _checked(await self._request(self._session, method, url, headers, body))
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                repeatable = body is None or isinstance(body, bytes)
                if not (repeatable and attempt.may_repeat) or monotonic() - begun > STALE:
                    raise
            if self._unpooled is None:
                self._unpooled = self._new_session(aiohttp.TCPConnector(force_close=True, ttl_dns_cache=300))
            return _checked(await self._request(self._unpooled, method, url, headers, body))
        except TimeoutError as error:
            message = "the provider did not answer in time: try again, or start with a longer --timeout"
            raise GatewayError(504, message, "upstream_timeout") from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise invalid_certificate(error.certificate_error) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error.__cause__, GatewayError):  # raised by the client's own body, on its way
                raise error.__cause__ from None
            message = f"the provider cannot be reached ({type(error).__name__})"
            remedy = "try again, or see what address the gateway was started with"
            raise GatewayError(502, f"{message}: {remedy}", "upstream_down") from error

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        if self._unpooled is not None:
            await self._unpooled.close()

    def _request(
        self,
        session: aiohttp.ClientSession,
        method: str,
        url: URL,
        headers: CIMultiDict[str],
        body: bytes | AsyncIterator[bytes] | None,
    ) -> Awaitable[aiohttp.ClientResponse]:
        data: aiohttp.Payload | AsyncIterator[bytes | memoryview] | AsyncIterator[bytes] | None
        if not isinstance(body, bytes):
            data = body
        elif len(body) > ONE_PIECE:
            headers = headers.copy()
            headers["content-length"] = str(len(body))
            data = _parts(body)
        else:
            data = aiohttp.BytesPayload(body)
        return session.request(
            method,
            url,
            proxy=self._proxy(url),
            headers=headers,
            skip_auto_headers=[name for name in AUTOMATIC if name not in headers] or None,
            data=data,
            allow_redirects=False,  # a redirect would carry a client's key to another host
        )

    def _new_session(self, connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_read=self._settings.timeout, sock_connect=self._settings.connect_timeout
            ),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=MAX_LINE,
            max_field_size=MAX_LINE,
            read_bufsize=BUFFER,
        )

    def _proxy(self, url: URL) -> URL | None:
        """Return the proxy that the environment names for a server; it relays encrypted bytes.

        Servers without TLS, which stand nearby, are reached directly.
        """
        if url.scheme != "https" or url.host is None:
            return None
        if url.host not in self._proxies:
            proxy = None if proxy_bypass(url.host) else getproxies().get("https")
            self._proxies[url.host] = URL(proxy) if proxy else None
        return self._proxies[url.host]


def _checked(response: aiohttp.ClientResponse) -> UpstreamResponse:
    """Return a response that may be the one to a request over HTTP.

    Raises:
        GatewayError: its status begins another protocol, which nobody has asked for, or is none (502).
    """
    if not 200 <= response.status < 600:
        response.close()
        raise GatewayError(502, f"the provider answered with the status {response.status}: try again", "upstream_down")
    return UpstreamResponse(response)


async def _parts(body: bytes) -> AsyncIterator[bytes | memoryview]:
    """Yield a body in parts, none of which is copied."""
    view = memoryview(body)
    for start in range(0, len(body), PIECE):
        yield view[start : start + PIECE]


def to_upstream(headers: Headers) -> Headers:
    """Return a client's headers as upstream gets them: without those of one hop or to another place, and ours."""
    out: Headers = []
    named: set[bytes] = set()
    for header in headers:
        name = header[0]
        if name in HOP:
            if name == b"connection":
                named.update(token.strip() for token in header[1].lower().split(b","))
        elif name == b"accept-encoding":
            out.append((name, _encodings(header[1])))
        elif not name.startswith(OURS) and name not in REWRITING:
            out.append(header)
    named -= LASTING
    return [header for header in out if header[0] not in named] if named else out


def sendable(headers: Headers) -> CIMultiDict[str]:
    """Return headers as `Upstream.send` takes them.

    Raises:
        GatewayError: one of them is not one line (400).
    """
    if LINE_ENDS.search(b"".join([value for _, value in headers])):
        raise GatewayError(400, "a header of the request is not one line: send it without line ends", "bad_header")
    return CIMultiDict([(name.decode("latin-1"), _text(value)) for name, value in headers])


def from_upstream(response: UpstreamResponse | UpgradeResponse) -> Headers:
    """Return the headers of a response as the client gets them; the length of a body that upstream stated stays."""
    headers = [(low, value) for name, value in response.raw_headers if (low := _back(name))]
    if response.status != NOT_MODIFIED:
        return headers
    return [header for header in headers if header[0] != b"content-length"]  # of what the client has already


def _text(value: bytes) -> str:
    """Return a header's value as the text that aiohttp writes as these bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


@lru_cache(64)
def _encodings(accepted: bytes) -> bytes:
    return b", ".join(ENCODINGS.findall(accepted)) or b"identity"


@lru_cache(1_024)
def _back(name: bytes) -> bytes:
    low = name.lower()
    return b"" if low in BACK or low.startswith(OURS) else low
