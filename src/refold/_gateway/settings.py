"""The settings with which a gateway starts; no request can change them."""

from __future__ import annotations

from ipaddress import ip_address
from os.path import isfile  # False, and no error, for a path that cannot be looked up
from urllib.parse import urlsplit

from msgspec import Struct, field

from refold import policies
from refold._gateway.wire.routes import ROUTES
from refold._text.suggestions import did_you_mean
from refold._text.urls import without_secrets
from refold.core.budget import Limit
from refold.errors import UsageError

__all__ = ["UPSTREAMS", "GatewaySettings", "is_loopback"]

UPSTREAMS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
NATIVE_MODES = ("pass", "shadow", "emulate")
VENDORS = {
    "anthropic": frozenset({"api.anthropic.com"}),
    "openai": frozenset({"api.openai.com", "chatgpt.com", "api.x.ai"}),
}


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """How a gateway works.

    `upstreams` are base URLs by provider ("openai", "anthropic", "gemini"); a provider left out is not served.
    `policy` compacts, from its own trigger or from `trigger` on. `policies`, `triggers` and `windows` (tokens) are for
    single models, `route_policies` and `route_triggers` for single routes ("/v1/chat/completions", "/v1/responses",
    "/v1/messages", "/v1beta/models"); a model's setting takes precedence over its route's, and `window`
    is that of all models. `tokens` is a file with the tokens of users, teams and administrators (`refold tokens`);
    `token` is one for all clients together, `admin_token` one of an administrator. A client sends its token in the
    header `x-refold-token`, in the path `/token/TOKEN/…` or as its API key. Without a token it may use the models and
    nothing else, and that only on loopback and unless `require_token` is set or the gateway has keys of its own:
    `upstream_keys`, by provider, replace those of clients. `rate` is how many requests a minute each token has, unless
    it says otherwise (0: no limit). `unknown_ids` is what becomes of ids of what a provider stores that did not pass
    here, in a gateway with tokens of several owners: "pass" or "refuse", by default "refuse" where the gateway sends
    its own key and "pass" where clients send theirs. With `tls_certificate` and `tls_key`, files in PEM, clients come
    by https; `public_url` is the address of a proxy through which browsers come. `strict` refuses a request whose
    compaction fails instead of sending it as it is, `shadow` plans and reports and changes nothing, `repair` mends
    invalid conversations.
    `recall_tool` offers models a tool that returns originals once a plan is active: the gateway answers its calls,
    in up to `recall_rounds` rounds of one answer with up to `recall_tokens` tokens each.
    `native_compaction` is what is done with a provider's own compaction, also for single routes and models: "pass",
    "shadow" or "emulate"; by default "pass" where upstream is the provider's own address and "emulate" elsewhere.
    `background` compacts below the hard limit in the background instead of before a request. `summarizer` is the
    model that writes summaries for policies that use one, called at `summarizer_url` or where `summarizer_provider` is
    reached; secrets are redacted unless `redact` is off.
    `store` is a file or a database URL, None keeps everything in memory; `store_key` encrypts originals in the store,
    `retention` is after how many seconds without use a conversation is forgotten (0: never). `max_body`, `body_memory`
    (of all bodies held at a time) and `memory` (of conversations) are bytes; `timeout` is seconds without a byte from
    upstream (V12), `connect_timeout` and `body_timeout` seconds for the connection and between parts of a client's
    body, `upload_timeout` those for all of it; `connections` is the largest number of connections to upstream (0: no
    limit) and `keepalive` how many seconds an idle one is kept. When the gateway is told to end, requests that run have
    `drain_timeout` seconds.

    Raises:
        UsageError: an address open to others without a token, an upstream that is no http(s) URL, a route or policy
            that there is none of, a certificate without its key, a native compaction that is none of the three.
    """

    upstreams: dict[str, str] = field(default_factory=lambda: dict(UPSTREAMS))
    host: str = "127.0.0.1"
    port: int = 8787
    policy: str = "refold"
    policies: dict[str, str] = {}
    route_policies: dict[str, str] = {}
    trigger: Limit | None = None
    triggers: dict[str, Limit] = {}
    route_triggers: dict[str, Limit] = {}
    window: int | None = None
    windows: dict[str, int] = {}
    native_compaction: str = ""
    route_native_compaction: dict[str, str] = {}
    model_native_compaction: dict[str, str] = {}
    token: str = ""
    admin_token: str = ""
    tokens: str = ""
    require_token: bool = False
    upstream_keys: dict[str, str] = {}
    rate: int = 0
    unknown_ids: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    public_url: str = ""
    strict: bool = False
    shadow: bool = False
    repair: bool = False
    recall_tool: bool = False
    recall_rounds: int = 3
    recall_tokens: int = 6_000
    background: bool = True
    summarizer: str = ""
    summarizer_url: str = ""
    summarizer_provider: str = ""
    redact: bool = True
    store: str | None = None
    store_key: str = ""
    retention: float = 0.0
    max_body: int = 64 * 1024 * 1024
    body_memory: int = 512 * 1024 * 1024
    memory: int = 512 * 1024 * 1024
    timeout: float = 720.0  # V12
    connect_timeout: float = 20.0
    body_timeout: float = 60.0
    upload_timeout: float = 300.0
    head_timeout: float = 20.0
    connections: int = 0
    keepalive: float = 30.0
    drain_timeout: float = 60.0

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and not (self.token or isfile(self.tokens)):
            raise UsageError(
                f"{self.host} can be reached from other machines: make tokens (refold tokens create), "
                "give one token for all (REFOLD_GATEWAY_TOKEN), or listen on 127.0.0.1"
            )
        if self.unknown_ids not in ("", "pass", "refuse"):
            raise UsageError(f"unknown ids cannot be treated as {self.unknown_ids!r}: say pass or refuse")
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise UsageError("a certificate is used with its key: give both --tls-certificate and --tls-key")
        if self.public_url and not _is_address(self.public_url):
            problem = f"{without_secrets(self.public_url)!r} is no http or https address"
            raise UsageError(f"{problem}: write --public-url as in https://refold.example.com")
        if not self.upstreams:
            raise UsageError("no upstream: name the provider that requests are sent to")
        for name, url in self.upstreams.items():
            if name not in UPSTREAMS:
                raise UsageError(
                    f"there is no provider {name!r}{did_you_mean(name, UPSTREAMS)}; use one of {', '.join(UPSTREAMS)}"
                )
            if not _is_address(url):
                problem = f"the upstream {without_secrets(url)!r} of {name} is no http or https address"
                raise UsageError(f"{problem}: write it as in {UPSTREAMS[name]}")
        for name, key in self.upstream_keys.items():
            if not key.isascii() or not key.isprintable() or " " in key:
                raise UsageError(f"the key of {name} is not one word: check its variable or its file")
        for route in (*self.route_policies, *self.route_triggers, *self.route_native_compaction):
            if route not in ROUTES:
                raise UsageError(
                    f"there is no route {route!r}{did_you_mean(route, ROUTES)}; use one of {', '.join(ROUTES)}"
                )
        for mode in filter(None, (self.native_compaction, *self.route_native_compaction.values(),
                                  *self.model_native_compaction.values())):  # fmt: skip
            if mode not in NATIVE_MODES:
                raise UsageError(
                    f"there is no native compaction {mode!r}{did_you_mean(mode, NATIVE_MODES)}; "
                    f"use one of {', '.join(NATIVE_MODES)}"
                )
        for policy in self.named:
            policies.find(policy)

    def is_vendor(self, provider: str) -> bool:
        """Tell whether upstream is an address of the provider itself, where its own compaction is known to be."""
        return urlsplit(self.upstreams.get(provider, "")).hostname in VENDORS.get(provider, ())

    @property
    def needs_token(self) -> bool:
        """Whether every client must send a token."""
        return bool(self.token or self.require_token or self.upstream_keys) or not is_loopback(self.host)

    @property
    def named(self) -> frozenset[str]:
        """The policies that are named here."""
        return frozenset((self.policy, *self.policies.values(), *self.route_policies.values()))


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        plain = url.isprintable() and " " not in url and not parts.query and not parts.fragment
        return plain and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is no number
        return False


def is_loopback(host: str) -> bool:
    """Tell whether an address is reached from this machine alone."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
