"""Who may come in: tokens, and the marks by which a web page that reaches for the loopback address is known."""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import TYPE_CHECKING

from refold.gateway.http import Refusal
from refold.gateway.settings import is_loopback

if TYPE_CHECKING:
    from refold.gateway.settings import Settings

__all__ = ["Door"]

OPEN = frozenset({"/livez", "/readyz"})  # asked by machines that hold no token
PREFIX = "/token/"  # for clients of which nothing can be changed but the base URL


class Door:
    """Admits requests to a gateway."""

    def __init__(self, settings: Settings) -> None:
        self._token = settings.token.encode()
        self._local = is_loopback(settings.host)

    def admitted(self, path: str, headers: dict[bytes, bytes]) -> str:
        """Return the path of a request that may come in, without a token in it.

        Raises:
            Refusal: a wrong token (401), or a name or origin that is not this machine's (403).
        """
        given = headers.get(b"x-refold-token", b"")
        if path.startswith(PREFIX):
            said, slash, rest = path[len(PREFIX) :].partition("/")
            given, path = given or said.encode(), slash + rest
        if path in OPEN:
            return path
        if self._token and not hmac.compare_digest(given, self._token):
            raise Refusal(401, "this gateway asks for its token in the header x-refold-token", "gateway_token")
        if self._local and not self._token and not self._from_here(headers):
            raise Refusal(403, "this gateway serves this machine alone", "gateway_origin")
        return path

    def _from_here(self, headers: dict[bytes, bytes]) -> bool:
        """Tell whether host and origin are this machine's: a page elsewhere may have its own name point here."""
        origin = headers.get(b"origin", b"")
        return _named(headers.get(b"host", b"")) and (not origin or _named(origin.partition(b"//")[2]))


@lru_cache(256)
def _named(host: bytes) -> bool:
    name = host.decode("latin-1")
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    return is_loopback(name.lower())
