"""Chooses of several found texts the lines that answer a query together.

Theory of operation. An answer has room for a few thousand tokens, and a found text is often longer than that: its
beginning, or one long run of it, mostly misses the line that is looked for. So texts are cut into blocks of a few whole
lines, and blocks are chosen one after another by what they add for their size: the words of the query that they have,
each worth less the more chosen blocks have it, and a share of what the better block beside them has, since the line
that is looked for stands next to the words that lead to it. What the name of a text has, its first block has too.
Blocks of texts that rank lower are worth less.
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

__all__ = ["Block", "chosen_blocks"]

# Chosen by hand; benchmarks/findable.py measures what they give together, as `shown`.
BLOCK = 280  # characters of the lines of a block, about 80 tokens
LONG_LINE, PIECE = 1_200, 600  # characters from which a line is cut, and of its pieces
AGAIN = 0.8  # of a word's worth, for each chosen block that has it
NEIGHBOR = 0.3  # of the worth of the better block beside one
LOWER = 0.8  # of a text's worth, for each that ranks before it
FIRST = 0.25  # of the room: what the best text may have without a reason, since few words may have named it
MOST = 1_000  # blocks whose words are counted, a third of a megabyte: an answer holds a hundred at most
MARKER = 6  # tokens of what stands between two blocks
BLANKS = re.compile(r"\s+")


class Block(Struct, frozen=True, order=True):
    """Whole lines of a text, or a piece of a long line: the number of the text, and where it starts and stops."""

    text: int
    start: int
    stop: int


def chosen_blocks(
    texts: Sequence[tuple[str, str]], worths: Mapping[str, float], sizes: Sequence[Callable[[int], int]], room: int
) -> list[Block]:
    """Return the blocks to show of texts with their names, the best text first, in the order of their choice.

    `worths` are those of the words of the query. `sizes` say for each text about how many tokens so many of its
    characters have, `room` is how many there are.
    """
    blocks = [block for number, (_, text) in enumerate(texts) for block in _blocks(number, text)]
    words = [_words_of(block, *texts[block.text]) for block in blocks]
    likely = _likely(words, worths)
    terms = [worths.keys() & terms_of(some) if place in likely else set() for place, some in enumerate(words)]
    alone = [sum(worths[term] for term in some) for some in terms]
    neighbors = [
        max((alone[at] for at in (place - 1, place + 1) if _same_text(blocks, at, place)), default=0.0)
        for place in range(len(blocks))
    ]
    tokens = [sizes[block.text](block.stop - block.start) + MARKER for block in blocks]
    seen: Counter[str] = Counter()

    def value(place: int) -> float:
        new = sum(worths[term] * AGAIN ** seen[term] for term in terms[place])
        return (new + NEIGHBOR * neighbors[place]) * LOWER ** blocks[place].text / tokens[place]

    first = int(room * FIRST)
    best = [(-value(place), place) for place in range(len(blocks)) if alone[place] or neighbors[place]]
    heapify(best)
    chosen: list[Block] = []
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
            chosen.append(blocks[place])
    start = min((block for block in chosen if not block.text), default=Block(0, 0, 0))
    known = frozenset(chosen)
    for block, size in zip(blocks, tokens, strict=True):  # the best text goes on from where it is shown
        if block.text:
            break
        first -= size if block in known else 0
        if start <= block and block not in known and size <= min(first, room):
            first, room = first - size, room - size
            chosen.append(block)
    return chosen


def _likely(words: Sequence[str], worths: Mapping[str, float]) -> Collection[int]:
    """Return the places of blocks whose words are counted: of many those that hold most, as a quick look tells."""
    if len(words) <= MOST:
        return range(len(words))
    rough = [sum(worth for term, worth in worths.items() if term in small) for small in map(str.lower, words)]
    return frozenset(sorted(range(len(words)), key=lambda place: -rough[place])[:MOST])


def _words_of(block: Block, name: str, text: str) -> str:
    words = text[block.start : block.stop]
    return words if block.start else f"{name}\n{words}"


def _same_text(blocks: Sequence[Block], at: int, place: int) -> bool:
    return 0 <= at < len(blocks) and blocks[at].text == blocks[place].text


def _blocks(number: int, text: str) -> Iterator[Block]:
    """Yield a text in blocks: whole lines, and of a long line pieces that end at a blank where there is one."""
    start = stop = 0
    for line in text.splitlines(keepends=True):
        if stop > start and (stop - start + len(line) > BLOCK):
            yield Block(number, start, stop)
            start = stop
        stop += len(line)
        while stop - start > LONG_LINE:
            blanks = [blank.end() for blank in BLANKS.finditer(text, start + PIECE // 2, start + PIECE)]
            end = blanks[-1] if blanks else start + PIECE
            yield Block(number, start, end)
            start = end
    if stop > start:
        yield Block(number, start, stop)
