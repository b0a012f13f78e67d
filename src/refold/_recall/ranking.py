"""Ranks removed texts by how well a passage of them fits the words of a query.

Theory of operation. A long output holds many subjects, so texts are cut into passages of whole lines and each passage
is a document of BM25 (Robertson and Zaragoza 2009). Who asks writes `loadItems` where the text has `load_items`, or a
file where it has a path: so a word is looked for as it stands and by the words inside of it, which count less; a run of
a script without blanks also by its pairs of signs. Two things are added to the score of a passage: the words that name
its text (a path, a command), and a share of the score of the better passage beside it, since an answer often stands
next to the words that lead to it. A text ranks by its best passage; behind others of its name lower than its score
says, so that the first results are of several sources; and lower where its weight says that it is less likely to be
what is looked for. Of equal ones the newest is first.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._salience.words import UNSPACED
from refold._text.text_cache import words_cache

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Passage", "PassageIndex", "terms_of"]

LONGEST = 3_000  # characters of a passage, or one longer line
WORD = re.compile(r"\w+")
INNER = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
KNOWN = 65_536  # words whose parts are remembered
FEW = 24  # terms that are looked for before the words of a passage are counted; more are in most passages
# Chosen by hand; benchmarks/findable.py measures what they give together.
TERM_SATURATION, LENGTH_NORM = 1.2, 0.5  # of BM25: how soon repeats count no more, and how much length takes away
RARE = 1.5  # the power of a word's rarity: a step has many common words and few that tell where to look
PART = 0.6  # of a word's worth, for a word inside of it
HEADING = 2.0  # of a word's worth, where it names the text
NEIGHBOR = 0.6  # of the score of a neighbor
# Of a score, for each better text of the same name: a second read of a file seldom shows what the first lacks.
AGAIN = 0.7


class Passage(Struct, frozen=True):
    """Whole lines of a text: the number of the text, and its first line, counted from 0.

    `fit` is the score before those of the same name were taken into account.
    """

    text: int
    line: int
    score: float = 0.0
    fit: float = 0.0


class PassageIndex:
    """Texts, oldest first, with the lines that name them if any, to be asked several times.

    A score is multiplied by the weight of its text, 1 where none are given. The words of a passage are counted when a
    query first has one of them: most of a long conversation has none.
    """

    def __init__(self, texts: Sequence[tuple[str, str]], weights: Sequence[float] = ()) -> None:
        self._weights = weights or [1.0] * len(texts)
        self._names = [name for name, _ in texts]
        self._headings = [frozenset(terms_of(name)) for name in self._names]
        self._passages: list[tuple[int, int]] = []
        self._texts: list[str] = []
        self._counts: dict[int, Counter[str]] = {}  # of a passage: how often it has each term
        self._holders: dict[str, list[tuple[int, int]]] = {}  # of a term: passages and how often
        for number, (_, text) in enumerate(texts):
            for line, passage in _passages(text):
                self._passages.append((number, line))
                self._texts.append(passage)
        self._mean = sum(map(len, self._texts)) / max(len(self._texts), 1) or 1.0

    def best(self, query: str) -> list[Passage]:
        """Return the best passage of each text that holds a word of a query or is named by one, best first."""
        weights: dict[str, float] = {}
        for whole, *parts in _terms(query, dict.fromkeys(WORD.findall(query))):
            weights[whole] = 1.0
            for part in parts:
                weights.setdefault(part, PART)
        self._look_for([*weights])
        scores = self._scores(weights)
        headings = [
            HEADING * sum(weights[term] * self._rarity(term) for term in heading & weights.keys())
            for heading in self._headings
        ]
        passages: dict[int, Passage] = {}
        for place, (number, line) in enumerate(self._passages):
            neighbors = [scores.get(at, 0.0) for at in (place - 1, place + 1) if self._same_text(at, number)]
            score = scores.get(place, 0.0) + NEIGHBOR * max(neighbors, default=0.0) + headings[number]
            score *= self._weights[number]
            if score > 0 and (number not in passages or score > passages[number].score):
                passages[number] = Passage(number, line, score, score)
        return self._varied(sorted(passages.values(), key=_order))

    def _varied(self, passages: Sequence[Passage]) -> list[Passage]:
        """Return passages in the order of their scores, those behind others of the same name lower."""
        before: Counter[str] = Counter()
        varied: list[Passage] = []
        for passage in passages:
            name = self._names[passage.text]
            varied.append(Passage(passage.text, passage.line, passage.fit * AGAIN ** before[name], passage.fit))
            before[name] += bool(name)
        return sorted(varied, key=_order)

    def _look_for(self, terms: Sequence[str]) -> None:
        """Find the passages of terms that were not looked for before."""
        fresh = [term for term in terms if term not in self._holders]
        self._holders.update((term, []) for term in fresh)
        for place, passage in enumerate(self._texts if fresh else ()):
            small = passage.lower()
            some = [term for term in fresh if term in small] if len(fresh) <= FEW else fresh
            if some and place not in self._counts:
                self._counts[place] = Counter(terms_of(passage))
            for term in some:
                if count := self._counts[place][term]:
                    self._holders[term].append((place, count))

    def _scores(self, weights: dict[str, float]) -> dict[int, float]:
        scores: dict[int, float] = defaultdict(float)
        for term, weight in weights.items():
            worth = weight * self._rarity(term) * (TERM_SATURATION + 1)
            for place, count in self._holders[term]:
                length = 1 - LENGTH_NORM + LENGTH_NORM * len(self._texts[place]) / self._mean
                scores[place] += worth * count / (count + TERM_SATURATION * length)
        return scores

    def _rarity(self, term: str) -> float:
        holders = len(self._holders[term])
        return float(log(1 + (len(self._passages) - holders + 0.5) / (holders + 0.5)) ** RARE)

    def _same_text(self, place: int, number: int) -> bool:
        return 0 <= place < len(self._passages) and self._passages[place][0] == number


def _order(passage: Passage) -> tuple[float, int]:
    return -passage.score, -passage.text


def terms_of(text: str) -> list[str]:
    """Return the words of a text in small letters, each followed by the words inside of it."""
    return [term for terms in _terms(text, WORD.findall(text)) for term in terms]


@words_cache(KNOWN)
def _terms(word: str) -> tuple[str, ...]:
    whole = word.lower()
    if word.isascii() and word.isalpha() and word[1:].islower():
        return (whole,)
    parts = [part.lower() for part in INNER.findall(word) if len(part) > 1]
    if not word.isascii():
        parts += [one + other for run in UNSPACED.findall(word) for one, other in pairwise(run)]
    return (whole, *(part for part in dict.fromkeys(parts) if part != whole))


def _passages(text: str) -> list[tuple[int, str]]:
    """Return a text as passages of whole lines, each with the number of its first line."""
    passages: list[tuple[int, str]] = []
    lines: list[str] = []
    start = chars = 0
    for number, line in enumerate(text.split("\n")):
        if lines and chars + len(line) > LONGEST:
            passages.append((start, "\n".join(lines)))
            lines, start, chars = [], number, 0
        lines.append(line)
        chars += len(line) + 1
    passages.append((start, "\n".join(lines)))
    return passages
