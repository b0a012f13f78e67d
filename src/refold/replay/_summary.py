"""Summarizes runs over many conversations by policy, with standard errors and significance.

Errors are by bootstrap over conversations, the unit that is sampled: calls of one conversation are not independent.
"""

from __future__ import annotations

import random
from math import sqrt
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold.replay._run import NONE, Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.replay._quality import Quality

__all__ = [
    "LIMITS",
    "METRICS",
    "Comparison",
    "Figure",
    "PolicySummary",
    "limits_of",
    "size_order",
    "sizes_of",
    "summed",
    "verdicts",
]

RESAMPLES = 1_000
SIDE = 25  # of 1,000 resamples on either side: 95 %
METRICS = (
    *("recall", "recoverable", "lost", "anchors", "trail", "trail_precision", "constraints", "copied", "valid"),
    *("age", "repeated", "density"),
)
LIMITS = ("certified", "oracle", "recency", "random")

ByMetric = dict[str, "list[float | None]"]  # a value for each conversation, None where it has none


class Figure(Struct, frozen=True):
    """A mean over `count` conversations and its standard error; None where one says nothing about others."""

    value: float
    error: float | None = None
    count: int = 1


class PolicySummary(Struct, frozen=True):
    """One policy over all conversations. `change` is the bill against doing nothing, as a share.

    The figures of `quality` are means over the cuts of a conversation at which some policy had compacted, then over
    conversations. `at_sizes` are those at equal sizes, by the size, with `used` of the budget, `fits` (the share of
    cuts where the policy came down to it) and `bound` (recall as a share of the certified bound). `cycles` are
    those after five compactions in a row. A figure without anything to judge is left out.
    """

    policy: str
    conversations: int
    calls: int
    compactions: int
    peak: int
    mean: int
    dollars: float
    summaries: int
    summary: float
    refetches: int
    refetch: float
    bill: float
    damage: float
    broken: int
    over: int
    change: Figure
    quality: dict[str, Figure]
    at_sizes: dict[str, dict[str, Figure]] = {}
    cycles: dict[str, Figure] = {}


class Comparison(Struct, frozen=True):
    """Whether the best policy on a figure differs from another: "supported" or "not supported"."""

    figure: str
    best: str
    other: str
    supported: bool

    @property
    def verdict(self) -> str:
        """The verdict in a word or two."""
        return "supported" if self.supported else "not supported"


def summed(conversations: Sequence[Sequence[Run]]) -> list[PolicySummary]:
    """Return a row for each policy; `conversations` are the runs of each, all under the same policies."""
    return [_row(name, conversations) for name in _names(conversations)]


def limits_of(conversations: Sequence[Sequence[Run]]) -> dict[str, dict[str, Figure]]:
    """Return by size what any choice could have preserved: `certified`, `oracle`, `recency` and `random`."""
    figures: dict[str, dict[str, Figure]] = {}
    for size in sizes_of(conversations):
        groups = [[each.bounds for run in runs for each in run.limits if each.size == size] for runs in conversations]
        figures[size] = _figures(
            {name: [_mean(getattr(each, name) for each in some) for some in groups] for name in LIMITS}
        )
    return figures


def sizes_of(conversations: Sequence[Sequence[Run]]) -> list[str]:
    """Return the sizes that something was judged at: shares of the history, then tokens, small ones first."""
    runs = [run for each in conversations for run in each]
    judged = {each.size for run in runs for each in run.at_sizes} | {each.size for run in runs for each in run.limits}
    return sorted(judged, key=size_order)


def size_order(size: str) -> tuple[bool, float]:
    """Return what sorts sizes: shares of the history, then tokens, small ones first."""
    return not size.endswith("%"), float(size.rstrip("%k")) * (1_000 if size.endswith("k") else 1)


def verdicts(conversations: Sequence[Sequence[Run]]) -> list[Comparison]:
    """Compare the best policy with every other one by bootstrap over conversations: on the bill and on recall."""
    names = [name for name in _names(conversations) if name != NONE]
    if len(names) < 2:
        return []
    compared: dict[str, dict[str, list[float | None]]] = {
        "bill": {name: [-_of(runs, name).bill for runs in conversations] for name in names},
        "recall": {name: _judged(conversations, name)["recall"] for name in names},
    }
    for size in sizes_of(conversations):
        compared[f"recall at {size}"] = {name: _at_size(conversations, name, size)["recall"] for name in names}
    return [verdict for figure, values in compared.items() for verdict in _compared(figure, values)]


def _compared(figure: str, values: dict[str, list[float | None]]) -> list[Comparison]:
    """Compare the policy with the largest mean with each other one, over the conversations that both have."""
    means = {name: mean for name, some in values.items() if (mean := _mean(some)) is not None}
    if not means:
        return []
    best = max(means, key=lambda name: means[name])
    groups = []
    for name in means:
        if name == best:
            continue
        pairs = zip(values[best], values[name], strict=True)
        gaps = [mine - other for mine, other in pairs if mine is not None and other is not None]
        apart = len(gaps) > 1 and sorted(_resampled(gaps))[SIDE] > 0
        groups.append(Comparison(figure, best, name, apart))
    return groups


