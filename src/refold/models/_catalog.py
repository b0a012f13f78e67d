"""How much a model takes: windows, caps and prices by model id, from a dated table.

Three numbers are kept apart: the context window, the most it takes as input, the most it answers. What the user
says wins over the host's own row, that over the vote of all hosts; a guess is marked as one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Struct

from refold.core._decoders import decoder
from refold.core.budget import Budget, TableReserve
from refold.errors import BadBudget
from refold.models._names import PROVIDERS, candidates, provider_key, split
from refold.models._provider_factors import request_provider

if TYPE_CHECKING:
    from refold.core.budget import Reserve

__all__ = [
    "DEFAULT_WINDOW",
    "Allowance",
    "Catalog",
    "CatalogMatch",
    "Override",
    "Prices",
    "Window",
    "find",
    "known",
    "listing",
    "neurolink_window",
    "output_reserve",
    "prices",
    "providers",
    "table",
    "table_budget",
    "window",
    "wolffish_allowance",
]

DEFAULT_WINDOW = 128_000  # N10, O15
MOST_RESERVE = 64_000  # N10
RESERVE_SHARE = 0.35  # N10
SIZE = re.compile(r"\d+(?:\.\d+)?b$")  # 30b is a size, not a version: the sizes of a family share a window
LARGEST = 100_000_000  # no model takes a hundred million tokens: a window above is a slip of the keyboard


class Window(Struct, frozen=True):
    """What fits: context window, input cap and output cap in tokens, 0 where none is stated.

    `source` says where it comes from ("override", "table", "table:HOST", "suffix", "prefix", "allocated",
    "default"); `assumed` marks a guess.
    """

    window: int
    input_cap: int = 0
    output_cap: int = 0
    source: str = "override"
    assumed: bool = False

    @property
    def reserve(self) -> int:
        """Tokens to leave for the answer when the caller names no number: never the whole window."""
        if 0 < self.input_cap < self.window:
            return self.window - self.input_cap
        share = output_reserve(self.window)
        return min(self.output_cap, share) if self.output_cap else share


class Prices(Struct, frozen=True):
    """US dollars per million tokens; None where the table has no price. `dated` is the day of the table."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    dated: str = ""
    source: str = "table"


class CatalogMatch(Struct, frozen=True):
    """One row of a search: the id, its window and its prices."""

    model: str
    window: Window
    prices: Prices | None = None


class Allowance(Struct, frozen=True):  # W14
    """Context window and output reserve in Wolffish's table; the reserve is 0 where the answer is counted apart."""

    window: int
    reserve: int

    @property
    def input(self) -> int:
        """The input budget."""
        return self.window - self.reserve


Row: TypeAlias = tuple[float | None, ...]
Rows: TypeAlias = dict[str, Row]
Override: TypeAlias = "int | Window | Mapping[str, object]"


class Catalog(Struct, frozen=True):
    """The whole table: its day, the packages it is from, the rows of models, and those of hosts that differ."""

    dated: str
    sources: dict[str, str]
    models: Rows
    hosts: dict[str, Rows]


class _Overlays(Struct, frozen=True):
    wolffish: dict[str, Allowance]
    neurolink: dict[str, dict[str, int]]


_catalog = decoder(Catalog)
_overlay_table = decoder(_Overlays)


@cache
def table() -> Catalog:
    """Return the table, read on first use."""
    return _catalog(files(__package__).joinpath("models.json").read_bytes())


@cache
def _overlays() -> _Overlays:
    return _overlay_table(files(__package__).joinpath("overlays.json").read_bytes())


def window(
    model: str | None,
    provider: str | None = None,
    override: Override | None = None,
    *,
    allocated: int | None = None,
    deployments: Mapping[str, str] | None = None,
) -> Window:
    """Return what a model takes; 128,000 marked as assumed when no table knows it.

    `override` is a number of tokens, a Window, its fields as a mapping, or a mapping of model ids to any of
    these, and wins. `allocated` is what a local server really set aside (`num_ctx`) and caps the rest.
    `deployments` maps names of a deployment (Azure) to model ids. Raises BadBudget for a number that cannot be.
    """
    name = (deployments or {}).get(model or "", model or "")
    window = _overridden(name, override) or _looked_up(name, provider)
    if allocated is None:
        return window
    _checked("allocated", allocated)
    if allocated >= window.window and not window.assumed:
        return window
    cap = window.input_cap if window.input_cap < allocated else 0
    output = window.output_cap if window.output_cap < allocated else 0
    return Window(allocated, cap, output, "allocated")


