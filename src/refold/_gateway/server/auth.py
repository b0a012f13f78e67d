"""Who sends a request and what it may do: tokens, limits, and protection against web pages that reach for loopback."""

from __future__ import annotations

import hmac
import re
from collections import OrderedDict
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from refold._gateway.server.asgi import CLOSE, GatewayError
from refold._gateway.server.tokens import TOKEN_START, TokenFile
from refold._gateway.settings import is_loopback
from refold._page.access import WRONG, is_of_another_site, network_of
from refold._page.rates import REMEMBERED, Rates

if TYPE_CHECKING:
    from refold._gateway.server.asgi import Headers
    from refold._gateway.server.tokens import Token
    from refold._gateway.settings import GatewaySettings

__all__ = [
    "ANYBODY",
    "CREDENTIALS",
    "Admission",
    "Auth",
    "Caller",
    "check_path",
    "check_same_origin",
    "client_of",
    "reject_duplicate_headers",
]

OPEN = frozenset({"/livez", "/readyz"})  # called by probes that have no token
SINGLE = frozenset(
    {
        b"host", b"origin", b"sec-fetch-site", b"content-length", b"transfer-encoding", b"content-encoding",
        b"content-type",
    }
)  # fmt: skip
TOKEN_PATH = "/token/"  # noqa: S105 - for clients that can change nothing but the base URL
CREDENTIALS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")  # where clients put a provider's key
BEARER = b"bearer "
CHOSEN = "admin", "gateway"  # ids of the tokens whose text a person has chosen, in the environment
PREFIX = TOKEN_START.encode()
# a dot, a slash, a backslash, or what ends a path, however often it is encoded; and what stands in no path unencoded
UNCLEAR = re.compile(r"%(?:25)*(?:2e|2f|5c|23|3f)|[\\#]", re.I)
MODEL_ID = re.compile(r"(?<=/models/)[^/]+")  # ids of models hold slashes
ENCODED_SLASH = re.compile("%2f", re.I)


class Caller(Struct, frozen=True):
    """Who sends a request.

    `owner` is whose its conversations are; `token` is the id of its token, empty for a client on this machine that
    sends none. `rate` is requests a minute and `max_body` bytes of a body, 0 is no limit of its own.
    """

    owner: str = ""
    admin: bool = False
    token: str = ""
    rate: int = 0
    max_body: int = 0

    @property
    def sees(self) -> str | None:
        """The owner whose conversations the caller may see and change; None: those of all."""
        return None if self.admin else self.owner

    @property
    def name(self) -> str:
        """The name of the token, which acts are recorded with."""
        return f"{self.owner}/{self.token}" if self.owner else self.token


ANYBODY = Caller()


class Admission(Struct, frozen=True):
    """A request that may be served, without the token in it."""

    caller: Caller
    path: str
    headers: Headers
    query: bytes


