"""How many characters of a text are encoded bytes: base64, hex, escapes and lists of numbers, which are dear in tokens.

An estimate of four characters a token holds for words. Encoded bytes have no words, and every tokenizer cuts them into
pieces of one to two characters: 1.35 to 1.48 for base64, 1.0 to 1.8 for hex and lists of bytes (60,000 random bytes by
the vocabularies `o200k_base`, `cl100k_base`, `gemma3`, `qwen3`, `deepseek_v3` and `llama3`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
LETTER = re.compile(r"[g-wyzG-WYZ]")  # beyond those of hex and of its `0x` and `\x`
# bytes one by one: `89 50 4e 47`, `8950 4e47`, `\x89\x50`, `%89%50`, `137, 80, 78`, `0x89, 0x50`
BYTES = re.compile(
    r"(?<![0-9A-Fa-f])(?:(?:[0-9A-Fa-f]{2,8}[ :]){6,}|(?:(?:\d{1,3}|0x[0-9A-Fa-f]{2}),\s{0,8}){30,})"
    r"|(?:(?:\\x|%)[0-9A-Fa-f]{2}){20,}"
)


def dense_chars(text: str) -> int:
    """Return how many characters of a text are encoded bytes; 0 for ordinary words, code and logs."""
    if len(text) < MIN_RUN:
        return 0
    total = 0
    for start, stop in _ranges(text, BLOCK, 1, _without_spaces):
        total += sum(len(run) for run in RUN.findall(text, start, stop) if _is_encoded(run))
    for start, stop in _ranges(text, HALF_LINE, 2, _without_letters):
        total += sum(len(run) for run in BYTES.findall(text, start, stop))
    return total


def _ranges(text: str, size: int, least: int, fits: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Yield ranges of blocks that fit, with the blocks on either side; ranges hold `least` blocks and do not overlap.

    A look at whole blocks costs a tenth of a search through the text.
    """
    pending: tuple[int, int] | None = None
    run_start, end = -1, len(text)
    for start in range(0, end + size, size):
        if start < end and fits(text[start : start + size]):
            run_start = start if run_start < 0 else run_start
            continue
        if run_start >= 0 and start - run_start >= least * size:
            first, stop = max(0, run_start - size), min(start + size, end)
            if pending and first > pending[1]:
                yield pending
                pending = None
            pending = (pending[0] if pending else first, stop)
        run_start = -1
    if pending:
        yield pending


def _without_spaces(block: str) -> bool:
    return " " not in block and "\n" not in block


def _without_letters(block: str) -> bool:
    return LETTER.search(block) is None


def _is_encoded(run: str) -> bool:
    """Tell whether a run without spaces is base64 or hex, and no path, name or line of dashes."""
    look = run[:SAMPLE]
    if HEX.fullmatch(look):
        return len(set(look)) > 6
    return len(CHANGE.findall(look)) > MIXED_SHARE * len(look)
