"""Compares what this project's policies decide with what their originals decided, over the same histories.

The originals were driven once, by hand (tools/record_originals.py); their decisions are data in tests/data/originals.
Every decision becomes a `Decision`: equal, or with the names of the deliberate differences that explain it, or with
neither, which fails the test. A name alone explains nothing: each difference is a change of the original's rule, and
the changed rule has to give exactly what this project decides.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conformance import histories

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.conformance.histories import History

__all__ = ["FIGURES", "Decision", "Tally", "figures_text", "original", "recorded_histories"]

DATA = Path(__file__).parent.parent / "data" / "originals"
FIGURES = DATA / "figures.json"


@dataclass(frozen=True)
class Decision:
    """One decision of both: of what kind, where, and which deliberate differences explain that they are not equal."""

    kind: str
    where: str
    ours: object
    theirs: object
    differences: tuple[str, ...] = ()

    @property
    def unexplained(self) -> bool:
        """Whether the two differ and nothing says why."""
        return self.ours != self.theirs and not self.differences


@dataclass(frozen=True)
class Tally:
    """What came out of a comparison."""

    histories: int
    compared: dict[str, int]
    equal: dict[str, int]
    differences: dict[str, int]
    unexplained: int

    @classmethod
    def of(cls, histories: int, decisions: Iterable[Decision]) -> Tally:
        """Count decisions by kind, and those that differ by the names of the differences."""
        all_ = list(decisions)
        return cls(
            histories,
            dict(Counter(one.kind for one in all_)),
            dict(Counter(one.kind for one in all_ if one.ours == one.theirs)),
            dict(sorted(Counter(name for one in all_ if one.ours != one.theirs for name in one.differences).items())),
            sum(one.unexplained for one in all_),
        )

    @property
    def figures(self) -> dict[str, Any]:
        """Return the figures for the policy's page: of each kind how many, and how many equal; differences by name."""
        kinds = {kind: [count, self.equal.get(kind, 0)] for kind, count in self.compared.items()}
        return {"histories": self.histories, "decisions": kinds, "differences": self.differences}


def original(name: str) -> dict[str, Any]:
    """Return what was recorded of an original."""
    recorded: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    return recorded


def recorded_histories(name: str) -> Iterator[tuple[History, dict[str, Any]]]:
    """Yield each history with what was recorded of it; one that has changed since must be recorded again."""
    recorded = {one["name"]: one for one in original(name)["histories"]}
    for history in histories.histories():
        theirs = recorded[history.name]
        assert history.digest == theirs["digest"], "the histories have changed: record the originals again"
        yield history, theirs


def figures_text(figures: dict[str, Any]) -> str:
    """Return figures as the file has them."""
    return json.dumps(figures, indent=1, ensure_ascii=False) + "\n"
