"""The best any choice could have done, and the least it should: the oracle, its certified bound, and two floors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from refold._salience.atoms import atoms_of
from refold._salience.cover import Unit, choose
from refold._salience.segments import split
from refold.core.messages import memoized, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from refold.core.messages import Message

__all__ = ["Bounds", "bounds"]

CHARS = 4  # characters a token, by default
PRIME = 2_147_483_629  # steps through the segments of the random floor, the same every time
LONG = re.compile(r"(?s).{1,480}(?=[\s,;]|$)|.{1,480}")
PREFIXES = 8  # of the greedy choice, from which a bound is taken; the lowest holds


class Bounds(Struct, frozen=True):
    """Shares of the needed weight within a budget of tokens.

    `oracle` is greedy choice of segments that sees the future; no choice of segments covers more than `certified`.
    `recency` keeps the newest segments, `random` any.
    """

    oracle: float
    certified: float
    recency: float
    random: float


class _Piece(NamedTuple):
    """A segment of the history: its size, and its atoms."""

    cost: float
    atoms: frozenset[str]


def bounds(needed: Mapping[str, float], history: Sequence[Message], budget: int, chars: float = CHARS) -> Bounds:
    """Return what an oracle, recency and chance would keep of needed atoms in a budget of tokens of so many `chars`."""
    total = sum(needed.values())
    sized = (piece for message in history for piece in _pieces(message))
    pieces = [_Piece(length / chars + 1, atoms) for length, atoms in sized]
    if not total or not pieces:
        return Bounds(1.0, 1.0, 1.0, 1.0)
    wanted = needed.keys()
    useful = [_Piece(cost, needed_atoms) for cost, atoms in pieces if (needed_atoms := atoms & wanted)]
    chosen = choose([Unit(None, cost, atoms) for cost, atoms in useful], needed, set(), budget)
    alone = max((_worth(atoms, needed) for cost, atoms in useful if cost <= budget), default=0.0)
    places = range(len(pieces))
    mixed = [pieces[place] for place in sorted(places, key=lambda place: (place + 1) * PRIME % (len(pieces) * 7 + 1))]
    figures = (
        max(_worth(frozenset().union(*(unit.atoms for unit in chosen)), needed), alone),
        _certified(useful, chosen, needed, budget),
        _filled(reversed(pieces), needed, budget),
        _filled(mixed, needed, budget),
    )
    return Bounds(*(round(figure / total, 6) for figure in figures))


@memoized
def _pieces(message: Message) -> tuple[_Piece, ...]:
    """Return the segments of a message, by their characters; long lines, as of JSON, in pieces that end at a blank."""
    runs = (run for text in texts(message) for run in split(text))
    return tuple(_Piece(len(piece), atoms_of(piece)) for run in runs for piece in LONG.findall(run))


def _worth(atoms: frozenset[str], needed: Mapping[str, float]) -> float:
    return sum(needed[atom] for atom in atoms & needed.keys())


def _certified(pieces: Sequence[_Piece], chosen: Sequence[Unit], needed: Mapping[str, float], budget: float) -> float:
    """Return the most that any choice could cover: over a prefix of the greedy choice, all it lacks at its best."""
    least = sum(needed.values())
    for part in range(PREFIXES + 1):
        covered = frozenset().union(*(unit.atoms for unit in chosen[: len(chosen) * part // PREFIXES]))
        least = min(least, _worth(covered, needed) + _gains(pieces, needed, covered, budget))
    return least


def _gains(pieces: Sequence[_Piece], needed: Mapping[str, float], covered: frozenset[str], budget: float) -> float:
    """Return the most that pieces could add, each at its gain over what is covered, the last one in part."""
    gains = [(_worth(atoms - covered, needed), cost) for cost, atoms in pieces]
    bound = 0.0
    for gain, cost in sorted(gains, key=lambda pair: -pair[0] / pair[1]):
        if gain <= 0 or budget <= 0:
            break
        bound += gain * min(1.0, budget / cost)
        budget -= cost
    return bound


def _filled(pieces: Iterable[_Piece], needed: Mapping[str, float], budget: float) -> float:
    covered: set[str] = set()
    for cost, atoms in pieces:
        if cost <= budget:
            budget -= cost
            covered |= atoms & needed.keys()
    return sum(needed[atom] for atom in covered)
