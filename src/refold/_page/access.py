"""Who looks at the page: a token, given once, opens a session whose cookie is signed and ends with the token."""

from __future__ import annotations

import hmac
import secrets
import time
from functools import lru_cache
from hashlib import sha256
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, NoReturn, Protocol

from msgspec import Struct
from starlette.exceptions import HTTPException

from refold._page.rates import REMEMBERED, Rates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

__all__ = ["WRONG", "SignIn", "StartToken", "Viewer", "Viewers", "is_of_another_site", "network_of"]

LASTS = 12 * 3600  # seconds of a session
LEEWAY = 60.0  # seconds by which the clocks of processes that share a key may differ
COOKIE = "refold_page"
VIEWS = 600  # requests a minute that a viewer has at least; the list asks for 12, a conversation for 4
WRONG = 30  # tokens a minute that an address may send which are not in force


class Viewer(Struct, frozen=True):
    """Who looks at the page.

    `sees` is the owner whose conversations exist for the viewer, None: those of all. `id` names the token and
    `fingerprint` is a hash of it: a session is valid as long as the token of its id is the same.
    `rate` is how many requests to models a minute the token has, 0 where it says nothing.
    """

    id: str
    sees: str | None
    fingerprint: str
    rate: int = 0

    @property
    def name(self) -> str:
        """The name of the token, which acts are recorded with."""
        return f"{self.sees}/{self.id}" if self.sees else self.id


class Viewers(Protocol):
    """Knows the tokens that open the page."""

    def by_token(self, token: str) -> Viewer | None:
        """Return whose token a text is."""

    def by_id(self, id: str) -> Viewer | None:
        """Return who has the token of an id, as long as it is in force."""


class StartToken:
    """The token of a page without a gateway: made at its start, and good for all conversations of its store."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._viewer = Viewer("start", None, fingerprint(self.token))
        self._once: set[str] = set()

    def once(self) -> str:
        """Return a token that is good for one use: other users of the machine see the arguments of a browser."""
        token = secrets.token_urlsafe(32)
        self._once.add(fingerprint(token))
        return token

    def by_token(self, token: str) -> Viewer | None:
        """Return the one viewer, by the token or by one that was good once."""
        print_of_token = fingerprint(token)
        if print_of_token in self._once:
            self._once.discard(print_of_token)
            return self._viewer
        return self._viewer if hmac.compare_digest(print_of_token, self._viewer.fingerprint) else None

    def by_id(self, id: str) -> Viewer | None:
        """Return the one viewer."""
        return self._viewer if id == self._viewer.id else None


class SignIn:
    """Exchanges tokens for cookies. `key` signs them; processes that share it know each other's sessions."""

    def __init__(self, viewers: Viewers, key: bytes) -> None:
        self._viewers = viewers
        self._key = key
        self._rates = Rates()
        self._ends: dict[str, float] = {}  # when each session that was used ends, by a clock that nobody can set

    def by_token(self, request: Request, token: str) -> Viewer | None:
        """Return whose token a text is that a request holds.

        Raises:
            HTTPException: too many texts of this client's address were no tokens (429).
        """
        if not token:
            return None
        address = network_of(request.client.host if request.client is not None else "")
        if seconds := self._rates.wait(address, WRONG):
            _reject("Too many tokens from your address were not in force.", seconds)
        viewer = self._viewers.by_token(token)
        if viewer is None:
            self._rates.take(address, WRONG)
        return viewer

    def check_rate(self, viewer: Viewer) -> None:
        """Take one of the requests of a viewer, whose token has others for models.

        Raises:
            HTTPException: there are none left (429).
        """
        rate = max(viewer.rate, VIEWS)  # one for models may be less than an open list asks for
        if seconds := self._rates.take(f"viewer {viewer.id}", rate):
            _reject(f"This token opens {rate:,} pages a minute.", seconds)

    def by_cookie(self, request: Request) -> Viewer | None:
        """Return who has the session of a request's cookie; None where it is over, or nobody's."""
        content, _, signature = request.cookies.get(cookie_name(request), "").rpartition("~")
        id, _, ends = content.partition("~")
        viewer = self._viewers.by_id(id) if id else None
        if viewer is None or not hmac.compare_digest(self._signed(viewer, ends), signature.encode()):
            return None  # before the number is read: of what was not signed, that may take long or fail
        return viewer if ends.isdecimal() and self._lasts(content, int(ends)) else None

    def _lasts(self, session: str, ends: int) -> bool:
        """Tell whether a session lasts; where the machine's clock is set back it lasts no longer than before."""
        left, now = ends - time.time(), time.monotonic()
        if not 0 <= left <= LASTS + LEEWAY:
            return False
        if len(self._ends) >= REMEMBERED and session not in self._ends:
            del self._ends[next(iter(self._ends))]
        return now <= self._ends.setdefault(session, now + left)

    def cookie(self, viewer: Viewer) -> str:
        """Return the value of the cookie of a new session."""
        ends = str(int(time.time()) + LASTS)
        return f"{viewer.id}~{ends}~{self._signed(viewer, ends).decode()}"

    def form_token(self, viewer: Viewer) -> str:
        """Return what every form of a viewer that changes something holds, and no other page can know."""
        return self._signed(viewer, "form").decode()

    def is_form_token(self, viewer: Viewer, text: str) -> bool:
        """Tell whether a form holds its token."""
        return hmac.compare_digest(self._signed(viewer, "form"), text.encode("utf-8", "replace"))

    def _signed(self, viewer: Viewer, ends: str) -> bytes:
        text = f"{viewer.id}~{ends}~{viewer.fingerprint}"
        return hmac.new(self._key, text.encode(), sha256).hexdigest().encode()


def cookie_name(request: Request) -> str:
    """Return the name of the cookie: browsers share cookies between the ports of a machine."""
    return f"{COOKIE}_{request.url.port or 0}"


@lru_cache(1_024)
def network_of(host: str) -> str:
    """Return where a client is: of IPv6 the network, of which one client has all addresses."""
    try:
        address = ip_address(host)
    except ValueError:
        return f"address {host}"
    return f"address {ip_network((address, 64), strict=False) if address.version == 6 else address}"


def _reject(reason: str, seconds: int) -> NoReturn:
    raise HTTPException(429, f"{reason} Try again in {seconds} s.", {"retry-after": str(seconds)})


def fingerprint(token: str) -> str:
    """Return a hash of a token; tokens are random and long, so there is no dictionary to try."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def is_of_another_site(headers: Mapping[bytes, bytes], public_host: str = "") -> bool:
    """Tell whether a browser says that the page of another origin sends a request.

    `public_host` is the host of a proxy before this server, which may have put another name in its place.
    """
    origin, host = headers.get(b"origin", b""), headers.get(b"host", b"")
    own = {host.lower(), public_host.encode()} - {b""}
    foreign = bool(origin) and origin.partition(b"//")[2].lower() not in own
    return foreign or headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin")
