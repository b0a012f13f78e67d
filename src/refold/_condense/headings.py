"""Adds to lines of a document that stay what heads them: the headings of their section, the head of their table.

A rule without the heading "Never do this", or a row without the names of its columns, says something else or nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from refold._salience.segments import Segment
from refold._text.text_cache import text_cache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["with_headings"]

NUMBER = r"(?:[ \t]*\d+(?:[\t→]|[|:│] ?))?"  # before a line that a tool shows with its number
HEADING = re.compile(rf"{NUMBER}(#{{1,6}}) \S")
ROW = re.compile(rf"{NUMBER}[ \t]*\|")
RULE = re.compile(rf"{NUMBER}[ \t]*\|[ \t:|-]+$")
FENCE = re.compile(rf"{NUMBER}[ \t]*(?:```|~~~)")
DEEPEST = 6  # level of a heading
LONGEST = 160  # characters of a heading or of the head of a table
NOTHING: frozenset[str] = frozenset()


def with_headings(text: str, chosen: Sequence[Segment]) -> list[Segment]:
    """Return chosen segments of a document with the headings and heads of tables above each that are not among them."""
    headings, tables = _headings(text), _tables(text)
    starts, first_rows = [start for start, _, _ in headings], [start for start, _, _ in tables]
    above: dict[int, int] = {}
    for segment in chosen:
        level = DEEPEST + 1
        for start, stop, depth in reversed(headings[: bisect_right(starts, segment.start)]):
            if depth < level:
                above[start], level = stop, depth
            if level == 1:
                break
        number = bisect_right(first_rows, segment.start) - 1
        if number >= 0 and segment.start < tables[number][2]:
            above[tables[number][0]] = tables[number][1]
    added = [
        Segment(start, stop, NOTHING)
        for start, stop in above.items()
        if not any(one.start < stop and start < one.stop for one in chosen)
    ]
    return sorted((*chosen, *added), key=lambda segment: segment.start)


@text_cache
def _headings(text: str) -> tuple[tuple[int, int, int], ...]:
    """Return where each heading of a document begins and ends, and its level."""
    return tuple(
        (start, stop, len(match[1]))
        for start, stop in _lines(text)
        if stop - start <= LONGEST and (match := HEADING.match(text, start, stop))
    )


@text_cache
def _tables(text: str) -> tuple[tuple[int, int, int], ...]:
    """Return where the head of each table begins and ends with the line below it, and where its rows end."""
    tables: list[tuple[int, int, int]] = []
    before = (0, 0)
    for start, stop in _lines(text):
        is_row = ROW.match(text, start, stop) is not None
        if (
            is_row
            and RULE.match(text[start:stop].rstrip("\r\n"))
            and before[1] == start
            and stop - before[0] <= LONGEST
        ):
            tables.append((before[0], stop, stop))
        elif is_row and tables and tables[-1][2] == start:
            tables[-1] = (*tables[-1][:2], stop)
        before = (start, stop) if is_row else (0, 0)
    return tuple(tables)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the lines of a text that stand in no fence begin, and where the next ones do."""
    at, fenced = 0, False
    while at < len(text):
        start, at = at, (text.find("\n", at) + 1) or len(text)
        fence = FENCE.match(text, start, at) is not None
        fenced = fenced != fence
        if not (fenced or fence):
            yield start, at
