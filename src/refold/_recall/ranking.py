"""Ranks removed texts by how well they fit the words of a query.

Theory of operation. A long output holds many subjects, so texts are cut into passages of whole lines and each passage
is a document of BM25 (Robertson and Zaragoza 2009). Who asks writes `loadItems` where the text has `load_items`, or a
file where it has a path: so a word is looked for as it stands and by the words inside of it, which count less; a run of
a script without blanks also by its pairs of signs. Three things are added to the score of a passage: words of the query
that stand side by side in both, since a step repeats what it read; a share of the score of the better passage beside
it, since an answer often stands next to the words that lead to it; and once each word of the query that the whole text
has, or its name (a path, a command). A text ranks by its best passage, and lower where its weight says that it is less
likely to be what is looked for. The first results complement each other: a word that an earlier one has counts less, so
that a step on several subjects finds texts on each of them, and a text of the same name, so that a second copy comes
later. Of equal ones the newest is first.
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
    from collections.abc import Callable, Sequence

__all__ = ["Passage", "PassageIndex", "terms_of"]

LONGEST = 3_000  # characters of a passage, or one longer line
WORD = re.compile(r"\w+")
INNER = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
KNOWN = 65_536  # words whose parts are remembered
FEW = 24  # terms that are looked for before the words of a passage are counted; more are in most passages
# Chosen by hand; benchmarks/findable.py measures what they give together.
TERM_SATURATION, LENGTH_NORM = 1.2, 0.25  # of BM25: how soon repeats count no more, and how much length takes away
RARE = 2.0  # the power of a word's rarity: a step has many common words and few that tell where to look
PART = 0.6  # of a word's worth, for a word inside of it
SIDE_BY_SIDE = 0.5  # of the worth that a word as rare as the pair has
PAIRED = 200  # best passages whose pairs of words are looked at
NEIGHBOR = 0.6  # of the score of a neighbor
POOL, VARIED = 40, 10  # best texts of which so many are ordered by what they add to those before them
AGAIN = 0.8  # of a word's worth, for each text before that has it; and of a text's, for each of the same name


class Passage(Struct, frozen=True):
    """Whole lines of a text: the number of the text, and its first line, counted from 0."""

    text: int
    line: int
    score: float = 0.0


class PassageIndex:
    """Texts, oldest first, with the lines that name them if any, to be asked several times.

    A score is multiplied by the weight of its text, 1 where none are given. The words of a passage are counted when a
    query first has one of them: most of a long conversation has none.
    """

    def __init__(self, texts: Sequence[tuple[str, str]], weights: Sequence[float] = ()) -> None:
        self._weights = weights or [1.0] * len(texts)
        self._names = [name for name, _ in texts]
        self._named: dict[str, list[int]] = defaultdict(list)  # of a term: the texts that have it in their names
        self._passages: list[tuple[int, int]] = []
        self._starts: list[int] = []  # of a text: its first passage
        self._texts: list[str] = []
        self._counts: dict[int, Counter[str]] = {}  # of a passage: how often it has each term
        self._holders: dict[str, list[tuple[int, int]]] = {}  # of a term: passages and how often
        for number, (name, text) in enumerate(texts):
            for term in frozenset(terms_of(name)):
                self._named[term].append(number)
            self._starts.append(len(self._passages))
            for line, passage in _passages(text):
                self._passages.append((number, line))
                self._texts.append(passage)
        self._mean = sum(map(len, self._texts)) / max(len(self._texts), 1) or 1.0

    def best(self, query: str, among: Callable[[int], bool] = lambda _: True) -> list[Passage]:
        """Return the best passage of each text that holds a word of a query or is named by one, best first.

        Only such texts are returned as are `among` those to be found; the others count for what is rare, and for what
        an earlier one has: whoever asks has them in front of them.
        """
        worths = self.worths(query)
        scores = self._scores(worths)
        self._add_pairs(scores, WORD.findall(query.lower()))
        whole_texts = self._whole_texts(worths)
        passages: dict[int, Passage] = {}
        near = {at for place in scores for at in (place - 1, place, place + 1)}
        for place in sorted(near.union(self._starts[number] for number in whole_texts)):
            if not 0 <= place < len(self._passages):
                continue
            number = self._passages[place][0]
            neighbors = [scores.get(at, 0.0) for at in (place - 1, place + 1) if self._same_text(at, number)]
            score = scores.get(place, 0.0) + NEIGHBOR * max(neighbors, default=0.0) + whole_texts.get(number, 0.0)
            score *= self._weights[number]
            if score > 0 and (number not in passages or score > passages[number].score):
                passages[number] = Passage(number, self._passages[place][1], score)
        ranked = self._varied(sorted(passages.values(), key=_order), worths)
        return [passage for passage in ranked if among(passage.text)]

    def worths(self, query: str) -> dict[str, float]:
        """Return what the words of a query and the words inside of them are worth, the rare ones most."""
        weights: dict[str, float] = {}
        for whole, *parts in _terms(query, dict.fromkeys(WORD.findall(query))):
            weights[whole] = 1.0
            for part in parts:
                weights.setdefault(part, PART)
        self._look_for([*weights])
        return {term: weight * self._rarity(len(self._holders[term])) for term, weight in weights.items()}

    def _varied(self, ranked: list[Passage], worths: dict[str, float]) -> list[Passage]:
        """Return texts in the order of their scores, but the first so that each adds to those before it."""
        rest = {passage.text: passage for passage in ranked[:POOL]}
        shares = {number: self._shares(number, worths) for number in rest}
        left, sources = defaultdict[str, float](lambda: 1.0), defaultdict[str, float](lambda: 1.0)
        first: list[Passage] = []
        while rest and len(first) < VARIED:
            added = {
                number: passage.score
                * sources[self._names[number]]
                * sum(share * left[term] for term, share in shares[number].items())
                for number, passage in rest.items()
            }
            number = max(rest, key=lambda each: (added[each], each))
            first.append(rest.pop(number))
            for term in shares[number]:
                left[term] *= AGAIN
            if self._names[number]:
                sources[self._names[number]] *= AGAIN
        return [*first, *rest.values(), *ranked[POOL:]]

    def _shares(self, number: int, worths: dict[str, float]) -> dict[str, float]:
        """Return of the score of a text what each term of a query has; of one that only its name has, all is one."""
        stop = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._passages)
        best: dict[str, float] = {}
        for place in range(self._starts[number], stop):
            for term in self._counts.get(place, {}).keys() & worths.keys():
                best[term] = max(best.get(term, 0.0), self._fit(place, self._counts[place][term]) * worths[term])
        whole = sum(best.values())
        return {term: worth / whole for term, worth in sorted(best.items())} if whole else {"": 1.0}

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

    def _scores(self, worths: dict[str, float]) -> dict[int, float]:
        scores: dict[int, float] = defaultdict(float)
        for term, worth in worths.items():
            for place, count in self._holders[term]:
                scores[place] += worth * self._fit(place, count)
        return scores

    def _add_pairs(self, scores: dict[int, float], words: Sequence[str]) -> None:
        """Add to the best passages what words that stand side by side in the query and in them are worth."""
        pairs = frozenset(pairwise(words))
        places = sorted(scores, key=lambda place: (-scores[place], -place))[:PAIRED] if pairs else []
        counts = {place: Counter(pairwise(WORD.findall(self._texts[place].lower()))) for place in places}
        common = {place: sorted(pairs & count.keys()) for place, count in counts.items()}
        holders = Counter(pair for some in common.values() for pair in some)
        for place, some in common.items():
            for pair in some:
                scores[place] += SIDE_BY_SIDE * self._rarity(holders[pair]) * self._fit(place, counts[place][pair])

    def _whole_texts(self, worths: dict[str, float]) -> dict[int, float]:
        """Return for each text what the terms of a query are worth that it has, and again those that its name has."""
        whole: dict[int, float] = defaultdict(float)
        for term, worth in worths.items():
            for number in {self._passages[place][0] for place, _ in self._holders[term]}:
                whole[number] += worth
            for number in self._named.get(term, ()):
                whole[number] += worth
        return whole

    def _fit(self, place: int, count: int) -> float:
        """Return what a passage that has a word so often gets of its worth."""
        length = 1 - LENGTH_NORM + LENGTH_NORM * len(self._texts[place]) / self._mean
        return (TERM_SATURATION + 1) * count / (count + TERM_SATURATION * length)

    def _rarity(self, holders: int) -> float:
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
