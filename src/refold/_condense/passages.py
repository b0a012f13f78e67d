"""Makes passages of the lines of an output that stay: parts of it that can be understood alone.

Lines are chosen by what identifiers they hold. A comment says nothing without the code it is about, an `if` nothing
without what is done then, and a brace or an import nothing at all. So chosen lines are joined over small gaps, go on
over the body of what their last line opens, which is told by its indentation, and lose what is none of theirs at both
ends. Segments of code that hold nothing but brackets, blanks and imports are not chosen.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.file_views import OURS
from refold._salience.segments import LONG_LINE, Segment
from refold._text.text_cache import text_cache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["passages", "says_something"]

GAP = 120  # characters left out between two passages that are read as one: a marker says less
BODY, LONGEST = 90, 160  # characters after which a passage goes on no more over a body, and of a line of it
TAB = 4  # columns of a tab
NUMBER = re.compile(r"[ \t]*\d+(?:[\t→]|[|:│] ?)")  # before a line that a tool shows with its number
COMMENT = re.compile(r"(?:#|//|/\*|\*|--|;|<!--|\"\"\")\s*\S")
OPENS = re.compile(r"[{(\[:,]$|=>$|->$|\b(?:then|do|begin)$")
IMPORT = re.compile(
    r"(?:import|export [*{]|from \S+ import|#include|using [\w.]+;|use [\w:{]|require\b|const \{?[\w, ]+\}? = require)"
)
IMPORTS = re.compile(r"import|export|include|us(?:e|ing) |require")  # one of these stands in every import
IMPORT_GOES_ON = re.compile(r"[{(,]$")
WORD = re.compile(r"\w")


class _CodeLine(Struct, frozen=True, gc=False):
    """A line: where it begins, the column of its first sign, and whether it is blank, only brackets, or an import."""

    start: int
    stop: int
    indent: int
    words: str  # without the number before it
    empty: bool
    imports: bool

    @property
    def says(self) -> bool:
        return not (self.empty or self.imports)


def passages(text: str, chosen: Sequence[Segment]) -> list[Segment]:
    """Return the chosen segments of a text, which are in order, as passages; parts of long lines stay as they are."""
    if not all(_is_of_lines(text, segment) for segment in chosen):
        return list(chosen)
    lines, starts = _lines(text), _starts(text)
    runs: list[tuple[int, int]] = []
    for segment in chosen:
        first, last = bisect_left(starts, segment.start), bisect_left(starts, segment.stop)
        while first < last and lines[first].empty:
            first += 1
        if first == last:
            continue
        first, last = _with_body(lines, first, last)
        near = runs and _is_near(lines, runs[-1][1], first)
        runs[-1:] = [(runs[-1][0], max(last, runs[-1][1]))] if near else [*runs[-1:], (first, last)]
    return [Segment(lines[first].start, lines[last - 1].stop, frozenset()) for first, last in runs]


def says_something(text: str, segment: Segment) -> bool:
    """Tell whether a segment of code holds more than brackets, blanks and imports."""
    if WORD.search(text, segment.start, segment.stop) and not IMPORTS.search(text, segment.start, segment.stop):
        return True
    return not _is_of_lines(text, segment) or any(line.says for line in _read(text[segment.start : segment.stop]))


def _is_near(lines: Sequence[_CodeLine], after: int, before: int) -> bool:
    """Tell whether so little is left out between two passages that they are one."""
    between = lines[after:before]
    return lines[before].start - lines[after - 1].stop <= GAP and not any(OURS.match(each.words) for each in between)


def _with_body(lines: Sequence[_CodeLine], first: int, last: int) -> tuple[int, int]:
    """Return a run with the line right above it that opens its first one, and the body of what its last line opens."""
    while not lines[last - 1].words:
        last -= 1
    if first and lines[first - 1].says and lines[first - 1].indent < lines[first].indent:
        first -= 1
    end = lines[last - 1]
    comment = COMMENT.match(end.words) is not None
    stop, opened = end.stop + BODY, comment or OPENS.search(end.words) is not None
    while opened and last < len(lines) and lines[last].start < stop and len(lines[last].words) <= LONGEST:
        line = lines[last]
        deeper = not line.words or line.indent > end.indent
        if OURS.match(line.words) or not (deeper or comment or (line.empty and line.indent == end.indent)):
            break
        if comment and not COMMENT.match(line.words):
            comment, end = False, line  # what the comment is about, and its body
        opened = deeper or comment or end is line
        last += 1
    while not lines[last - 1].words:
        last -= 1
    return first, last


def _is_of_lines(text: str, segment: Segment) -> bool:
    """Tell whether a segment is whole lines."""
    return all(not place or place == len(text) or text[place - 1] == "\n" for place in (segment.start, segment.stop))


@text_cache  # the same output is shown again and again while a goal is filled
def _lines(text: str) -> tuple[_CodeLine, ...]:
    return tuple(_read(text))


@text_cache
def _starts(text: str) -> tuple[int, ...]:
    return tuple([line.start for line in _lines(text)])


def _read(text: str) -> Iterator[_CodeLine]:
    at, importing = 0, False
    while at < len(text):
        start, at = at, (text.find("\n", at) + 1) or len(text)
        number = NUMBER.match(text, start, at)
        line = text[number.end() if number else start : at].rstrip()
        words = line.lstrip()
        indent = sum(TAB if sign == "\t" else 1 for sign in line[: len(line) - len(words)])
        imports = importing or IMPORT.match(words) is not None
        importing = imports and IMPORT_GOES_ON.search(words) is not None and len(words) < LONG_LINE
        yield _CodeLine(start, at, indent, words, not WORD.search(words), imports)
