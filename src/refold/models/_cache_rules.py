"""The rules of providers on cached prompts, by model id, from a dated table."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files

from msgspec import Struct

from refold.core._decoders import decoder
from refold.core.break_even import TokenPrices
from refold.models import _catalog as catalog
from refold.models._names import candidates, split

__all__ = ["CacheRules", "rules_for", "token_prices"]


class CacheRules(Struct, frozen=True):
    """How a provider caches prompts: shares of the input price, seconds, tokens.

    `read` and `write` are what a cached token costs, and one put into the cache; `write_long` where the longer life
    is paid for. Beginnings shorter than `least` are not kept; what is read is a multiple of `step`. `above` is the
    prompt from which on input and output cost `input_above` and `output_above` times as much. `sure` is False where
    the provider promises nothing.
    """

    name: str
    models: str
    read: float
    write: float = 1.0
    write_long: float = 1.0
    least: int = 1_024
    step: int = 1
    life: int = 300
    life_long: int = 300
    above: int = 0
    input_above: float = 1.0
    output_above: float = 1.0
    sure: bool = True


class _PriceTable(Struct, frozen=True):
    dated: str
    rules: tuple[CacheRules, ...]


_decode = decoder(_PriceTable)


@cache
def _table() -> _PriceTable:
    return _decode(files(__package__).joinpath("cache_rules.json").read_bytes())


def rules_for(model: str) -> CacheRules | None:
    """Return a provider's rules on the cache for a model, None where they are not known."""
    name = candidates(split(model).model)[-1]
    return next((rules for rules in _table().rules if re.match(rules.models, name)), None)


@lru_cache(maxsize=256)  # asked with every request of a gateway
def token_prices(model: str | None) -> TokenPrices:
    """Return what tokens of a model cost as shares of its input price; `TokenPrices` where no table knows it."""
    default = TokenPrices()
    if model is None:
        return default
    rules, listed = rules_for(model), catalog.prices(model)
    read, write, output = default.read, default.write, default.output
    if rules is not None:
        read, write = rules.read, rules.write
    if listed is not None and listed.input > 0:
        read = listed.cache_read / listed.input if listed.cache_read else read
        output = listed.output / listed.input
    return TokenPrices(round(read, 4), round(write, 4), round(output, 4))
