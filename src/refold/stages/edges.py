"""Cutting text without breaking what a reader sees as one sign."""

from __future__ import annotations

from unicodedata import category

__all__ = ["head_of", "shortened", "tail_of"]

LONGEST_SIGN = 32  # code points; a longer pile of marks is cut through, but never a surrogate pair
JOINER = "\u200d"
SELECTORS = range(0xFE00, 0xFE10)
SKIN_TONES = range(0x1F3FB, 0x1F400)
FLAGS = range(0x1F1E6, 0x1F200)
TAGS = range(0xE0020, 0xE0080)
JAMO = range(0x1160, 0x1200)  # vowels and finals that complete a Korean syllable


def head_of(text: str, size: int) -> str:
    """Return the beginning of a text, at most `size` characters, ending between two signs."""
    return text[: _edge(text, size, -1)] if size > 0 else ""


def tail_of(text: str, size: int) -> str:
    """Return the end of a text, at most `size` characters, beginning between two signs."""
    return text[_edge(text, max(len(text) - size, 0), 1) :] if size > 0 else ""


def shortened(text: str, head: int, tail: int, label: str) -> str:
    """Return head, label and tail of a text; the label may name original, omitted, head and tail as numbers."""
    first, last = head_of(text, head), tail_of(text, tail)
    omitted = len(text) - len(first) - len(last)
    said = label.format(original=len(text), omitted=omitted, head=len(first), tail=len(last))
    return "\n".join(piece for piece in (first, said, last) if piece)


def _edge(text: str, at: int, step: int) -> int:
    if at >= len(text):
        return len(text)
    edge = at
    while 0 < edge < len(text) and abs(edge - at) < LONGEST_SIGN and _joined(text, edge):
        edge += step
    while 0 < edge < len(text) and _surrogates(text[edge - 1], text[edge]):
        edge += step
    return edge


def _joined(text: str, at: int) -> bool:
    """Tell whether the characters before and after a place belong to one sign."""
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    code = ord(after)
    return (
        _surrogates(before, after)
        or JOINER in (before, after)
        or code in SELECTORS
        or code in SKIN_TONES
        or code in TAGS
        or code in JAMO
        or (code in FLAGS and _flags_before(text, at) % 2 == 1)
        or category(after)[0] == "M"
    )


def _flags_before(text: str, at: int) -> int:
    count = 0
    while count < at and count < 2 * LONGEST_SIGN and ord(text[at - count - 1]) in FLAGS:
        count += 1
    return count


def _surrogates(before: str, after: str) -> bool:
    return "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff"
