"""Where a text can be cut without tearing a character that is made of several code points."""

from __future__ import annotations

import unicodedata

__all__ = ["whole_after", "whole_before"]

JOINER = "\u200d"
LONGEST = 64  # code points of one character looked back over; longer ones are noise and may be torn


def whole_before(text: str, at: int) -> int:
    """Return the last place at or before `at` that lies between two whole characters."""
    place = at = max(0, min(at, len(text)))
    for _ in range(LONGEST):
        if not _torn(text, place):
            return place
        place -= 1
    return at


def whole_after(text: str, at: int) -> int:
    """Return the first place at or after `at` that lies between two whole characters."""
    place = at = max(0, min(at, len(text)))
    for _ in range(LONGEST):
        if not _torn(text, place):
            return place
        place += 1
    return at


def _torn(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    return before == JOINER or _follows(after) or (_is_flag(before) and _is_flag(after) and _flags(text, at) % 2 == 1)


def _follows(char: str) -> bool:
    """Tell whether a code point belongs to the one before: marks, joiners, skin tones, tags, halves of a pair."""
    code = ord(char)
    return (
        char == JOINER
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
        or 0xDC00 <= code <= 0xDFFF
        or unicodedata.category(char) in {"Mn", "Me", "Mc"}
    )


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flags(text: str, at: int) -> int:
    """Return how many flag letters stand right before a place: flags are pairs."""
    count = 0
    while count < LONGEST and count < at and _is_flag(text[at - count - 1]):
        count += 1
    return count
