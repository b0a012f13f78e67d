"""Authentication by token, protection against DNS rebinding, and refusal of ambiguous headers."""

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

__all__ = ["Auth", "reject_duplicate_headers"]

OPEN = frozenset({"/livez", "/readyz"})  # called by probes that have no token
SINGLE = frozenset({b"host", b"origin", b"content-length", b"transfer-encoding", b"content-encoding"})
PREFIX = "/token/"  # for clients that can change nothing but the base URL


class Auth:
    """Checks requests to a gateway."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._token = settings.token.encode()
        self._local = is_loopback(settings.host)

    def check(self, path: str, headers: dict[bytes, bytes]) -> str:
        """Return the path of an authorized request, without the token in it.

        Raises:
            GatewayError: a wrong token (401), a host or origin that is not this machine (403), or a transfer-encoding
                other than chunked (501); compressed bodies belong to content-encoding.
        """
        token = headers.get(b"x-refold-token", b"")
        if path.startswith(PREFIX):
            in_path, slash, rest = path[len(PREFIX) :].partition("/")
            token, path = token or unquote_to_bytes(in_path), slash + rest
        if path in OPEN:
            return path
        if self._token and not hmac.compare_digest(token, self._token):
            message = "this gateway needs its token in the header x-refold-token"
            raise GatewayError(401, message, "gateway_token", CLOSE)
        if self._local and not self._token and not self._from_here(headers):
            message = (
                "this gateway serves this machine only: call it at 127.0.0.1, or start it with REFOLD_GATEWAY_TOKEN set"
            )
            raise GatewayError(403, message, "gateway_origin", CLOSE)
        if headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise GatewayError(
                501, "no transfer-encoding but chunked is supported: send the body chunked", "bad_header", CLOSE
            )
        return path

    def _from_here(self, headers: dict[bytes, bytes]) -> bool:
        """Return whether host and origin are this machine: a web page may have its own name resolve to loopback."""
        origin = headers.get(b"origin", b"")
        return _is_this_machine(headers.get(b"host", b"")) and (
            not origin or _is_this_machine(origin.partition(b"//")[2])
        )


def reject_duplicate_headers(headers: Headers) -> None:
    """Refuse a request in which a header that decides about it occurs twice: another server may read the other one.

    Raises:
        GatewayError: there are two of one (400).
    """
    names = [name for name, _ in headers if name in SINGLE or name.startswith(b"x-refold-")]
    if len(names) != len(set(names)):
        raise GatewayError(400, "a header that may stand once stands twice: send one", "bad_header", CLOSE)


@lru_cache(256)
def _is_this_machine(host: bytes) -> bool:
    name = host.decode("latin-1") if b"@" not in host else ""
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    return is_loopback(name.lower())