def prices(model: str | None, provider: str | None = None) -> Prices | None:
    """Return what a model costs, None when the table has no price for it."""
    row, source, guessed = _row(model or "", provider)
    if guessed or len(row) < 5:
        return None
    cost = [*row[3:], None, None, None, None][:4]
    return Prices(cost[0] or 0.0, cost[1] or 0.0, cost[2], cost[3], table().dated, source)


def known() -> tuple[str, ...]:
    """Return the id of every model in the table, sorted."""
    return tuple(sorted(table().models))


def providers() -> tuple[str, ...]:
    """Return the names of all providers in the tables, sorted."""
    prefixes = {provider_key(id.partition("/")[0]) for id in table().models if "/" in id}
    return tuple(sorted({*prefixes, *PROVIDERS.values(), *map(provider_key, _overlays().neurolink)}))


def listing(model: str) -> str:
    """Return the command that lists models with a part of this name, or else of a well-known one."""
    parts = sorted(re.findall(r"[a-z0-9.]{2,}", model.lower()), key=len, reverse=True)
    return f"`refold models {next((part for part in parts if find(part, 1)), 'claude')}`"


def find(query: str, limit: int = 50) -> list[CatalogMatch]:
    """Return the models whose id holds every word of the query, shortest ids first."""
    words = [word for word in re.split(r"[\s/:._@-]+", query.lower()) if word]
    names = [name for name in table().models if all(word in name for word in words)]
    names.sort(key=lambda name: (len(name), name))
    return [CatalogMatch(name, window(name), prices(name)) for name in names[:limit]]


def output_reserve(window: int, max_tokens: int | None = None) -> int:  # N10
    """Return the tokens to leave for the answer: the given maximum, or min(64,000, 35 % of the window)."""
    if max_tokens:
        return max_tokens
    return min(MOST_RESERVE, int(window * RESERVE_SHARE))


def neurolink_window(provider: str, model: str | None = None) -> int:  # N10, N20
    """Return the window in NeuroLink's table, by exact model, longest prefix, provider default, or 128,000."""
    rows = _overlays().neurolink.get(provider, {})
    name = model or ""
    if name in rows and name != "_default":
        return rows[name]
    fitting = [key for key in rows if key != "_default" and _begins(name, key)]
    return rows[max(fitting, key=len)] if fitting else rows.get("_default", DEFAULT_WINDOW)


def wolffish_allowance(model: str) -> Allowance | None:  # W14
    """Return window and reserve of a model in Wolffish's table, None when it is not one of the eight.

    "Claude Opus 4.6+" stands for later versions too.
    """
    bare = split(model).model
    rows = _overlays().wolffish
    for name in candidates(bare):
        if name in rows:
            return rows[name]
    later = re.fullmatch(r"claude-opus-(\d+)-(\d{1,2})", candidates(bare)[-1])
    return rows["claude-opus-4-6"] if later and (int(later[1]), int(later[2])) > (4, 6) else None


def table_budget(
    reserve: Reserve, model: str | None, max_output: int | None = None, provider: str | None = None
) -> Budget | None:
    """Return the budget of a model by the table that a policy's reserve names; None where it has no row there."""
    match reserve:
        case TableReserve(table="wolffish") if model and (row := wolffish_allowance(model)):
            return _wolffish_budget(row, model, max_output)
        case TableReserve(table="neurolink") if model or provider:
            return _neurolink_budget(reserve, model or "", max_output, provider)
        case _:
            return None


