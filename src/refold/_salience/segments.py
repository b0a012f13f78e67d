"""Segments: runs of whole lines of a text, short enough to be kept or left as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._salience.atoms import names_of
from refold.core._speakers import speech
from refold.core.messages import memoized

if TYPE_CHECKING:
    from collections.abc import Collection

    from refold.core.messages import Message, Path, ToolResult

__all__ = ["Segment", "chosen_lines", "harness_segments", "segments", "segments_of", "split"]

LONGEST = 240  # characters of a segment of several lines; a longer line is a segment of its own


class Segment(Struct, frozen=True):
    """Lines of a text from `start` to before `stop`, counted from 0, with their atoms."""

    start: int
    stop: int
    chars: int
    atoms: frozenset[str]


def segments(text: str, longest: int = LONGEST) -> tuple[Segment, ...]:
    """Return a text as segments of whole lines, in order; every line is in one of them."""
    lines = text.split("\n")
    runs: list[Segment] = []
    start = chars = 0
    for position, line in enumerate(lines):
        size = len(line) + 1
        if chars and chars + size > longest:
            runs.append(_segment(lines, start, position, chars))
            start, chars = position, 0
        chars += size
    runs.append(_segment(lines, start, len(lines), chars))
    return tuple(runs)


@memoized
def harness_segments(message: Message) -> dict[Path, tuple[tuple[Segment, ...], ...]]:
    """Return the bodies of the spans in which a harness speaks as segments, by the path of their text.

    Lines are counted over the bodies of a text together, so that each of its segments starts at another line.
    """
    by_path: dict[Path, tuple[tuple[Segment, ...], ...]] = {}
    for spoken in speech(message).harness:
        text, before = spoken.text.text, 0
        bodies: list[tuple[Segment, ...]] = []
        for span in spoken.spans:
            body = span.body(text)
            bodies.append(
                tuple(replace(one, start=one.start + before, stop=one.stop + before) for one in segments(body))
            )
            before += body.count("\n") + 1
        by_path[spoken.text.at] = tuple(bodies)
    return by_path


@memoized
def segments_of(result: ToolResult) -> tuple[Segment, ...]:
    """Return the words of an output as segments."""
    return segments(result.text)


def split(text: str) -> tuple[str, ...]:
    """Return the words of each segment of a text."""
    lines = text.split("\n")
    return tuple("\n".join(lines[segment.start : segment.stop]) for segment in segments(text))


def _segment(lines: list[str], start: int, stop: int, chars: int) -> Segment:
    return Segment(start, stop, chars, names_of("\n".join(lines[start:stop])))


def chosen_lines(text: str, chosen: Collection[Segment]) -> str:
    """Return the chosen segments of a text in order, with a marker for each run of lines that is left out."""
    lines = text.split("\n")
    out: list[str] = []
    after = 0
    for segment in sorted(chosen, key=lambda segment: segment.start):
        if segment.start > after:
            out.append(_marker(segment.start - after))
        out += lines[segment.start : segment.stop]
        after = segment.stop
    if after < len(lines):
        out.append(_marker(len(lines) - after))
    return "\n".join(out)


def _marker(lines: int) -> str:
    return f"[… {lines:,} {'line' if lines == 1 else 'lines'} left out …]"
