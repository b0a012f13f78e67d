"""How many more tokens than OpenAI's a provider makes of the same characters (N09)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from refold.models._names import provider_key

__all__ = ["provider_factor", "provider_factors"]


@cache
def provider_factors() -> dict[str, float]:
    """Return N09's table: eleven providers in the seed's spelling."""
    return msgspec.json.decode(files(__package__).joinpath("providers.json").read_bytes(), type=dict[str, float])


def provider_factor(provider: str | None) -> float:
    """Return the multiplier of a provider, 1.0 for one that the table does not know."""
    table = provider_factors()
    name = (provider or "").strip().lower()
    same = {"google": "google-ai"}.get(key := provider_key(provider), key)
    return table.get(name, table.get(same, 1.0))
