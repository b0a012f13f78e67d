"""Runs over many conversations summed up by policy, with standard errors, and which figures can be told apart.

Errors are by bootstrap over conversations, the unit that is sampled: calls of one conversation are not independent.
"""

from __future__ import annotations

import random
from math import sqrt
from typing import TYPE_CHECKING

from msgspec import Struct

from refold.replay.run import NONE, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refold.replay.quality import Quality

__all__ = ["Figure", "Row", "Verdict", "summed", "verdicts"]

RESAMPLES = 1_000
SIDE = 25  # of 1,000 resamples on either side: 95 %
METRICS: tuple[tuple[str, Callable[[Quality], float | None]], ...] = (
    ("recall", lambda each: each.recall),
    ("lost", lambda each: each.lost),
    ("anchors", lambda each: each.anchors),
    ("trail", lambda each: each.trail),
    ("constraints", lambda each: each.constraints),
    ("copied", lambda each: each.copied),
)


class Figure(Struct, frozen=True):
    """A mean over conversations and its standard error; None where one conversation says nothing about others."""

    value: float
    error: float | None = None


class Row(Struct, frozen=True):
    """One policy over all conversations. `change` is the bill against doing nothing, as a share.

    The quality figures are means over the cuts of a conversation at which some policy had compacted, then over
    conversations; None where there was no such cut.
    """

    policy: str
    conversations: int
    calls: int
    compactions: int
    peak: int
    mean: int
    dollars: float
    refetches: int
    refetch: float
    bill: float
    damage: float
    broken: int
    over: int
    change: Figure
    quality: dict[str, Figure]


class Verdict(Struct, frozen=True):
    """Whether the best policy on a figure can be told from another: "supported" or "not supported"."""

    figure: str
    best: str
    other: str
    supported: bool

    @property
    def said(self) -> str:
        """The verdict in a word or two."""
        return "supported" if self.supported else "not supported"


def summed(conversations: Sequence[Sequence[Run]]) -> list[Row]:
    """Return a row for each policy; `conversations` are the runs of each, all under the same policies."""
    names = [run.policy for run in conversations[0]] if conversations else []
    runs = {name: [_of(each, name) for each in conversations] for name in names}
    means = {name: _means(conversations, name) for name in names}
    return [_row(name, some, runs.get(NONE), means[name]) for name, some in runs.items()]


def verdicts(conversations: Sequence[Sequence[Run]]) -> list[Verdict]:
    """Compare the best policy with every other one, on the bill and on recall, by bootstrap over conversations."""
    names = [run.policy for run in conversations[0] if run.policy != NONE] if conversations else []
    if len(names) < 2:
        return []
    bills = {name: [_of(each, name).bill for each in conversations] for name in names}
    means = {name: _means(conversations, name)["recall"] for name in names}
    costs = {name: [(bill, 1.0) for bill in some] for name, some in bills.items()}
    kept = {name: [(-value, 1.0) for value in some if value is not None] for name, some in means.items()}
    return [*_compared("bill", costs), *(_compared("recall", kept) if any(kept.values()) else ())]


def _compared(figure: str, values: dict[str, list[tuple[float, float]]]) -> list[Verdict]:
    """Compare the policy with the smallest sum with each other one."""
    best = min(values, key=lambda name: sum(value for value, _ in values[name]))
    found = []
    for name, some in values.items():
        if name == best:
            continue
        gaps = [mine - other for (mine, _), (other, _) in zip(values[best], some, strict=True)]
        resampled = sorted(_resampled(gaps)) if len(gaps) > 1 else [0.0]
        found.append(Verdict(figure, best, name, len(gaps) > 1 and resampled[-SIDE - 1] < 0))
    return found


def _resampled(values: Sequence[float]) -> list[float]:
    chance = random.Random(0)  # noqa: S311 - the same every time, and no secret
    return [sum(chance.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES)]


def _row(name: str, runs: list[Run], base: list[Run] | None, means: dict[str, list[float | None]]) -> Row:
    calls = sum(len(run.context) for run in runs)
    bill = sum(run.bill for run in runs)
    pairs = [(run.bill, other.bill) for run, other in zip(runs, base or runs, strict=True)]
    return Row(
        policy=name, conversations=len(runs), calls=calls, compactions=sum(len(run.compactions) for run in runs),
        peak=max(run.peak for run in runs), mean=round(sum(run.tokens.prompt for run in runs) / max(calls, 1)),
        dollars=sum(run.spent.dollars for run in runs), refetches=sum(run.refetches for run in runs),
        refetch=sum(run.refetch for run in runs), bill=bill, damage=sum(run.damage for run in runs),
        broken=sum(run.broken for run in runs), over=sum(run.over for run in runs), change=_change(pairs),
        quality={name: _figure([value for value in some if value is not None]) for name, some in means.items()
                 if any(value is not None for value in some)},
    )  # fmt: skip


def _change(pairs: list[tuple[float, float]]) -> Figure:
    """Return by what share the sum of the first is above that of the second, with its error."""
    change = _ratio(pairs) - 1
    if len(pairs) < 2:
        return Figure(change)
    chance = random.Random(0)  # noqa: S311 - the same every time, and no secret
    return Figure(change, _deviation([_ratio(chance.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES)]))


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    below = sum(base for _, base in pairs)
    return sum(bill for bill, _ in pairs) / below if below else 1.0


def _figure(values: list[float]) -> Figure:
    mean = sum(values) / len(values)
    return Figure(mean, _deviation(_resampled(values)) if len(values) > 1 else None)


def _deviation(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def _means(conversations: Sequence[Sequence[Run]], name: str) -> dict[str, list[float | None]]:
    """Return each metric of a policy by conversation, over the cuts at which some policy had compacted."""
    found: dict[str, list[float | None]] = {metric: [] for metric, _ in METRICS}
    for runs in conversations:
        first = min((run.compactions[0].call for run in runs if run.compactions), default=None)
        cuts = [each for each in _of(runs, name).quality if first is not None and each.call >= first]
        for metric, read in METRICS:
            values = [value for each in cuts if (value := read(each)) is not None]
            found[metric].append(sum(values) / len(values) if values else None)
    return found


def _of(runs: Sequence[Run], name: str) -> Run:
    return next(run for run in runs if run.policy == name)
