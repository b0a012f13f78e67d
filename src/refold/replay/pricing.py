"""What a call costs: prices of a model, and its provider's rules on cached prompts, which are dated data."""

from __future__ import annotations

from msgspec import Struct

from refold.core.break_even import TokenPrices
from refold.errors import UnknownModel
from refold.models import _catalog as models
from refold.models._cache_rules import CacheRules, rules_for

__all__ = ["CallTokens", "Spent", "Tariff", "UserPrices", "tariff_for"]

MILLION = 1_000_000


class UserPrices(Struct, frozen=True):
    """Prices the user names, in US dollars per million tokens."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


NONE = UserPrices()


class CallTokens(Struct, frozen=True):
    """One call in tokens: the whole prompt, what of it was read from the cache and put into it, and the answer."""

    prompt: int
    read: int = 0
    written: int = 0
    output: int = 0

    @property
    def fresh(self) -> int:
        """What was neither read from the cache nor put into it."""
        return max(self.prompt - self.read - self.written, 0)


class Spent(Struct, frozen=True):
    """US dollars by what they were spent on."""

    read: float = 0.0
    written: float = 0.0
    fresh: float = 0.0
    output: float = 0.0

    @property
    def dollars(self) -> float:
        """All of it."""
        return self.read + self.written + self.fresh + self.output

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.read + other.read, self.written + other.written, self.fresh + other.fresh, self.output + other.output
        )


class Tariff(Struct, frozen=True):
    """Prices in US dollars per million tokens, and the rules on the cache. `dated` and `source` are of the prices."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_long: float
    rules: CacheRules
    dated: str = ""
    source: str = ""

    def spent(self, call: CallTokens, *, long: bool = False) -> Spent:
        """Price one call; `long` says that what it put into the cache lives longer, which costs more."""
        higher = bool(self.rules.above) and call.prompt > self.rules.above
        many, out = (self.rules.input_above, self.rules.output_above) if higher else (1.0, 1.0)
        write = self.cache_write_long if long else self.cache_write
        return Spent(
            call.read * self.cache_read * many / MILLION,
            call.written * write * many / MILLION,
            call.fresh * self.input * many / MILLION,
            call.output * self.output * out / MILLION,
        )

    @property
    def shares(self) -> TokenPrices:
        """The prices as shares of the price of input."""
        if not self.input:
            return TokenPrices()
        write = self.cache_write if self.writes_apart else self.input
        return TokenPrices(self.cache_read / self.input, write / self.input, self.output / self.input)

    @property
    def writes_apart(self) -> bool:
        """Tell whether putting something into the cache has a price of its own."""
        return self.rules.write > 1.0


def tariff_for(model: str | None, user_prices: UserPrices = NONE, *, cached: bool = True) -> Tariff:
    """Return what a model costs; prices the user names win over the table's.

    `cached` says that prices of the cache are needed too.

    Raises:
        UnknownModel: a price that no table has and the user did not name; nothing is guessed.
    """
    known = models.prices(model) if model else None
    rules = rules_for(model) if model else None
    into = _price(user_prices.input, known.input if known else None, "input", model)
    out = _price(user_prices.output, known.output if known else None, "output", model)
    listed = known.cache_read if known and user_prices.input is None else None
    read = user_prices.cache_read if user_prices.cache_read is not None else listed
    if read is None:
        read = into * rules.read if rules else None
    if read is None and cached:
        raise _unknown("cache-read", model)
    rules = rules or CacheRules("not known", "", (read or 0.0) / into if into else 0.0, sure=False)
    write = user_prices.cache_write if user_prices.cache_write is not None else into * rules.write
    source = "named by the user" if user_prices.input is not None else known.source if known else ""
    dated = known.dated if known and user_prices.input is None else ""
    return Tariff(into, out, read or 0.0, write, into * rules.write_long, rules, dated, source)


def _price(user_prices: float | None, known: float | None, name: str, model: str | None) -> float:
    price = known if user_prices is None else user_prices
    if price is None:
        raise _unknown(name, model)
    return price


def _unknown(name: str, model: str | None) -> UnknownModel:
    missing = (
        f"no table has a price of {name.replace('-', ' ')} for model {model}" if model else "the file names no model"
    )
    return UnknownModel(f"{missing}: name its id with --model, or say --price-{name} in US$ per million tokens")
