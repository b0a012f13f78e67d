"""The search terms of a text, the same in every store."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["pieces", "terms", "word_runs", "words_of"]

# Scripts without spaces: each character is a word of its own, and a query for several is a phrase.
SIGNS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
LONGEST = 128  # characters; what is longer is encoded data that nobody searches for
_WORD = re.compile(rf"[{SIGNS}]|[^\W_{SIGNS}]+")
_GAP = re.compile(rf"[\W_{SIGNS}]")
SLICE = 100_000  # characters: a few milliseconds in the pattern, in which no other thread runs
_TERM = re.compile(rf"[{SIGNS}]+|[^\W_{SIGNS}]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, in lower case; `src/foo_bar.py` is four words."""
    return [word for words in word_runs(text) for word in words]


def word_runs(text: str) -> Iterator[list[str]]:
    """Yield the words of a text in runs that are not empty, each of a slice of it.

    All words of a long text at once take a while to join and to forget, in which no other thread runs.
    """
    start, in_word = 0, False
    while start < len(text):
        stop = start + SLICE
        gap = _GAP.search(text, stop, stop + LONGEST + 1)
        stop = gap.start() if gap else stop + LONGEST + 1  # else in a word that is too long, as both of its parts are
        matches = _WORD.findall(text[start:stop].lower())
        words = [word for word in (matches[1:] if in_word else matches) if len(word) <= LONGEST]
        if words:
            yield words
        in_word = gap is None and stop < len(text) and not _GAP.match(text, stop)
        start = stop


def terms(query: str) -> list[list[str]]:
    """Return the phrases of a query: for each term the words that must follow each other in a match."""
    return [phrase for run in _TERM.findall(query.lower()) if (phrase := words_of(run))]


def pieces(words: Sequence[str], count: int = 16_000, size: int = 200_000) -> list[Sequence[str]]:
    """Split words into runs of so many words and characters, for an index that limits the size of a row."""
    out: list[Sequence[str]] = []
    start = size_so_far = 0
    for place, word in enumerate(words):
        if place - start == count or size_so_far + len(word) > size:
            out.append(words[start:place])
            start, size_so_far = place, 0
        size_so_far += len(word)
    return [*out, words[start:]] if start < len(words) else out
