"""Chooses of several found texts the lines that answer a query together.

Theory of operation. An answer has room for a few thousand tokens, and a found text is often longer than that: its
beginning, or one long run of it, mostly misses the line that is looked for. So texts are cut into extracts of a few
whole lines, and extracts are chosen one after another by what they add for their size: the words of the query that they
have, each worth less the more chosen extracts have it, and a share of what the better extract beside them has, since
the line that is looked for stands next to the words that lead to it. What the name of a text has, its first extract has
too. Extracts of texts that rank lower are worth less.
"""

from __future__ import annotations

import re
from collections import Counter
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._recall.ranking import terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

__all__ = ["Extract", "chosen_extracts"]

# Chosen by hand; benchmarks/findable.py measures what they give together, as `shown`.
SIZE = 280  # characters of the lines of an extract, about 80 tokens
LONG_LINE, PIECE = 1_200, 600  # characters from which a line is cut, and of its pieces
AGAIN = 0.8  # of a word's worth, for each chosen extract that has it
NEIGHBOR = 0.3  # of the worth of the better extract beside one
LOWER = 0.8  # of a text's worth, for each that ranks before it
FIRST = 0.25  # of the room: what the best text may have without a reason, since few words may have named it
MOST = 1_000  # extracts whose words are counted, a third of a megabyte: an answer holds a hundred at most
MARKER = 6  # tokens of what stands between two extracts
BLANKS = re.compile(r"\s+")


class Extract(Struct, frozen=True, order=True):
    """Whole lines of a text, or a piece of a long line: the number of the text, and where it starts and stops."""

    text: int
    start: int
    stop: int


def chosen_extracts(
    texts: Sequence[tuple[str, str]], worths: Mapping[str, float], sizes: Sequence[Callable[[int], int]], room: int
) -> list[Extract]:
    """Return the extracts to show of texts with their names, the best text first, in the order of their choice.

    `worths` are those of the words of the query. `sizes` say for each text about how many tokens so many of its
    characters have, `room` is how many there are.
    """
    extracts = [extract for number, (_, text) in enumerate(texts) for extract in _extracts_of(number, text)]
    words = [_words_of(extract, *texts[extract.text]) for extract in extracts]
    likely = _likely(words, worths)
    terms = [worths.keys() & terms_of(some) if place in likely else set() for place, some in enumerate(words)]
    alone = [sum(worths[term] for term in some) for some in terms]
    neighbors = [
        max((alone[at] for at in (place - 1, place + 1) if _same_text(extracts, at, place)), default=0.0)
        for place in range(len(extracts))
    ]
    tokens = [sizes[extract.text](extract.stop - extract.start) + MARKER for extract in extracts]
    seen: Counter[str] = Counter()

    def value(place: int) -> float:
        new = sum(worths[term] * AGAIN ** seen[term] for term in terms[place])
        return (new + NEIGHBOR * neighbors[place]) * LOWER ** extracts[place].text / tokens[place]

    first = int(room * FIRST)
    best = [(-value(place), place) for place in range(len(extracts)) if alone[place] or neighbors[place]]
    heapify(best)
    chosen: list[Extract] = []
    while best:
        _, place = best[0]
        now = -value(place)
        if len(best) > 1 and (now, place) > min(best[1:3]):  # others are worth more by now: values only fall
            heapreplace(best, (now, place))
            continue
        heappop(best)
        if tokens[place] <= room:
            room -= tokens[place]
            seen.update(terms[place])
            chosen.append(extracts[place])
    start = min((extract for extract in chosen if not extract.text), default=Extract(0, 0, 0))
    known = frozenset(chosen)
    for extract, size in zip(extracts, tokens, strict=True):  # the best text goes on from where it is shown
        if extract.text:
            break
        first -= size if extract in known else 0
        if start <= extract and extract not in known and size <= min(first, room):
            first, room = first - size, room - size
            chosen.append(extract)
    return chosen


def _likely(words: Sequence[str], worths: Mapping[str, float]) -> Collection[int]:
    """Return the places of extracts whose words are counted: of many those that hold most, as a quick look tells."""
    if len(words) <= MOST:
        return range(len(words))
    rough = [sum(worth for term, worth in worths.items() if term in small) for small in map(str.lower, words)]
    return frozenset(sorted(range(len(words)), key=lambda place: -rough[place])[:MOST])


def _words_of(extract: Extract, name: str, text: str) -> str:
    words = text[extract.start : extract.stop]
    return words if extract.start else f"{name}\n{words}"


def _same_text(extracts: Sequence[Extract], at: int, place: int) -> bool:
    return 0 <= at < len(extracts) and extracts[at].text == extracts[place].text


def _extracts_of(number: int, text: str) -> Iterator[Extract]:
    """Yield a text in extracts: whole lines, and of a long line pieces that end at a blank where there is one."""
    start = stop = 0
    for line in text.splitlines(keepends=True):
        if stop > start and (stop - start + len(line) > SIZE):
            yield Extract(number, start, stop)
            start = stop
        stop += len(line)
        while stop - start > LONG_LINE:
            blanks = [blank.end() for blank in BLANKS.finditer(text, start + PIECE // 2, start + PIECE)]
            end = blanks[-1] if blanks else start + PIECE
            yield Extract(number, start, end)
            start = end
    if stop > start:
        yield Extract(number, start, stop)
