"""Cutting a text to a number of tokens, at the end of a sentence or a word (N09)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._text.graphemes import boundary_before

if TYPE_CHECKING:
    from refold.core.counting import Counter

__all__ = ["cut_to_tokens"]

ELLIPSIS = "..."  # N09
SENTENCE = re.compile(r"[.!?…。！？][\"')\]]*(?=\s|$)|\n|[。！？]")
WORD = re.compile(r"\s+")
LOOSE = 0.8  # N09 leaves the distance open: a boundary in the last fifth is taken, an earlier one loses too much
CHARS = 40  # characters a token at most that a first, generous cut leaves: runs of one sign pack tightly


def cut_to_tokens(text: str, max_tokens: int, counter: Counter) -> tuple[str, bool]:
    """Return the text, or its beginning with "..." within `max_tokens`, and whether anything was cut.

    Cuts after a sentence where one ends in the last fifth of what fits, else after a word, else between two
    characters. Where not even "..." fits, nothing is left.
    """
    if len(text) <= max_tokens * CHARS and counter.text(text) <= max_tokens:
        return text, False
    if max_tokens <= 0 or counter.text(ELLIPSIS) > max_tokens:
        return "", bool(text)
    size = _fitting(text, max_tokens, counter)
    for end in _boundaries(text, size):
        if counter.text(end + ELLIPSIS) <= max_tokens:
            return end + ELLIPSIS, True
    return ELLIPSIS, True


def _fitting(text: str, max_tokens: int, counter: Counter) -> int:
    """Return about the most characters that fit, by halving; a counter need not be monotonous to the token."""
    low, high = 0, min(len(text), max_tokens * CHARS)
    while low < high:
        middle = (low + high + 1) // 2
        if counter.text(text[:middle] + ELLIPSIS) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return low


def _boundaries(text: str, size: int) -> tuple[str, ...]:
    """Return the beginnings to try, best first."""
    least = int(size * LOOSE)
    sentence = max((match.end() for match in SENTENCE.finditer(text, least, size)), default=0)
    word = max((match.start() for match in WORD.finditer(text, least, size)), default=0)
    if size < len(text) and text[size].isspace():
        word = size
    ends = [end for end in (sentence, word) if end]
    return tuple(
        text[:end].rstrip() for end in (*ends, boundary_before(text, size), boundary_before(text, size * 9 // 10))
    )