class Auth:
    """Checks requests to a gateway."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._token = settings.token.encode()
        self._admin_token = settings.admin_token.encode()
        self._tokens = TokenFile(Path(settings.tokens)) if settings.tokens else None
        self._needs_token = settings.needs_token
        self._rate = settings.rate
        self._rates = Rates()
        self._wrong = Rates()  # tokens of each address that are not in force
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()  # addresses that have sent a chosen token

    @property
    def is_constant(self) -> bool:
        """Whether a request that was admitted always will be, but for its rate: nobody adds or revokes tokens."""
        return self._tokens is None

    @property
    def has_owners(self) -> bool:
        """Whether there are tokens of users and teams, whose content is told apart."""
        return self._tokens is not None and self._tokens.is_used

    def admit(
        self, path: str, headers: Headers, by_name: dict[bytes, bytes], query: bytes, host: str = ""
    ) -> Admission:
        """Return an authorized request of a client at an address, without the token in it.

        A client without a token may send requests to models, on loopback alone and if no token is required. From an
        address that has sent many wrong tokens, those that a person chose are not tried; one of the file of tokens
        cannot be guessed, and is right at any time.

        Raises:
            GatewayError: no token or a wrong one (401), a host or origin that is not this machine (403), too many
                requests or wrong tokens (429), or a transfer-encoding other than chunked (501); compressed bodies
                belong to content-encoding.
        """
        try:
            admission = self._admitted(path, headers, by_name, query)
        except GatewayError as error:
            if error.status == 401 and (path.startswith(TOKEN_PATH) or b"key=" in query or self._has_token(by_name)):
                raise self._slowed(network_of(host)) or error from None
            raise
        if admission.caller.token in CHOSEN:
            self._check_chosen(network_of(host), admission.caller.token)
        return admission

    def _has_token(self, by_name: dict[bytes, bytes]) -> bool:
        return b"x-refold-token" in by_name or not by_name.keys().isdisjoint(CREDENTIALS)

    def _slowed(self, address: str) -> GatewayError | None:
        """Count a wrong token of an address; return the error where there were too many."""
        if seconds := self._wrong.take(address, WRONG):
            message = f"too many tokens from your address were not in force: send the next one in {seconds} s"
            return GatewayError(429, message, "rate_limit_exceeded", [*CLOSE, (b"retry-after", b"%d" % seconds)])
        return None

    def _check_chosen(self, address: str, token: str) -> None:
        """Refuse a token that a person chose from an address that guesses, unless it was sent from there before.

        Raises:
            GatewayError: it is refused as if it were wrong (429).
        """
        if (address, token) not in self._known and self._wrong.wait(address, WRONG):
            raise self._slowed(address) or _no_token(f"this was no token in force at {address}")
        self._known[address, token] = None
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def _admitted(self, path: str, headers: Headers, by_name: dict[bytes, bytes], query: bytes) -> Admission:
        text = by_name.get(b"x-refold-token", b"")
        if path.startswith(TOKEN_PATH):
            in_path, slash, rest = path[len(TOKEN_PATH) :].partition("/")
            text, path = text or unquote_to_bytes(in_path), slash + rest
        if path in OPEN:
            return Admission(ANYBODY, path, headers, query)
        caller, headers, query = self._without_tokens(headers, by_name, query)
        if text:
            caller = self.caller(text)
        if caller is None:
            if text or self._needs_token:
                raise _no_token("this gateway needs one of its tokens, in the header x-refold-token or as the API key")
            _check_local(by_name)
            caller = ANYBODY
        self.check_rate(caller)
        if by_name.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise GatewayError(
                501, "no transfer-encoding but chunked is supported: send the body chunked", "bad_header", CLOSE
            )
        return Admission(caller, path, headers, query)

    def caller(self, text: bytes) -> Caller | None:
        """Return whose a token is; comparisons take the same time whatever they find."""
        if self._admin_token and hmac.compare_digest(text, self._admin_token):
            return Caller(admin=True, token=CHOSEN[0])
        if self._token and hmac.compare_digest(text, self._token):
            others = self._admin_token or (self._tokens is not None and self._tokens.is_used)
            return Caller(admin=not others, token=CHOSEN[1])
        if self._tokens is None or not text.startswith(PREFIX):
            return None
        token = self._tokens.find(text.decode("latin-1"))
        return None if token is None else _caller_of(token)

    def by_id(self, id: str) -> tuple[Caller, str] | None:
        """Return who has the token of an id, with a hash of it, as long as it is in force."""
        text = {"admin": self._admin_token, "gateway": self._token}.get(id, b"")
        if text:
            caller = self.caller(text)
            return None if caller is None else (caller, sha256(text).hexdigest())
        token = self._tokens.get(id) if self._tokens is not None else None
        return None if token is None else (_caller_of(token), token.hash)

    def _without_tokens(
        self, headers: Headers, by_name: dict[bytes, bytes], query: bytes
    ) -> tuple[Caller | None, Headers, bytes]:
        """Return whose token stands where a provider's key is expected, and the request without it."""
        callers: dict[bytes, Caller] = {}
        for name in CREDENTIALS:
            if value := by_name.get(name):
                text = value[len(BEARER) :].lstrip() if value[: len(BEARER)].lower() == BEARER else value
                if (caller := self._in_place_of_a_key(text)) is not None:
                    callers[name] = caller
        if callers:
            headers = [header for header in headers if header[0] not in callers]
        if b"key=" in query:
            rest = []
            for part in query.split(b"&"):
                name, _, value = part.partition(b"=")
                if name == b"key" and (caller := self._in_place_of_a_key(unquote_to_bytes(value))):
                    callers[name] = caller
                else:
                    rest.append(part)
            query = b"&".join(rest)
        return next(iter(callers.values()), None), headers, query

    def _in_place_of_a_key(self, text: bytes) -> Caller | None:
        """Return whose token a text is; None where it is the key of a provider.

        Raises:
            GatewayError: it is a token that is not in force (401), which no provider is to see.
        """
        caller = self.caller(text)
        if caller is None and text.startswith(PREFIX):
            raise _no_token("this token of the gateway is not in force: ask its operator for another")
        return caller

    def rate_of(self, caller: Caller) -> int:
        """Return how many requests a minute a caller has; 0: no limit."""
        return caller.rate or self._rate

    def check_rate(self, caller: Caller) -> None:
        """Take one of the requests that a token has: as many at once as a minute has, which then come back evenly.

        Raises:
            GatewayError: there is none left (429).
        """
        rate = self.rate_of(caller)
        if not rate:
            return
        if seconds := self._rates.take(caller.token, rate):
            message = f"this token has {rate:,} requests a minute: send the next one in {seconds} s"
            raise GatewayError(429, message, "rate_limit_exceeded", [*CLOSE, (b"retry-after", b"%d" % seconds)])


