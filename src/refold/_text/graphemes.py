"""Finds where a text can be cut without splitting a character: Unicode's extended grapheme clusters.

The rules are those of UAX 29 (GB3 to GB13), decided from the code points around a position: a cut in a text of a
megabyte looks at a few characters only. A surrogate pair of two code points is one character here too.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache

from refold._text.grapheme_table import RANGES

__all__ = ["boundary_after", "boundary_before", "grapheme_prefix", "grapheme_suffix", "head_and_tail"]

JOINER = "\u200d"
LONGEST = 64  # code points of one character looked over; longer ones are noise and are cut through
SYLLABLES = range(0xAC00, 0xD7A4)
FINALS = 28  # of Hangul, that of none among them: each such block of syllables begins with one that has no final
FLAGS = range(0x1F1E6, 0x1F200)


def grapheme_prefix(text: str, size: int) -> str:
    """Return the beginning of a text, at most `size` code points, ending between two characters."""
    return text[: boundary_before(text, size)] if size > 0 else ""


def grapheme_suffix(text: str, size: int) -> str:
    """Return the end of a text, at most `size` code points, beginning between two characters."""
    return text[boundary_after(text, len(text) - size) :] if size > 0 else ""


def head_and_tail(text: str, head: int, tail: int, label: str) -> str:
    """Return the beginning and the end of a text with a label between, each on a line of its own.

    `head` and `tail` are code points at most. The label is a format string; it may name `original`, `omitted`, `head`
    and `tail`, all in code points.
    """
    first, last = grapheme_prefix(text, head), grapheme_suffix(text, tail)
    omitted = len(text) - len(first) - len(last)
    between = label.format(original=len(text), omitted=omitted, head=len(first), tail=len(last))
    return "\n".join(piece for piece in (first, between, last) if piece)


def boundary_before(text: str, at: int) -> int:
    """Return the last place at or before `at` that lies between two whole characters."""
    return _edge(text, at, -1)


def boundary_after(text: str, at: int) -> int:
    """Return the first place at or after `at` that lies between two whole characters."""
    return _edge(text, at, 1)


def _edge(text: str, at: int, step: int) -> int:
    position = at = max(0, min(at, len(text)))
    for _ in range(LONGEST):
        if not _joined(text, position):
            return position
        position += step
    return at + step if _is_pair(text[at - 1], text[at]) else at


def _joined(text: str, at: int) -> bool:
    """Tell whether the code points before and after a place belong to one character."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        # of what is smaller only these two join (GB3), and the soft hyphen and controls never do
        return before == "\r" and after == "\n"
    if _is_pair(before, after):
        return True
    if before in "\r\n" or after in "\r\n" or _is("control", before) or _is("control", after):  # GB4, GB5
        return False
    if after == JOINER or _is("extend", after) or _is("spacing", after) or _is("prepend", before):  # GB9, 9a, 9b
        return True
    return (
        _hangul(before, after)
        or (_is("consonant", after) and _conjunct(text, at))
        or (before == JOINER and _is("pictographic", after) and _pictographic(text, at - 1))
        or (ord(before) in FLAGS and ord(after) in FLAGS and _flags(text, at) % 2 == 1)
    )


def _hangul(before: str, after: str) -> bool:
    """Tell whether two parts of a Korean syllable join (GB6 to GB8)."""
    syllable = ord(before) in SYLLABLES
    if _is("leading", before):
        return ord(after) in SYLLABLES or _is("leading", after) or _is("vowel", after)
    if _is("vowel", before) or (syllable and not (ord(before) - SYLLABLES.start) % FINALS):
        return _is("vowel", after) or _is("final", after)
    return (syllable or _is("final", before)) and _is("final", after)


def _conjunct(text: str, at: int) -> bool:
    """Tell whether an Indic linker stands before a place, with marks between at most (GB9c).

    What the linker itself follows is not looked at, as the `regex` library does not: after a text's beginning, or a
    cut that others have made, a consonant is not torn from the linker that is left.
    """
    for position in range(at - 1, max(at - LONGEST, 0) - 1, -1):
        char = text[position]
        if _is("linker", char):
            return True
        if char == "\u200c" or not (char == JOINER or _is("extend", char)):
            return False
    return False


def _pictographic(text: str, joiner: int) -> bool:
    """Tell whether a pictograph stands before a joiner, with marks between at most (GB11)."""
    for position in range(joiner - 1, max(joiner - LONGEST, 0) - 1, -1):
        if _is("pictographic", text[position]):
            return True
        if not _is("extend", text[position]):
            return False
    return False


def _flags(text: str, at: int) -> int:
    """Return how many letters of flags stand right before a place: two make one flag (GB12, GB13)."""
    position = at
    while position and ord(text[position - 1]) in FLAGS:
        position -= 1
    return at - position


def _is_pair(before: str, after: str) -> bool:
    return "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff"


def _is(kind: str, char: str) -> bool:
    """Tell whether a code point is of a class of the table."""
    code = ord(char)
    starts, ends = _ranges(kind)
    position = bisect_right(starts, code) - 1
    return position >= 0 and code <= ends[position]


@cache
def _ranges(kind: str) -> tuple[list[int], list[int]]:
    ranges = [word.partition("-") for word in RANGES[kind].split()]
    return [int(first, 16) for first, _, _ in ranges], [int(last or first, 16) for first, _, last in ranges]