def _wolffish_budget(row: Allowance, model: str, max_output: int | None) -> Budget:  # W14
    """Return a budget of Wolffish's table.

    A response larger than the row's reserve has that much more, unless the row counts output apart (0). The input never
    exceeds what the model accepts as input.
    """
    output = max(row.reserve, max_output or 0) if row.reserve else 0
    cap = window(model).input_cap
    return Budget(row.window, min(max(output, row.window - cap if cap else 0), row.window - 1))


def _neurolink_budget(reserve: Reserve, model: str, max_output: int | None, provider: str | None) -> Budget:  # N10, N20
    """Return a budget of NeuroLink: its table decides where ours, which is newer, does not know the model.

    The reserve never depends on how long an answer the model can give.
    """
    known = window(model, provider)
    served = request_provider(model, None, provider)
    size = neurolink_window(served, split(model).model) if known.assumed else known.window
    beyond_input = known.window - known.input_cap if known.input_cap else 0
    return Budget(size, max(reserve(size, max_output), beyond_input))


def _begins(name: str, key: str) -> bool:
    """Tell whether a name is a key with something after it; gpt-4.5 is no gpt-4."""
    return name.startswith(key) and not re.match(r"\.\d", name[len(key) :])


def _looked_up(model: str, provider: str | None) -> Window:
    if model.strip().lower().endswith("[1m]"):  # Claude Code's mark for the long window
        return Window(1_000_000, source="suffix")
    row, source, guessed = _row(model, provider)
    if not row:
        return Window(DEFAULT_WINDOW, source="default", assumed=True)
    size, cap, output = (int(value or 0) for value in (*row, 0, 0)[:3])
    return Window(size, cap, output, source, guessed)


def _row(model: str, provider: str | None) -> tuple[Row, str, bool]:
    """Return a row of the table, where it comes from, and whether it is another model's."""
    served, bare = split(model)
    host = provider_key(provider) or served
    own, voted = table().hosts.get(host, {}), table().models
    for name in candidates(bare):
        if name in own:
            row, base = own[name], voted.get(name, ())
            return (*row, *base[len(row) :]) if len(row) <= 3 else row, f"table:{host}", False
        if name in voted:
            return voted[name], "table", False
    return _prefixed(candidates(bare)[-1])


def _prefixed(name: str) -> tuple[Row, str, bool]:
    """Return the row of the longest id that this one goes on from; never across a version number."""
    parts = name.split("-")
    for size in range(len(parts) - 1, 1, -1):
        head, follows = "-".join(parts[:size]), parts[size]
        if head in table().models and (not follows[:1].isdigit() or SIZE.match(follows)):
            return table().models[head], "prefix", True
    return (), "default", True


def _overridden(model: str, override: Override | None) -> Window | None:
    match override:
        case None:
            return None
        case bool():
            raise BadBudget(f"the window of {model or 'the model'} is {override!r}; give a number of tokens")
        case int():
            return Window(_checked("window", override))
        case Window():
            return _fields(msgspec.structs.asdict(override))
        case Mapping() if "window" in override:
            return _fields(override)
        case Mapping():
            return _overridden(model, _of_model(model, override))
        case _:
            raise BadBudget(f"the window of {model or 'the model'} is {override!r}; give a number of tokens")


def _of_model(model: str, table: Mapping[str, object]) -> Override | None:
    """Return a user's own row: for the id as written, or for the same model written otherwise."""
    if model in table:
        return table[model]  # type: ignore[return-value]  # _overridden refuses what it is not
    bare = split(model).model
    return next((value for key, value in table.items() if split(key).model == bare), None)  # type: ignore[return-value]


def _fields(values: Mapping[str, object]) -> Window:
    size = _checked("window", values["window"])
    caps = {name: _checked(name, values[name]) for name in ("input_cap", "output_cap") if values.get(name)}
    for name, cap in caps.items():
        if cap > size:
            raise BadBudget(f"{name} {cap:,} is above the window {size:,}; a cap is at most the window")
    return Window(size, caps.get("input_cap", 0), caps.get("output_cap", 0))


def _checked(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST:
        raise BadBudget(f"{name} is {value!r}; give a whole number of tokens from 1 to {LARGEST:,}")
    return value