def client_of(caller: Caller, host: str) -> str:
    """Return who a request counts for in what all clients share: its own token, or else its address."""
    return caller.token if caller.token and caller.token not in CHOSEN else network_of(host)


def _caller_of(token: Token) -> Caller:
    return Caller(token.owner, token.admin, token.id, token.rate, token.max_body)


def reject_duplicate_headers(headers: Headers) -> None:
    """Refuse a request in which a header that decides about it occurs twice: another server may read the other one.

    Raises:
        GatewayError: there are two of one (400).
    """
    names = [name for name, _ in headers if name in SINGLE or name in CREDENTIALS or name.startswith(b"x-refold-")]
    if len(names) != len(set(names)):
        raise GatewayError(400, "a header that may stand once stands twice: send one", "bad_header", CLOSE)


def check_path(path: str) -> None:
    """Refuse a path that another server may read as another one: by encoded dots or slashes, or by where it ends.

    The id of a model may hold an encoded slash (`/v1/models/org%2Fname`).

    Raises:
        GatewayError: it can be read in two ways (400).
    """
    if ("%" in path or "#" in path or "\\" in path) and UNCLEAR.search(
        MODEL_ID.sub(lambda id: ENCODED_SLASH.sub("", id[0]), path)
    ):
        message = "a path with encoded dots or slashes, or with # or \\, is not served: write it out"
        raise GatewayError(400, message, "bad_path")


def check_same_origin(headers: dict[bytes, bytes]) -> None:
    """Refuse what a web page of another origin sends to a control route, with whatever token.

    Raises:
        GatewayError: the browser says that the page is of another origin (403).
    """
    if is_of_another_site(headers):
        raise GatewayError(403, "this cannot be called by the page of another site", "gateway_origin", CLOSE)


def _no_token(message: str) -> GatewayError:
    return GatewayError(401, message, "gateway_token", CLOSE)


def _check_local(headers: dict[bytes, bytes]) -> None:
    """Check that host and origin are this machine: a web page may have its own name resolve to loopback.

    Raises:
        GatewayError: they are not (403).
    """
    origin = headers.get(b"origin", b"")
    if (
        not _is_this_machine(headers.get(b"host", b""))
        or (origin and not _is_this_machine(origin.partition(b"//")[2]))
        or headers.get(b"sec-fetch-site", b"") == b"cross-site"
    ):
        message = "without a token this gateway serves this machine only: call it at 127.0.0.1, or send x-refold-token"
        raise GatewayError(403, message, "gateway_origin", CLOSE)


@lru_cache(256)
def _is_this_machine(host: bytes) -> bool:
    name = host.decode("latin-1") if b"@" not in host else ""
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    return is_loopback(name.lower())
