"""Segments: consecutive parts of a text, short enough to be kept or left as one.

Theory of operation. Segments are adjacent: joined, they are the text. A text up to `WHOLE` bytes is one segment.
Of a longer one lines are put together up to `LONGEST` characters. A line above `LONG_LINE` is cut where it is made of
parts:

- JSON at the commas between its elements, the outermost first; an element that is itself too long is cut at the commas
  inside it, and so on, `DEEPEST` levels down. Short elements that follow each other are one segment.
- all other text, and long strings in JSON, at the strongest sign near the limit (`SIGNS`): a border between fields or
  tags before the end of a sentence, that before a comma, that before a blank.

No word is cut: a run without any such sign is one segment, whatever its length. So the identifiers of a text are those
of its segments. `excerpt` shows some segments word for word, and says for each gap what it leaves out.
"""

from __future__ import annotations

import re
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._salience.atoms import END, names_of, words_in
from refold._text.text_cache import text_cache
from refold.core._speakers import speech
from refold.core.messages import ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from refold._salience.words import SpokenText
    from refold.core.messages import Message, Path

__all__ = [
    "LONGEST",
    "LONG_LINE",
    "Segment",
    "excerpt",
    "extent",
    "harness_segments",
    "segments",
    "segments_in_part",
    "segments_of",
    "split",
    "without_short_gaps",
]  # fmt: skip

LONGEST = 240  # characters of lines together, and of a part of a line, but for a single word that is longer
WHOLE = 1_000  # bytes of a text that is one segment: its parts say little alone, and a marker takes as much
LONG_LINE = 600  # characters of a line that is cut; a shorter one is read as one: a row of a table, a paragraph
DEEPEST = 12  # levels of JSON that are cut at their commas
SHORT_GAP = 24  # characters that a marker takes as well
BRIEF = "[…]"  # a marker where a heading says how much of a text there is: markers with numbers took 3 % of a goal
# Where a text is read in part: characters around a word, and how many of each word.
CHUNK, EACH = 2_000, 6
START = attrgetter("start")  # of a segment
OPENING = 100  # characters of a line in which JSON begins, behind a label or a time
JSON = re.compile(r'[\[{]\s*["\[{]')
JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|,\s*')
# Where a line is cut, the strongest first, and how much of the sign stays before the cut.
SIGNS = (
    *(("\t", 1), (" | ", 3), ("},", 2), ("><", 1), ("\\n", 2), ("; ", 2), (". ", 2), ("。", 1), (";", 1)),
    *((", ", 2), (",", 1), ("，", 1), ("、", 1), (" ", 1)),
)
SIGN = re.compile(r"[\t ;,。，、|]|\\n|>(?=<)")


class Segment(Struct, frozen=True, gc=False):
    """The characters of a text from `start` to before `stop`, with their atoms: whole lines, or a part of one line.

    Between the ends of a very long text `atoms` are all words, of which those count that are names elsewhere, too.
    """

    start: int
    stop: int
    atoms: frozenset[str]
    between: bool = False

    @property
    def chars(self) -> int:
        """How long it is."""
        return self.stop - self.start


@text_cache  # the words of a user are asked for again and again while a goal is filled
def segments(text: str) -> tuple[Segment, ...]:
    """Return a text as adjacent segments in order: lines that follow each other, and parts of long lines."""
    return _segmented(text)


