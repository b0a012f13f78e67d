"""Greedy coverage: the choice of units that covers the most worth for their size, a second copy gaining nothing.

Theory of operation. Units (batches, calls, runs of lines) hold atoms, and each atom has a worth: how likely it is
needed again. The worth of a choice is that of the atoms it covers, each once. This is the budgeted maximum coverage
problem (Khuller, Moss and Naor 1999). The function is monotone and submodular, for which the greedy choice by gain per
token is the usual approximation.

- Gains only fall while units are chosen. So the heap may hold old ratios, which are upper bounds: a unit that comes to
  the top is computed anew, and chosen if it is still the best ("lazy greedy", Minoux 1978).
- The gain of each unit is kept up to date by its atoms: the first unit that covers an atom takes its worth away from
  all other holders. Computing a ratio then costs nothing, whatever the number of atoms. Units are numbers, and what is
  known of them are lists by number: there may be a hundred thousand.
- Worths are whole numbers (`GRAIN`), so that what is subtracted leaves no remainder, and the order does not depend on
  rounding: plans are deterministic.
- Where atoms tell nothing, what is new does: `news` is worth of text that nothing chosen says word for word yet. Of a
  unit that says mostly what another one says (the same page, seen once more) only the rest counts.
- Some units make sense only behind another (lines of an output behind its call). Until that one is chosen, only the
  best of those behind it is in the heap, weighed together with it; then each goes into the heap alone. What is taken
  costs nothing more and gains nothing more, and neither does the nothing that all other units are weighed with.
"""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain, compress
from math import inf
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

__all__ = ["Cover", "Unit", "choose"]

LEAST = 20  # tokens under which no more is sought
NEAR = 1e-12  # ratios that differ by less are equal: the order given decides
AGAIN = 0.01  # of what counts once, for a text that says nothing new: it comes back last, where room is left
CHARS = 3.5  # of what is said, a token; the rest of a unit's tokens is frame: call, id, marker
END = (inf, -1)  # behind all ratios
GRAIN = 1 << 24  # worths are whole numbers of this part, so that what is taken away again leaves no remainder


