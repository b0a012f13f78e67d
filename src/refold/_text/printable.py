"""Text of others as one printable line: no control characters, no marks that change the direction of reading."""

from __future__ import annotations

import unicodedata

__all__ = ["BIDI", "clean"]

BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # they make a line read as another


def clean(text: str, most: int = 0) -> str:
    """Return text safe for one line of a terminal: no control characters, no lone surrogates, cut to `most`."""
    head = text[: most * 4] if most else text
    words = " ".join(head.split())
    safe = words if words.isprintable() else "".join(map(_visible, words))
    return f"{safe[: most - 1]}…" if most and len(safe) > most else safe


def _visible(char: str) -> str:
    return "�" if char in BIDI or unicodedata.category(char) in ("Cc", "Cs") else char
