"""How many more tokens than OpenAI's a provider makes of the same characters (N09)."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from refold.core._decoders import decoder
from refold.models._names import USUAL_PROVIDERS, provider_key, split

__all__ = ["provider_factor", "provider_factors", "request_factor", "request_provider"]

MAKERS = {
    "anthropic": re.compile(r"claude|anthropic"),
    "google-ai": re.compile(r"gemini|learnlm"),
    "mistral": re.compile(r"mistral|codestral|ministral|magistral|devstral|pixtral|mixtral"),
    "openai": re.compile(r"gpt|chatgpt|o\d"),
}
_decode = decoder(dict[str, float])


@cache
def provider_factors() -> dict[str, float]:
    """Return N09's table: eleven providers in the seed's spelling."""
    return _decode(files(__package__).joinpath("providers.json").read_bytes())


def provider_factor(provider: str | None) -> float:
    """Return the multiplier of a provider, 1.0 for one that the table does not know."""
    return provider_factors().get(seed_provider(provider), 1.0)


def seed_provider(provider: str | None) -> str:
    """Return a provider in the spelling of NeuroLink's tables; as it is where they do not have it."""
    name = (provider or "").strip().lower()
    key = provider_key(provider)
    return name if name in provider_factors() else {"google": "google-ai"}.get(key, key)


def request_provider(model: str | None, format: str | None, provider: str | None = None) -> str:
    """Return who serves a request, in the spelling of NeuroLink's tables; "" if nothing tells it.

    It is the provider that is named, else that of the path of the model's id, its maker, or the usual one of a format.
    """
    if provider:
        return seed_provider(provider)
    name = split(model or "")
    if (served := seed_provider(name.provider)) in provider_factors():
        return served
    maker = next((maker for maker, names in MAKERS.items() if names.match(name.model)), "")
    return maker or ("" if model else seed_provider(USUAL_PROVIDERS.get(format or "")))


def request_factor(model: str | None, format: str | None, provider: str | None = None) -> float:
    """Return the multiplier of a request's provider, 1.0 where nothing tells it."""
    return provider_factor(request_provider(model, format, provider))