class Unit(Struct, eq=False, gc=False):
    """What is kept or left as one: its tokens, the atoms it holds, and another unit without which it cannot be.

    `extra` is worth by token that does not depend on what else is chosen, `once` that of a token of text that nothing
    says yet, and `news` the same, but little of it where much of a unit is frame: `statements` are those in its text;
    without any, all of it is new. `times` multiplies the worth of its atoms. `of` is whatever the caller knows it by.
    """

    of: Any
    cost: float
    atoms: frozenset[str]
    after: Unit | None = None
    extra: float = 0.0
    news: float = 0.0
    statements: frozenset[str] = frozenset()
    once: float = 0.0
    times: float = 1.0


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
        units = self.units = list(units)
        nothing = len(units)  # the number of what every unit comes after that needs no other
        numbers = {id(unit): number for number, unit in enumerate(units)}
        self.firsts = [nothing if unit.after is None else numbers[id(unit.after)] for unit in units]
        self.waiting: dict[int, list[int]] = {}
        for number, first in enumerate(self.firsts):
            if first != nothing:
                self.waiting.setdefault(first, []).append(number)
        self.taken = [False] * len(units) + [True]
        self.alone = [number for number, first in enumerate(self.firsts) if first == nothing]
        self.costs = [*(unit.cost for unit in units), 0.0]
        self.scales = [*(unit.times / GRAIN for unit in units), 0.0]
        self._hold(worths, covered)
        self._speak(stated)

    def _hold(self, worths: Callable[[Collection[str]], Iterable[float]], covered: Collection[str]) -> None:
        """Find which atoms of each unit are new, what they are worth, and which other units hold them.

        New are those that nothing covers before but the unit it comes after; shared are those that several units hold.
        """
        self.new = [
            unit.atoms.difference(covered) if unit.after is None else unit.atoms.difference(covered, unit.after.atoms)
            for unit in self.units
        ]
        holding = Counter(chain.from_iterable(self.new))  # how many units hold an atom
        self.worths = dict(zip(holding, [int(each * GRAIN) for each in worths(holding)], strict=True))
        worth = self.worths.__getitem__
        self.gains = [*[sum(map(worth, atoms)) if atoms else 0 for atoms in self.new], 0]
        holders: dict[str, list[int]] = {atom: [] for atom, number in holding.items() if number > 1}
        several = frozenset(holders)
        self.holders, self.shared = holders, [atoms & several for atoms in self.new]
        for number, atoms in enumerate(self.shared):
            for atom in atoms:
                holders[atom].append(number)

    def missing(self) -> Iterator[str]:
        """Yield the atoms of worth that nothing covers yet."""
        covered = frozenset().union(*compress(self.new, self.taken))
        return (atom for atom, worth in self.worths.items() if worth and atom not in covered)

    def _speak(self, stated: Collection[str]) -> None:
        """Find what each unit is worth beside its atoms, and which units say the same.

        `wholes` are the characters of what a unit says, `fresh` those that nothing else says.
        """
        units = self.units
        times = Counter(chain.from_iterable([unit.statements for unit in units]))
        speakers: dict[str, list[int]] = {statement: [] for statement, number in times.items() if number > 1}
        self.speakers, several = speakers, frozenset(speakers)
        self.wholes = [sum(map(len, unit.statements)) for unit in units]
        self.fresh = self.wholes.copy()
        self.repeated = [unit.statements & several for unit in units]
        for number, (unit, repeated) in enumerate(zip(units, self.repeated, strict=True)):
            if not unit.statements.isdisjoint(stated):
                self.fresh[number] -= sum(map(len, unit.statements.intersection(stated)))
                repeated = repeated.difference(stated)
            for statement in repeated:
                speakers[statement].append(number)
        self.more = [*map(self._more, range(len(units))), 0.0]

    def _more(self, number: int) -> float:
        """Return worth beside that of atoms: of what is new the more, the less of a unit is frame around it."""
        unit, whole = self.units[number], self.wholes[number]
        if not whole:
            return (unit.extra + unit.once + unit.news) * unit.cost
        dense = min(whole / CHARS / unit.cost, 1.0)
        fresh = self.fresh[number] / whole
        return (unit.extra + unit.once * max(fresh, AGAIN) + unit.news * dense**2 * fresh) * unit.cost

    def choose(self, room: float) -> list[Unit]:
        """Return units that fit the room together, in the order of choice, by worth newly covered per token."""
        taken, costs, gains, scales = self.taken, self.costs, self.gains, self.scales
        more, firsts, units = self.more, self.firsts, self.units
        self.alone = [number for number in self.alone if not taken[number]]
        ratios = [END]
        ratios += [
            (-((gains[number] * scales[number] + more[number]) / costs[number]), number)
            for number in self.alone
            if costs[number] <= room
        ]
        behind = {first: self._behind(first, room) for first in self.waiting if not taken[first]}
        ratios += [waiting[0] for waiting in behind.values() if waiting]
        ratios.sort(reverse=True)
        fallen = [END]
        chosen: list[Unit] = []
        while room > LEAST:
            ratio, number = heappop(fallen) if fallen[0] < ratios[-1] else ratios.pop()
            if number < 0:
                break
            first = firsts[number]
            if not taken[first]:
                now, number = self._best_behind(first, behind[first], room)
            elif taken[number] or costs[number] > room:
                continue
            else:
                now = -((gains[number] * scales[number] + more[number]) / costs[number])
            if now >= 0:
                continue
            if now > ratio and (now > ratios[-1][0] + NEAR or now > fallen[0][0] + NEAR):
                heappush(fallen, (now, number))
                continue
            room -= costs[number] + costs[first]
            for one in (number,) if taken[first] else (first, number):
                self._take(one, fallen)
                chosen.append(units[one])
        return chosen

    def _behind(self, first: int, room: float) -> list[tuple[float, int]]:
        """Return a heap of the units behind one that is not taken yet, by the ratio of both together."""
        gains, more, costs, scales = self.gains, self.more, self.costs, self.scales
        gain, other, cost = gains[first] * scales[first], more[first], costs[first]
        ratios = [
            (-((gains[number] * scales[number] + gain + more[number] + other) / (costs[number] + cost)), number)
            for number in self.waiting[first]
            if costs[number] <= room
        ]
        heapify(ratios)
        return ratios

    def _best_behind(self, first: int, heap: list[tuple[float, int]], room: float) -> tuple[float, int]:
        """Return the best unit of such a heap that fits the room, with its ratio as it is now."""
        gains, more, costs, scales = self.gains, self.more, self.costs, self.scales
        while heap:
            ratio, number = heap[0]
            both = costs[number] + costs[first]
            if both > room:
                heappop(heap)
                continue
            now = -((gains[number] * scales[number] + gains[first] * scales[first] + more[number] + more[first]) / both)
            if now > ratio:
                heapreplace(heap, (now, number))
            if now <= heap[0][0] + NEAR:
                return now, number
        return END

    def _take(self, number: int, heap: list[tuple[float, int]]) -> None:
        self.taken[number] = True
        worths, holders, gains, speakers = self.worths, self.holders, self.gains, self.speakers
        for atom in self.shared[number]:
            gain = worths[atom]
            if gain:
                worths[atom] = 0
                for holder in holders[atom]:
                    gains[holder] -= gain
        for statement in self.repeated[number]:
            for speaker in speakers[statement]:
                self.fresh[speaker] -= len(statement)
                self.more[speaker] = self._more(speaker)
            speakers[statement] = []
        gains[number], self.more[number], self.costs[number] = 0, 0.0, 0.0
        behind = self.waiting.get(number, ())
        self.alone += behind
        more, costs, scales = self.more, self.costs, self.scales
        for each in behind:
            heappush(heap, (-((gains[each] * scales[each] + more[each]) / costs[each]), each))


def choose(units: Iterable[Unit], worth: Mapping[str, float], covered: set[str], room: float) -> list[Unit]:
    """Return units that fit the room together, in the order of choice: see `Cover`; `covered` grows."""
    chosen = Cover(units, lambda atoms: [worth.get(atom, 0.0) for atom in atoms], covered).choose(room)
    covered.update(*(unit.atoms for unit in chosen))
    return chosen
