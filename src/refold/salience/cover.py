"""Greedy coverage: the choice of units that covers the most worth for their size, a second copy gaining nothing."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Unit", "choose"]

LEAST = 20  # tokens under which no more is sought
NEAR = 1e-12  # ratios that differ by less are equal: the order given decides


class Unit(Struct, eq=False):
    """What is kept or left as one: its tokens, the atoms it holds, and another unit without which it cannot be.

    `extra` is worth by token that does not depend on what else is chosen. `of` is whatever the caller knows it by.
    """

    of: Any
    cost: float
    atoms: frozenset[str]
    after: Unit | None = None
    extra: float = 0.0
    taken: bool = False


def choose(units: Iterable[Unit], worth: Mapping[str, float], covered: set[str], room: float) -> list[Unit]:
    """Return units that fit the room together, in the order of choice, by worth newly covered per token.

    This is the lazy greedy: a gain is computed anew only when its unit comes to the top, which is
    exact since gains only fall; what waits for another unit comes up again once that is chosen. `covered` grows.
    """
    waiting: dict[int, list[Unit]] = {}
    heap: list[tuple[float, int, Unit]] = []
    get = worth.get

    def ratio(unit: Unit) -> float:
        first = unit.after
        if first is None or first.taken:
            return sum([get(atom, 0.0) for atom in unit.atoms if atom not in covered]) / unit.cost + unit.extra
        both = sum([get(atom, 0.0) for atom in (unit.atoms | first.atoms) - covered])
        return (both + unit.extra * unit.cost + first.extra * first.cost) / (unit.cost + first.cost)

    for number, unit in enumerate(units):
        if unit.after is not None:
            waiting.setdefault(id(unit.after), []).append(unit)
        heap.append((-ratio(unit), number, unit))
    heapify(heap)
    number = len(heap)
    chosen: list[Unit] = []

    def take(unit: Unit) -> None:
        nonlocal number, room
        unit.taken = True
        room -= unit.cost
        covered.update(unit.atoms)
        chosen.append(unit)
        for other in waiting.get(id(unit), ()):
            heappush(heap, (-ratio(other), number, other))
            number += 1

    while heap and room > LEAST:
        _, order, unit = heappop(heap)
        if unit.taken:
            continue
        now = ratio(unit)
        if now <= 0:
            continue
        if heap and now < -heap[0][0] - NEAR:
            heappush(heap, (-now, order, unit))
            continue
        first = unit.after if unit.after is not None and not unit.after.taken else None
        if unit.cost + (first.cost if first else 0) > room:
            continue
        if first:
            take(first)
        take(unit)
    return chosen
