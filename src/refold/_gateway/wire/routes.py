"""The providers' routes: which paths carry a conversation, where in the body, and how errors look."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from refold.core._json import Json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DIALECTS", "PATHS", "ROUTES", "Dialect", "Kind", "Route", "error_body", "route"]

Kind: TypeAlias = Literal["chat", "count", "compact", "other"]


class Dialect(Struct, frozen=True):
    """One protocol: its provider, the format of its messages, and the keys of a body that hold what is looked at."""

    provider: str
    format: str = ""
    messages: str = ""
    system: tuple[str, ...] = ()
    max_output: tuple[str, ...] = ()
    costly: tuple[bytes, ...] = ()  # what stands in a body that holds more than text
    elsewhere: tuple[str, ...] = ()  # keys that name a history kept upstream, which cannot be seen from here


DIALECTS = {
    "chat": Dialect(
        "openai", "openai-chat", "messages", (), ("max_completion_tokens", "max_tokens"),
        (b'"image_url"', b'"input_audio"', b'"file"'),
    ),
    "responses": Dialect(
        "openai", "openai-responses", "input", ("instructions",), ("max_output_tokens",),
        (b'"input_image"', b'"input_file"', b'"input_audio"', b'"item_reference"', b'_screenshot"'),
        ("previous_response_id", "conversation"),
    ),
    "anthropic": Dialect(
        "anthropic", "anthropic", "messages", ("system",), ("max_tokens",),
        (b'"image"', b'"document"', b'"container_upload"'),
    ),
    "gemini": Dialect(
        "gemini", "gemini", "contents", ("systemInstruction", "system_instruction"), (),
        (b'"inlineData"', b'"inline_data"', b'"fileData"', b'"file_data"'), ("cachedContent", "cached_content"),
    ),
}  # fmt: skip
_OTHER = {provider: Dialect(provider) for provider in ("openai", "anthropic", "gemini")}

PATHS: dict[str, tuple[str, Kind]] = {
    "/chat/completions": ("chat", "chat"),
    "/v1/chat/completions": ("chat", "chat"),
    "/responses": ("responses", "chat"),
    "/v1/responses": ("responses", "chat"),
    "/responses/compact": ("responses", "compact"),
    "/v1/responses/compact": ("responses", "compact"),
    "/responses/input_tokens": ("responses", "count"),
    "/v1/responses/input_tokens": ("responses", "count"),
    "/messages": ("anthropic", "chat"),
    "/messages/count_tokens": ("anthropic", "count"),
    "/v1/messages": ("anthropic", "chat"),
    "/v1/messages/count_tokens": ("anthropic", "count"),
}
_UNDER = re.compile(r"/.+?(/chat/completions|/responses(?:/compact|/input_tokens)?|/v1/messages(?:/count_tokens)?)")
_MODEL = re.compile(
    r"/v1(?:alpha|beta1?)?(?:/projects/[^/]+/locations/[^/]+)?(?:/publishers/[^/]+)?/(?:models|tunedModels|endpoints)/"
    r"([^/:]+):(generateContent|streamGenerateContent|countTokens)"
)
_GEMINI_PATH = re.compile(
    r"/v1(?:alpha|beta)|/upload/v1beta|/v1/(?:models|tunedModels)/[^/]+:|/v1/(?:projects|publishers)/"
)
_LISTED = re.compile(r"(?:/[^/]+)*/models(?:/[^/]+)?")
_COMPUTED = re.compile(
    r"(?:/[^/]+)*/(?:embeddings|completions|complete|moderations|rerank|images/(?:generations|edits|variations)"
    r"|audio/(?:speech|transcriptions|translations)|models/[^/:]+:(?:embedContent|batchEmbedContents|predict))"
)
_ANTHROPIC_MARKS = frozenset({b"anthropic-version", b"anthropic-beta", b"x-api-key"})


# what a setting for single routes may name, and the format of what is sent there
ROUTES = {
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/v1/messages": "anthropic",
    "/v1beta/models": "gemini",
}


class Route(Struct, frozen=True):
    """Where a request belongs: its dialect, what it asks for, and the model where the path names it."""

    dialect: Dialect
    kind: Kind = "other"
    model: str = ""

    @property
    def operation(self) -> str:
        """What OpenTelemetry calls such a request, where it has a name."""
        if self.kind == "chat":
            return "generate_content" if self.dialect.provider == "gemini" else "chat"
        return "count_tokens" if self.kind == "count" else self.kind


_ROUTES = {path: Route(DIALECTS[name], kind) for path, (name, kind) in PATHS.items()}


def route(method: str, path: str, headers: Mapping[bytes, bytes]) -> Route:
    """Return where a request belongs, by its path, and by its headers where the path is of several providers."""
    if method == "POST":
        if known := _ROUTES.get(path):
            return known
        if match := _MODEL.fullmatch(path):
            kind: Kind = "count" if match[2] == "countTokens" else "chat"
            return Route(DIALECTS["gemini"], kind, unquote(match[1]))
    provider = _provider(path, headers)
    if method == "POST" and (match := _UNDER.fullmatch(path)):  # Azure's deployments, OpenRouter's /api/v1
        known = _ROUTES[match[1]]
        if known.dialect.provider == provider:
            return known
    return Route(_OTHER[provider])


def is_stateless(method: str, path: str) -> bool:
    """Return whether a path without a conversation uses models only, and nothing that a provider stores."""
    pattern = {"GET": _LISTED, "HEAD": _LISTED, "POST": _COMPUTED}.get(method)
    return pattern is not None and pattern.fullmatch(path) is not None


def _provider(path: str, headers: Mapping[bytes, bytes]) -> str:
    """Return whose a path is that no conversation is known by."""
    if path.startswith("/v1/messages") or not _ANTHROPIC_MARKS.isdisjoint(headers):
        return "anthropic"
    if b"x-goog-api-key" in headers or _GEMINI_PATH.match(path):
        return "gemini"
    return "anthropic" if headers.get(b"authorization", b"").startswith(b"Bearer sk-ant-") else "openai"


_ANTHROPIC = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}
_ANTHROPIC |= {404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}
_GEMINI = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
_GEMINI |= {413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}


def error_body(provider: str, status: int, message: str, code: str) -> bytes:
    """Return an error of the gateway's own as the provider's clients read it."""
    body: Json
    match provider:
        case "anthropic":
            body = {"type": "error", "error": {"type": _ANTHROPIC.get(status, "api_error"), "message": message}}
        case "gemini":
            body = {"error": {"code": status, "message": message, "status": _GEMINI.get(status, "INTERNAL")}}
        case _:
            kind = "requests" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
            body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return msgspec.json.encode(body)
