"""Makes a client of a model over the official SDK that its provider's wire format needs."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from refold.core.needs import CountNeed
from refold.errors import UsageError
from refold.models._names import provider_key

if TYPE_CHECKING:
    from refold.clients._protocol import AsyncClient, Client, Wire
    from refold.clients._sdk import Speech

__all__ = ["TIMEOUT", "async_client", "client", "recounting"]

TIMEOUT = 720.0  # seconds, V12


class Endpoint(NamedTuple):
    """Where a provider is reached: its address (None: the SDK's own), the variable of its key, its wire format."""

    base_url: str | None
    key: str
    wire: Wire


ENDPOINTS = {
    "anthropic": Endpoint(None, "ANTHROPIC_API_KEY", "anthropic"),
    "google": Endpoint("https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY", "openai-chat"),
    "huggingface": Endpoint("https://router.huggingface.co/v1", "HF_TOKEN", "openai-chat"),
    "litellm": Endpoint("http://127.0.0.1:4000/v1", "LITELLM_API_KEY", "openai-chat"),
    "mistral": Endpoint("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "openai-chat"),
    "ollama": Endpoint("http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", "openai-chat"),
    "openai": Endpoint(None, "OPENAI_API_KEY", "openai-chat"),
    "openrouter": Endpoint("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openai-chat"),
}


def client(
    model: str,
    base_url: str | None = None,
    api_key: str | None = None,
    wire: Wire | None = None,
    *,
    provider: str | None = None,
    timeout: float = TIMEOUT,
    options: Mapping[str, Any] | None = None,
) -> Client:
    """Return a client of a model: Anthropic's, or any server that speaks as OpenAI's chat completions do.

    Without `wire`, Claude models at the provider's own address and Anthropic's own addresses are spoken to in
    Anthropic's way, all else in OpenAI's. The key is taken from `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` when left
    out; a server at a `base_url` may need none. `options` go into every request (`temperature`, `thinking`, …).
    `provider` names who serves the model instead: its address, key and wire format are used where none is given.

    Raises:
        UsageError: the SDK is not installed, no key was given, the address is none, or none is known of the provider.
    """
    from refold.clients._sdk import SDKClient

    if provider:
        base_url, api_key, wire = _served_by(provider, base_url, api_key, wire)
    return SDKClient(_speech(model, base_url, wire, options), base_url, api_key, timeout)


def async_client(
    model: str,
    base_url: str | None = None,
    api_key: str | None = None,
    wire: Wire | None = None,
    *,
    timeout: float = TIMEOUT,
    options: Mapping[str, Any] | None = None,
) -> AsyncClient:
    """Return a client of a model whose calls are awaited; the arguments are those of `client`."""
    from refold.clients._sdk import AsyncSDKClient

    return AsyncSDKClient(_speech(model, base_url, wire, options), base_url, api_key, timeout)


def _served_by(
    provider: str, base_url: str | None, api_key: str | None, wire: Wire | None
) -> tuple[str | None, str | None, Wire | None]:
    """Return address, key and wire format with those of a provider where none is given.

    The key of one provider is never sent to another.
    """
    endpoint = ENDPOINTS.get(provider_key(provider))
    if endpoint is None:
        if base_url is None:
            raise UsageError(
                f"no address is known of the provider {provider}: give a base URL, or one of {', '.join(ENDPOINTS)}"
            )
        return base_url, api_key, wire
    address = base_url or endpoint.base_url
    key = api_key or os.environ.get(endpoint.key) or ("none" if address else None)
    return address, key, wire or endpoint.wire


def _speech(model: str, base_url: str | None, wire: Wire | None, options: Mapping[str, Any] | None) -> Speech:
    if not model.strip():
        raise UsageError("no model was named: give its id")
    if base_url is not None and not (urlsplit(base_url).scheme in {"http", "https"} and urlsplit(base_url).netloc):
        raise UsageError(f"{base_url!r} is no base URL: give one as in http://127.0.0.1:11434/v1")
    match wire or _wire(model, base_url):
        case "openai-chat":
            from refold.clients._openai import ChatSpeech

            return ChatSpeech(model, base_url, options or {})
        case "anthropic":
            from refold.clients._anthropic import AnthropicSpeech

            return AnthropicSpeech(model, base_url, options or {})
        case other:
            raise UsageError(f'no wire is called "{other}": say "openai-chat" or "anthropic"')


def recounting(
    client: Client | AsyncClient, *, system: Any = None, tools: Sequence[Any] | None = None
) -> Callable[[CountNeed], int | Awaitable[int]]:  # V08
    """Return a `count` for `refold.Handlers`: the provider counts the messages as they will be sent."""

    def count(need: CountNeed) -> int | Awaitable[int]:
        from refold import formats

        return client.count(formats.assemble(formats.find(client.format), need.messages), system, tools)

    return count


def _wire(model: str, base_url: str | None) -> Wire:
    if base_url is None:
        return "anthropic" if "claude" in model.lower() and "/" not in model else "openai-chat"
    position = urlsplit(base_url)
    own = (position.hostname or "").endswith("anthropic.com") or position.path.rstrip("/").endswith("/anthropic")
    return "anthropic" if own else "openai-chat"
