"""Finds many pieces in one text: they come in its order as a rule, so each is searched behind the one before."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

__all__ = ["MANY", "missing_from", "places_of"]

MANY = 200  # pieces from which each is not searched in the whole text
FEW = 64  # pieces from which it pays to look at the words of a text before it is searched
WORD = re.compile(r"\w+")


def places_of(pieces: Collection[str], text: str) -> Iterator[tuple[str, int]]:
    """Yield each piece with a position of it in a text, -1 where it has none.

    It is the first, but among many pieces one behind the piece before where there is one.
    """
    start, ordered = 0, len(pieces) > MANY
    for piece in pieces:
        place = text.find(piece, start)
        if place < 0 and start:
            place = text.find(piece)
        if ordered:
            start = max(place, start)
        yield piece, place


def missing_from(text: str, pieces: Sequence[str]) -> Iterator[str]:
    """Yield the pieces that a text does not contain."""
    if len(pieces) > FEW:  # the words inside a piece that is there are words of the text
        words = set(WORD.findall(text))
        likely = [piece for piece in pieces if words.issuperset(WORD.findall(f"x{piece}x")[1:-1])]
        absent = set(pieces).difference(likely)
        yield from (piece for piece in pieces if piece in absent)
    else:
        likely = list(pieces)
    yield from (piece for piece, place in places_of(likely, text) if place < 0)
