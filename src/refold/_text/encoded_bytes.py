"""How many characters of a text are encoded bytes: base64, hex, escapes and lists of numbers, which are dear in tokens.

An estimate of four characters a token holds for words. Encoded bytes have no words, and every tokenizer cuts them into
pieces of one to two characters: 1.35 to 1.48 for base64, 1.0 to 1.8 for hex and lists of bytes (60,000 random bytes by
the vocabularies `o200k_base`, `cl100k_base`, `gemma3`, `qwen3`, `deepseek_v3` and `llama3`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CHARS_A_TOKEN", "dense_chars"]

CHARS_A_TOKEN = 1.4  # of encoded bytes, measured as above

MIN_RUN = 60  # characters of a run; base64 is wrapped at 64 or 76
BLOCK = MIN_RUN // 2  # a run holds a whole block of this size, at a multiple of it
HALF_LINE = 16  # a line of a hex dump holds two spans without other letters, a date and time does not
SAMPLE = 240  # characters of a run that are looked at
MIXED_SHARE = 0.45  # share of neighbors of another sort (capital, small letter, digit) in base64; paths have less
RUN = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{60,}")
CHANGE = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|[0-9](?=[A-Za-z])")
HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
# Signs that end a run are blanks, all others are `FITS`.
FITS = b"x"
SPACES = bytes(32 if sign in b" \n" else FITS[0] for sign in range(256))
# Letters beyond those of hex and of its `0x` and `\x`.
LETTERS = bytes(32 if sign in b"ghijklmnopqrstuvwyzGHIJKLMNOPQRSTUVWYZ" else FITS[0] for sign in range(256))
# bytes one by one: `89 50 4e 47`, `8950 4e47`, `\x89\x50`, `%89%50`, `137, 80, 78`, `0x89, 0x50`
BYTES = re.compile(
    r"(?=[\dA-Fa-f\\%])(?:"  # what it may begin with: half of the time
    r"(?<![0-9A-Fa-f])(?:(?:[0-9A-Fa-f]{2,8}[ :]){6,}|(?:(?:\d{1,3}|0x[0-9A-Fa-f]{2}),\s{0,8}){30,})"
    r"|(?:(?:\\x|%)[0-9A-Fa-f]{2}){20,})"
)


def dense_chars(text: str) -> int:
    """Return how many characters of a text are encoded bytes; 0 for ordinary words, code and logs."""
    if len(text) < MIN_RUN:
        return 0
    total = 0
    signs = text.encode("ascii", "replace")
    for start, stop in _ranges(signs.translate(SPACES), BLOCK, 1):
        total += sum(len(run) for run in RUN.findall(text, start, stop) if _is_encoded(run))
    for start, stop in _ranges(signs.translate(LETTERS), HALF_LINE, 2):
        total += sum(len(run) for run in BYTES.findall(text, start, stop))
    return total


def _ranges(signs: bytes, size: int, least: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of blocks whose signs fit, with the blocks on either side; ranges do not overlap.

    A range has `least` blocks or more, at multiples of their size; the end of the text may cut off the last. To find
    them takes a thirtieth of a search through the text.
    """
    pending: tuple[int, int] | None = None
    end = len(signs)
    signs += FITS * (-end % size)
    run = FITS * (size * least)
    at = signs.find(run)
    while at >= 0:
        after = signs.find(b" ", at)
        after = after if after >= 0 else len(signs)
        block, last = -(-at // size) * size, after // size * size
        if last - block >= least * size:
            first, stop = max(0, block - size), min(last + size, end)
            if pending and first > pending[1]:
                yield pending
                pending = None
            pending = (pending[0] if pending else first, stop)
        at = signs.find(run, after)
    if pending:
        yield pending


def _is_encoded(run: str) -> bool:
    """Tell whether a run without spaces is base64 or hex, and no path, name or line of dashes."""
    look = run[:SAMPLE]
    if HEX.fullmatch(look):
        return len(set(look)) > 6
    return len(CHANGE.findall(look)) > MIXED_SHARE * len(look)
