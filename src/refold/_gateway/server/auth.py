"""Who may come in: tokens, and the marks by which a web page that reaches for the loopback address is known."""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from refold._gateway.server.asgi import CLOSE, GatewayError
from refold._gateway.settings import is_loopback

if TYPE_CHECKING:
    from refold._gateway.server.asgi import Headers
    from refold._gateway.settings import GatewaySettings

__all__ = ["Auth", "once"]

OPEN = frozenset({"/livez", "/readyz"})  # asked by machines that hold no token
SINGLE = frozenset({b"host", b"origin", b"content-length", b"transfer-encoding", b"content-encoding"})
PREFIX = "/token/"  # for clients of which nothing can be changed but the base URL


class Auth:
    """Admits requests to a gateway."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._token = settings.token.encode()
        self._local = is_loopback(settings.host)

    def admitted(self, path: str, headers: dict[bytes, bytes]) -> str:
        """Return the path of a request that may come in, without a token in it.

        Raises:
            GatewayError: a wrong token (401), a name or origin that is not this machine's (403), or a body that
                is coded on its way (501): compressed ones say so in content-encoding.
        """
        token = headers.get(b"x-refold-token", b"")
        if path.startswith(PREFIX):
            secret, slash, rest = path[len(PREFIX) :].partition("/")
            token, path = token or unquote_to_bytes(secret), slash + rest
        if path in OPEN:
            return path
        if self._token and not hmac.compare_digest(token, self._token):
            message = "this gateway asks for its token in the header x-refold-token"
            raise GatewayError(401, message, "gateway_token", CLOSE)
        if self._local and not self._token and not self._from_here(headers):
            message = (
                "this gateway serves this machine alone: ask it by 127.0.0.1, or start it with REFOLD_GATEWAY_TOKEN set"
            )
            raise GatewayError(403, message, "gateway_origin", CLOSE)
        if headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise GatewayError(
                501, "no transfer-encoding but chunked is read here: send the body so", "bad_header", CLOSE
            )
        return path

    def _from_here(self, headers: dict[bytes, bytes]) -> bool:
        """Tell whether host and origin are this machine's: a page elsewhere may have its own name point here."""
        origin = headers.get(b"origin", b"")
        return _named(headers.get(b"host", b"")) and (not origin or _named(origin.partition(b"//")[2]))


def once(headers: Headers) -> None:
    """See that a header by which a request is judged stands in it once.

    Raises:
        GatewayError: it stands twice, so that others may read another one than is read here (400).
    """
    names = [name for name, _ in headers if name in SINGLE or name.startswith(b"x-refold-")]
    if len(names) != len(set(names)):
        raise GatewayError(400, "a header that may stand once stands twice: send one", "bad_header", CLOSE)


@lru_cache(256)
def _named(host: bytes) -> bool:
    name = host.decode("latin-1") if b"@" not in host else ""
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    return is_loopback(name.lower())