def _resampled(values: Sequence[float]) -> list[float]:
    chance = random.Random(0)  # noqa: S311 - the same every time, and no secret
    return [sum(chance.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES)]


def _row(name: str, conversations: Sequence[Sequence[Run]]) -> PolicySummary:
    runs = [_of(each, name) for each in conversations]
    base = [_of(each, NONE) for each in conversations] if NONE in _names(conversations) else runs
    calls = sum(len(run.context) for run in runs)
    change = _quotient([(run.bill, other.bill) for run, other in zip(runs, base, strict=True)])
    sizes = {size: _figures(_at_size(conversations, name, size)) for size in sizes_of(conversations)}
    return PolicySummary(
        policy=name, conversations=len(runs), calls=calls, compactions=sum(len(run.compactions) for run in runs),
        peak=max(run.peak for run in runs), mean=round(sum(run.tokens.prompt for run in runs) / max(calls, 1)),
        dollars=sum(run.spent.dollars for run in runs), summaries=sum(run.summaries for run in runs),
        summary=sum(run.summary for run in runs), refetches=sum(run.refetches for run in runs),
        refetch=sum(run.refetch for run in runs), bill=sum(run.bill for run in runs),
        damage=sum(run.damage for run in runs), broken=sum(run.broken for run in runs),
        over=sum(run.over for run in runs), quality=_figures(_judged(conversations, name)),
        change=replace(change, value=change.value - 1),
        at_sizes={size: figures for size, figures in sizes.items() if figures}, cycles=_cycles(runs),
    )  # fmt: skip


def _quotient(pairs: list[tuple[float, float]]) -> Figure:
    """Return the sum of the first by that of the second, with its error."""
    if len(pairs) < 2:
        return Figure(_ratio(pairs))
    chance = random.Random(0)  # noqa: S311 - the same every time, and no secret
    error = _deviation([_ratio(chance.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES)])
    return Figure(_ratio(pairs), error, len(pairs))


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    below = sum(base for _, base in pairs)
    return sum(bill for bill, _ in pairs) / below if below else 1.0


def _figures(groups: ByMetric) -> dict[str, Figure]:
    """Return the mean of each metric that some conversation has, with its error."""
    figures: dict[str, Figure] = {}
    for name, some in groups.items():
        if values := [value for value in some if value is not None]:
            error = _deviation(_resampled(values)) if len(values) > 1 else None
            figures[name] = Figure(sum(values) / len(values), error, len(values))
    return figures


def _deviation(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def _judged(conversations: Sequence[Sequence[Run]], name: str) -> ByMetric:
    """Return each metric of a policy by conversation, over the cuts at which some policy had compacted."""
    cuts: list[list[Quality]] = []
    for runs in conversations:
        first = min((run.compactions[0].call for run in runs if run.compactions), default=None)
        cuts.append([each for each in _of(runs, name).quality if first is not None and each.call >= first])
    return _means(cuts)


def _at_size(conversations: Sequence[Sequence[Run]], name: str, size: str) -> ByMetric:
    """Return each metric of a policy at one size by conversation, over the cuts where it came down to that size."""
    groups = [[each for each in _of(runs, name).at_sizes if each.size == size] for runs in conversations]
    figures = _means([[each.quality for each in some if each.quality] for some in groups])
    figures["used"] = [_mean(each.used for each in some if each.quality) for some in groups]
    figures["fits"] = [_mean(float(each.quality is not None) for each in some) for some in groups]
    bounds = [
        {each.cut: each.bounds.certified for run in runs for each in run.limits if each.size == size}
        for runs in conversations
    ]
    figures["bound"] = [
        _mean(each.quality.recall / most for each in some if each.quality and (most := known.get(each.cut)))
        for some, known in zip(groups, bounds, strict=True)
    ]
    return figures


def _cycles(runs: Sequence[Run]) -> dict[str, Figure]:
    """Return what five compactions in a row left; `drift` is recall after the fifth by that after a single one."""
    cycled = [run.cycles for run in runs if run.cycles]
    some = [each for each in cycled if each.planted]
    groups = _figures({
        "fits": [float(bool(each.planted)) for each in cycled],
        "planted_once": [each.planted[0] for each in some],
        "planted": [each.planted[-1] for each in some],
        "own": [each.own for each in some],
        "valid": [float(not each.broken) for each in some],
    })  # fmt: skip
    return groups | ({"drift": _quotient([(each.last, each.once) for each in some])} if some else {})


def _means(cuts: Sequence[Sequence[Quality]]) -> ByMetric:
    return {metric: [_mean(getattr(each, metric) for each in some) for some in cuts] for metric in METRICS}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _names(conversations: Sequence[Sequence[Run]]) -> list[str]:
    return [run.policy for run in conversations[0]] if conversations else []


def _of(runs: Sequence[Run], name: str) -> Run:
    return next(run for run in runs if run.policy == name)
