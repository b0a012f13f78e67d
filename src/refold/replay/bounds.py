"""The best any choice could have done, and the least it should: the oracle, its certified bound, and two floors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold.core.messages import texts
from refold.salience.atoms import atoms_of
from refold.salience.cover import Unit, choose
from refold.salience.segments import split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from refold.core.messages import Message

__all__ = ["Bounds", "bounds"]

CHARS = 4  # characters a token, for segments that are chosen with the future in sight
PRIME = 2_147_483_629  # steps through the segments of the random floor, the same every time


class Bounds(Struct, frozen=True):
    """Shares of the needed weight within a budget of tokens.

    `oracle` is greedy choice of segments that sees the future; no choice of segments covers more than `certified`.
    `recency` keeps the newest segments, `random` any.
    """

    oracle: float
    certified: float
    recency: float
    random: float


def bounds(needed: Mapping[str, float], history: Sequence[Message], budget: int) -> Bounds:
    """Return what an oracle, recency and chance would keep of needed atoms in a budget of tokens."""
    total = sum(needed.values())
    pieces = [piece for message in history for text in texts(message) for piece in split(text)]
    units = [Unit(number, len(piece) / CHARS + 1, atoms_of(piece)) for number, piece in enumerate(pieces)]
    if not total or not units:
        return Bounds(1.0, 1.0, 1.0, 1.0)
    covered: set[str] = set()
    choose(units, needed, covered, budget)
    held = sum(needed[atom] for atom in needed.keys() & covered)
    left = _gains(units, needed, covered, budget)
    alone = _gains(units, needed, set(), budget)
    mixed = sorted(units, key=lambda unit: (unit.of + 1) * PRIME % (len(units) * 7 + 1))
    return Bounds(
        held / total,
        min(1.0, (held + left) / total, alone / total),
        _filled(reversed(units), needed, budget) / total,
        _filled(mixed, needed, budget) / total,
    )


def _gains(units: Sequence[Unit], needed: Mapping[str, float], covered: set[str], budget: float) -> float:
    """Return the most that units could add, each at its gain over what is covered, the last one in part."""
    gains = [(sum(needed.get(atom, 0.0) for atom in unit.atoms - covered), unit.cost) for unit in units]
    found = 0.0
    for gain, cost in sorted(gains, key=lambda pair: -pair[0] / pair[1]):
        if gain <= 0 or budget <= 0:
            break
        found += gain * min(1.0, budget / cost)
        budget -= cost
    return found


def _filled(units: Iterable[Unit], needed: Mapping[str, float], budget: float) -> float:
    held: set[str] = set()
    for unit in units:
        if unit.cost <= budget:
            budget -= unit.cost
            held |= unit.atoms
    return sum(needed[atom] for atom in needed.keys() & held)
