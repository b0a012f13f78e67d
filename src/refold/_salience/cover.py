"""Greedy coverage: the choice of units that covers the most worth for their size, a second copy gaining nothing.

Theory of operation. Units (batches, calls, runs of lines) hold atoms, and each atom has a worth: how likely it is
needed again. The worth of a choice is that of the atoms it covers, each once. This is the budgeted maximum coverage
problem (Khuller, Moss and Naor 1999). The function is monotone and submodular, for which the greedy choice by gain per
token is the usual approximation.

- Gains only fall while units are chosen. So the heap may hold old ratios, which are upper bounds: a unit that comes to
  the top is computed anew, and chosen if it is still the best ("lazy greedy", Minoux 1978).
- The gain of each unit is kept up to date by its atoms: the first unit that covers an atom takes its worth away from
  all other holders. Computing a ratio then costs nothing, whatever the number of atoms.
- Worths are whole numbers (`GRAIN`), so that what is subtracted leaves no remainder, and the order does not depend on
  rounding: plans are deterministic.
- Where atoms tell nothing, what is new does: `news` is worth of text that nothing chosen says word for word yet. Of a
  unit that says mostly what another one says (the same page, seen once more) only the rest counts.
- Some units make sense only behind another (lines of an output behind its call). They are weighed together until the
  other one is chosen, which puts them into the heap again.
"""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush, heappushpop
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

__all__ = ["Cover", "Unit", "choose"]

LEAST = 20  # tokens under which no more is sought
NEAR = 1e-12  # ratios that differ by less are equal: the order given decides
CHARS = 3.5  # of what is said, a token; the rest of a unit's tokens is frame: call, id, marker
GRAIN = 1 << 24  # worths are whole numbers of this part, so that what is taken away again leaves no remainder


class Unit(Struct, eq=False, gc=False):
    """What is kept or left as one: its tokens, the atoms it holds, and another unit without which it cannot be.

    `extra` is worth by token that does not depend on what else is chosen, `news` that of a token of text that nothing
    says yet: `statements` are those in it; without any, all of it is new. `of` is whatever the caller knows it by.
    `new` are the atoms that nothing covered before it but the unit it comes after, `gain` what they still are worth.
    `whole` are the characters of what is said, `fresh` those that nothing else says.
    """

    of: Any
    cost: float
    atoms: frozenset[str]
    after: Unit | None = None
    extra: float = 0.0
    news: float = 0.0
    statements: frozenset[str] = frozenset()
    taken: bool = False
    new: frozenset[str] = frozenset()
    gain: int = 0
    whole: int = 0
    fresh: int = 0


class Cover:
    """Units to choose from, and what is covered; choosing goes on where it ended.

    `covered` are the atoms, and `stated` the statements, that stay whatever is chosen.
    This is the lazy greedy: a ratio is computed anew only when its unit comes to the top, which is exact since gains
    only fall; what waits for another unit comes up again once that is chosen. Gains are kept up by the atoms: each
    is covered once, and then leaves the gain of every unit that holds it.
    """

    def __init__(
        self,
        units: Iterable[Unit],
        worths: Callable[[Collection[str]], Iterable[float]],
        covered: Collection[str],
        stated: Collection[str] = (),
    ) -> None:
        self.units = list(units)
        self.waiting: dict[int, list[int]] = {}
        for number, unit in enumerate(self.units):
            if unit.after is None:
                unit.new = unit.atoms.difference(covered)
            else:
                unit.new = unit.atoms.difference(covered, unit.after.atoms)
                self.waiting.setdefault(id(unit.after), []).append(number)
        holding = Counter(chain.from_iterable([unit.new for unit in self.units]))  # how many units hold an atom
        self.open = dict(zip(holding, [int(each * GRAIN) for each in worths(holding)], strict=True))
        # of atoms that more than one unit holds
        self.holders: dict[str, list[Unit]] = {atom: [] for atom, number in holding.items() if number > 1}
        holders, worth = self.holders, self.open.__getitem__
        for unit in self.units:
            unit.gain = sum(map(worth, unit.new))
            for atom in unit.new & holders.keys():
                holders[atom].append(unit)
        self.speakers = self._speakers(stated)

    def _speakers(self, stated: Collection[str]) -> dict[str, list[Unit]]:
        """Find how much of each unit nothing else says; return the units by what several of them say."""
        times: Counter[str] = Counter()
        for unit in self.units:
            times.update(unit.statements)
        speakers: dict[str, list[Unit]] = {statement: [] for statement, number in times.items() if number > 1}
        for unit in self.units:
            unit.whole = unit.fresh = sum(map(len, unit.statements))
            for statement in unit.statements & speakers.keys():
                speakers[statement].append(unit)
            unit.fresh -= sum(map(len, unit.statements.intersection(stated)))
        speakers.update((statement, []) for statement in stated)
        return speakers

    def choose(self, room: float) -> list[Unit]:
        """Return units that fit the room together, in the order of choice, by worth newly covered per token."""
        units = self.units
        heap = [(-_ratio(unit), number) for number, unit in enumerate(units) if not unit.taken and unit.cost <= room]
        heapify(heap)
        chosen: list[Unit] = []
        best = heappop(heap) if heap else None
        while best and room > LEAST:
            number = best[1]
            unit = units[number]
            now = 0.0 if unit.taken or unit.cost > room else _ratio(unit)
            if now > 0 and heap and now < -heap[0][0] - NEAR:
                best = heappushpop(heap, (-now, number))
                continue
            if now > 0:
                pair = (unit,) if unit.after is None or unit.after.taken else (unit.after, unit)
                cost = sum([one.cost for one in pair])
                if cost <= room:
                    room -= cost
                    for one in pair:
                        self._take(one, heap)
                    chosen += pair
            best = heappop(heap) if heap else None
        return chosen

    def _take(self, unit: Unit, heap: list[tuple[float, int]]) -> None:
        unit.taken = True
        worth, holders = self.open, self.holders
        for atom in unit.new & holders.keys():
            gain = worth[atom]
            if gain:
                for holder in holders[atom]:
                    holder.gain -= gain
        worth.update(dict.fromkeys(unit.new, 0))
        speakers = self.speakers
        for statement in unit.statements & speakers.keys():
            for speaker in speakers[statement]:
                speaker.fresh -= len(statement)
            speakers[statement] = []
        unit.gain = 0
        for number in self.waiting.get(id(unit), ()):
            heappush(heap, (-_ratio(self.units[number]), number))


def choose(units: Iterable[Unit], worth: Mapping[str, float], covered: set[str], room: float) -> list[Unit]:
    """Return units that fit the room together, in the order of choice: see `Cover`; `covered` grows."""
    chosen = Cover(units, lambda atoms: [worth.get(atom, 0.0) for atom in atoms], covered).choose(room)
    covered.update(*(unit.atoms for unit in chosen))
    return chosen


def _ratio(unit: Unit) -> float:
    """Return worth by token: of a unit that waits for another, of both together."""
    first = unit.after
    if first is None or first.taken:
        return (unit.gain / GRAIN + _more(unit)) / unit.cost
    return ((unit.gain + first.gain) / GRAIN + _more(unit) + _more(first)) / (unit.cost + first.cost)


def _more(unit: Unit) -> float:
    """Return worth beside that of atoms: of what is new the more, the less of a unit is frame around it."""
    if not unit.whole:
        return (unit.extra + unit.news) * unit.cost
    dense = min(unit.whole / CHARS / unit.cost, 1.0)
    return (unit.extra + unit.news * dense**2 * unit.fresh / unit.whole) * unit.cost