def segments_in_part(text: str, ends: int, words: Iterable[str]) -> tuple[Segment, ...]:
    """Return segments of a text: at its ends, `ends` characters together, and around the first of each of some words.

    Those that begin or stop where the reading did, and not at a line, are left out.
    """

    def border(chunk: int) -> int:
        at = min(chunk * CHUNK, len(text))
        return text.rfind("\n", max(at - LONG_LINE, 0), at) + 1 or at

    def read(start: int, stop: int) -> list[Segment]:
        pieces = [
            replace(piece, start=piece.start + start, stop=piece.stop + start) for piece in segments(text[start:stop])
        ]
        return pieces[not _at_line(text, start) : None if _at_line(text, stop) else -1]

    half = max(ends // 2 // CHUNK, 1)
    head, tail = border(half), border(max(len(text) // CHUNK - half, half))
    chunks: set[int] = set()
    for word in words:
        at = head - len(word)
        for _ in range(EACH):
            at = text.find(word, at + len(word), tail)
            if at < 0:
                break
            chunks.add(at // CHUNK + (at >= border(at // CHUNK + 1)))
    between = [
        piece for chunk in sorted(chunks) for piece in read(max(border(chunk), head), min(border(chunk + 1), tail))
    ]
    return (*read(0, head), *between, *read(tail, len(text)))


def _segmented(text: str) -> tuple[Segment, ...]:
    middle = range(END, len(text) - END)
    return tuple(
        [
            Segment(start, stop, words_in(text[start:stop]), between=True)
            if start in middle and stop in middle
            else Segment(start, stop, names_of(text[start:stop]))
            for start, stop in _spans(text)
        ]
    )


def _spans(text: str) -> Iterable[tuple[int, int]]:
    """Return where the segments of a text start and stop."""
    ends: list[int] = []
    start = stop = 0
    if len(text) <= WHOLE and (text.isascii() or len(text.encode(errors="replace")) <= WHOLE):
        return ((0, len(text)),)
    for line in text.split("\n"):
        end = stop + len(line) + 1
        if end - start > LONGEST:
            if stop > start:
                ends.append(stop)
            start = stop
            if len(line) > LONG_LINE:
                ends += _ends(text, start, end - 1)
                ends[-1] = start = end  # the line break belongs to the last part
        stop = end
    if start < len(text):
        ends.append(stop)
    ends[-1:] = [len(text)] if ends else []
    return pairwise((0, *ends))


@memoized
def harness_segments(message: Message) -> dict[Path, tuple[tuple[Segment, ...], ...]]:
    """Return the bodies of the spans in which a harness speaks as segments, by the path of their text.

    Characters are counted over the bodies of a text together, so that each of its segments starts at another one.
    """
    by_path: dict[Path, tuple[tuple[Segment, ...], ...]] = {}
    for spoken in speech(message).harness:
        text, before = spoken.text.text, 0
        bodies: list[tuple[Segment, ...]] = []
        for span in spoken.spans:
            body = span.body(text)
            bodies.append(
                tuple(replace(one, start=one.start + before, stop=one.stop + before) for one in _segmented(body))
            )
            before += len(body)
        by_path[spoken.text.at] = tuple(bodies)
    return by_path


@memoized
def segments_of(result: ToolResult | SpokenText) -> tuple[Segment, ...]:
    """Return the words of an output as segments, or those of a text that is searched like one: without their names."""
    if isinstance(result, ToolResult):
        return _segmented(result.text)
    return tuple([Segment(start, stop, frozenset()) for start, stop in _spans(result.text)])


def split(text: str) -> tuple[str, ...]:
    """Return the words of each segment of a text, without the line break at its end."""
    return tuple(text[segment.start : segment.stop].removesuffix("\n") for segment in segments(text))


def excerpt(text: str, chosen: Collection[Segment], *, brief: bool = False) -> str:
    """Return the chosen segments of a text in order, word for word, with a marker for each gap; `brief`: no numbers.

    Blank lines between two gaps belong to them: two markers in a row say no more than one.
    """
    runs: list[tuple[int, int]] = []
    for segment in sorted(chosen, key=START):
        if runs and segment.start <= runs[-1][1]:
            runs[-1] = runs[-1][0], segment.stop
        else:
            runs.append((segment.start, segment.stop))
    pieces: list[str] = []
    after = 0
    for start, stop in runs:
        words = text[start:stop]
        if words.isspace() and after < start and stop < len(text):
            continue
        if start > after:
            pieces.append(_gap(text, after, start, brief))
        pieces.append(words)
        after = stop
    if after < len(text):
        pieces.append(_gap(text, after, len(text), brief))
    return "".join(pieces)


def without_short_gaps(text: str, chosen: Collection[Segment]) -> list[Segment]:
    """Return the chosen segments of a text in order, joined where a marker would be as long as what it stands for.

    Joined ones are to be shown: what their atoms are is left out.
    """
    joined: list[Segment] = []
    for segment in sorted(chosen, key=START):
        if joined and segment.start - joined[-1].stop <= SHORT_GAP:
            joined[-1] = Segment(joined[-1].start, segment.stop, frozenset())
        else:
            joined.append(segment)
    return joined


def extent(text: str, chosen: Collection[Segment]) -> str:
    """Return how much of a text segments are: "3 of 40 lines", or characters where parts of lines are among them."""
    borders = {border for segment in chosen for border in (segment.start, segment.stop)}  # neighbors share theirs
    if all(_at_line(text, border) for border in borders):
        lines = sum(text.count("\n", segment.start, segment.stop) + (segment.stop == len(text)) for segment in chosen)
        return f"{lines:,} of {text.count(chr(10)) + 1:,} lines"
    return f"{sum(segment.chars for segment in chosen):,} of {len(text):,} characters"


def _ends(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield where the parts of a long line end, the last at `stop`."""
    if JSON.search(text, start, min(start + OPENING, stop)):
        yield from _ends_of_elements(text, start, stop, _commas(text, start, stop))
    else:
        yield from _ends_of_fields(text, start, stop)


def _commas(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """Return how deep each comma between elements stands, and where the next element begins."""
    commas: list[tuple[int, int]] = []
    depth = 0
    for match in JSON_TOKEN.finditer(text, start, stop):
        sign = text[match.start()]
        if sign == ",":
            if depth <= DEEPEST:
                commas.append((depth, match.end()))
        elif sign != '"':
            depth += 1 if sign in "{[" else -1
    return commas


def _ends_of_elements(text: str, start: int, stop: int, commas: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield where runs of short elements end, and the parts of elements that are too long."""
    if not commas:
        yield from _ends_of_fields(text, start, stop)
        return
    depth = min(commas)[0]
    inner: list[tuple[int, int]] = []
    end = start
    for each, border in [*commas, (depth, stop)]:
        if each > depth:
            inner.append((each, border))
            continue
        if border - start > LONGEST and end > start:
            yield end
            start = end
        if border - start > LONGEST:
            yield from _ends_of_elements(text, start, border, inner)
            start = border
        inner.clear()
        end = border
    if start < stop:
        yield stop


def _ends_of_fields(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield ends at the strongest sign of each stretch that is as long as a segment may be."""
    while stop - start > LONGEST:
        least, most = start + LONGEST // 2, start + LONGEST
        ends = ((text.rfind(sign, least, most), stays) for sign, stays in SIGNS)
        end = next((place + stays for place, stays in ends if place >= 0), 0)
        if not end:
            match = SIGN.search(text, least, stop)
            end = match.end() if match else stop
        yield end
        start = end
    if start < stop:
        yield stop


def _gap(text: str, start: int, stop: int, brief: bool) -> str:
    """Return what stands in place of characters: markers for the rest of a line, for whole lines, for a beginning."""
    if stop < len(text) and text[stop - 1] == "\n" and (not start or text[start - 1] == "\n"):  # most are whole lines
        return (BRIEF if brief else _marker(text.count("\n", start, stop), "line")) + "\n"
    markers: list[str] = []
    if not _at_line(text, start):
        end = text.find("\n", start, stop)
        marker = BRIEF if brief else _marker((end if end >= 0 else stop) - start, "character")
        markers.append(f"{marker}{chr(10) if end >= 0 else ' '}")
        start = end + 1 if end >= 0 else stop
    last = text.rfind("\n", start, stop) + 1 or start
    lines = text.count("\n", start, last)
    if stop == len(text) and start < stop:
        lines, last = lines + 1, stop
    if lines and not (brief and markers):
        markers.append((BRIEF if brief else _marker(lines, "line")) + ("\n" if stop < len(text) else ""))
    if last < stop:
        markers.append(f"{BRIEF if brief else _marker(stop - last, 'character')} ")
    return "".join(markers)


def _at_line(text: str, position: int) -> bool:
    """Tell whether a line begins at a position, or the text ends there."""
    return position in (0, len(text)) or text[position - 1] == "\n"


def _marker(number: int, what: str) -> str:
    return f"[… {number:,} {what}{'' if number == 1 else 's'} left out …]"
