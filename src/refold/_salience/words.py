"""Words of any language, as a question and the text that answers it have them in common.

A word is three or more letters and digits in small letters, without the plural's s; names in camel case are their parts
too. Scripts that are written without blanks have no words to be seen, so pairs of signs stand for them.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._text.sign_runs import SignRuns
from refold._text.text_cache import words_cache
from refold.core.messages import memoized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.messages import ToolResult

__all__ = ["UNSPACED", "SpokenText", "occurrences", "phrases_of", "small", "words_of", "words_of_result"]

LEAST = 3  # characters of a word
KNOWN = 65_536  # words that are remembered
BETWEEN = re.compile(r"[ _./:-]")  # signs between the words of a phrase
RUN = re.compile(r"[^\W_]{3,}")
RUNS = SignRuns(r"[^\W_]")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Han, kana, hangul; Thai, Lao, Burmese, Khmer.
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+")


class SpokenText(Struct, frozen=True, dict=True):
    """A text of an assistant's message, which is searched like an output."""

    text: str


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text."""
    runs = {run for run in set(RUNS(text)) if len(run) >= LEAST}
    plain = {run for run in runs if run.islower() or run.isupper() or run.isdecimal()}  # most have no parts
    words = frozenset(map(_singular, map(str.lower, plain))).union(*_words(text, runs - plain))
    return words if text.isascii() else words.union(*map(_pairs, set(UNSPACED.findall(text))))


def phrases_of(text: str) -> dict[str, frozenset[str]]:
    """Return pairs of words that stand beside each other, as they stand in small letters, with the words in them."""
    lower = small(text)
    words = list(RUN.finditer(lower))
    near = (pair for pair in pairwise(words) if BETWEEN.fullmatch(lower, pair[0].end(), pair[1].start()))
    phrases = (lower[one.start() : other.end()] for one, other in near)
    return {phrase: words_of(phrase) for phrase in phrases if phrase.isascii() or not UNSPACED.search(phrase)}


@memoized
def words_of_result(result: ToolResult | SpokenText) -> frozenset[str]:
    """Return the words of an output, or of a text that is searched like one."""
    return words_of(result.text)


def small(text: str) -> str:
    """Return a text in small letters, each at the place where it was."""
    return text.replace("\u0130", "I").lower()  # the one letter whose small form is longer


def occurrences(word: str, text: str, lower: str) -> Iterator[int]:
    """Yield where a word stands in a text, whose small form is `lower`."""
    spaced = UNSPACED.match(word) is None
    at = lower.find(word)
    while at >= 0:
        if not spaced or (_begins(text, at) and _ends(text, at + len(word))):
            yield at
        at = lower.find(word, at + len(word))


@words_cache(KNOWN)
def _words(run: str) -> tuple[str, ...]:
    whole = run.lower()
    parts = CAMEL.split(run) if not (run.islower() or run.isupper()) else ()
    words = (whole, *(part.lower() for part in parts if LEAST <= len(part) < len(run)))
    return tuple(map(_singular, words))


def _singular(word: str) -> str:
    return word[:-1] if word[-1] == "s" and len(word) > LEAST else word


def _pairs(run: str) -> set[str]:
    return {run[at : at + 2] for at in range(len(run) - 1)}


def _begins(text: str, at: int) -> bool:
    return at == 0 or not text[at - 1].isalnum() or (text[at].isupper() and not text[at - 1].isupper())


def _ends(text: str, at: int) -> bool:
    return any(
        at + more >= len(text)
        or not text[at + more].isalnum()
        or (text[at + more].isupper() and text[at - 1].islower())
        for more in ((0, 1) if text[at : at + 1] in "sS" else (0,))
    )
