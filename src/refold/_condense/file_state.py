"""File states: what is known of a file after its views and edits, which are replayed in order."""

from __future__ import annotations

from collections import Counter as Tally
from itertools import pairwise, repeat
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.file_views import (
    EditedInPlace,
    Excerpt,
    FileMoved,
    FileWritten,
    TextReplaced,
    UnreadableChange,
    VisibleLines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold._condense.file_views import Change

__all__ = ["TELLING", "FileState", "Line", "LineRun"]

# Chosen by hand.
SAME = 3  # lines that two views must share to be joined
TELLING = 8  # characters from which a line is more than braces and blanks


class Line(Struct, gc=False):
    """A line of a file: its text, None for a gap, its number where known, and whether and when an edit wrote it.

    `numbered` is the line as an output showed it with its number. It is written so as long as the number holds: it says
    where the line stands, and is word for word what was shown.
    """

    text: str | None
    number: int | None = None
    edited: bool = False
    at: int = 0
    numbered: str = ""


class LineRun(Struct):
    """Lines of a file in order, from one view, write or edit; `start` tells where in the file, about.

    Numbers of lines count only as long as they are `numbered`: an edit moves what comes after it. `text` is what the
    lines were when they were last replaced, to find quickly what is not among them.
    """

    lines: list[Line]
    start: int
    numbered: bool = False
    text: str = ""

    def __post_init__(self) -> None:
        self.text = "\n".join(line.text or "" for line in self.lines)

    def written(self) -> list[str | None]:
        """Return the lines as a section writes them."""
        return [(self.numbered and line.numbered) or line.text for line in self.lines]


class FileState:
    """What is known of a file after its views and edits up to now: runs of lines, the oldest first.

    `at` is the position of the message that is replayed, `last_edit` that of the last one that changed the file; the
    first message stands for all that only an earlier digest or a sub-agent tells of (`edited`).
    """

    def __init__(self, events: Iterable[tuple[int, Change | Excerpt]], *, edited: bool = False) -> None:
        self.runs: list[LineRun] = []
        self.at = 0
        self.last_edit = 0 if edited else -1
        for self.at, event in events:
            match event:
                case Excerpt(visible=visible, start=start, whole=whole):
                    self.show(visible, start, whole=whole)
                case _:
                    self.last_edit = self.at
                    self.change(event)

    def in_order(self) -> list[LineRun]:
        """Return the runs in the order of the file, as far as it is known."""
        return sorted(self.runs, key=lambda run: run.start)

    def show(self, visible: VisibleLines, start: int, *, whole: bool) -> None:
        """Add what an output shows; earlier runs lose the lines with numbers that it shows anew."""
        numbers = visible.numbers
        written = {
            line.text for run in self.runs for line in run.lines if line.edited and len(line.text or "") >= TELLING
        }
        if whole:
            self.runs.clear()
        elif numbers:
            anew = set(numbers)
            for line in (line for run in self.runs if run.numbered for line in run.lines):
                if line.number in anew:
                    line.text = None
        lines: list[Line] = []
        printed = numbers or repeat(None, len(visible.lines))
        as_printed = visible.numbered or repeat("", len(visible.lines))
        for text, number, numbered in zip(visible.lines, printed, as_printed, strict=True):
            if number is not None and lines and number != (lines[-1].number or 0) + 1:
                lines.append(Line(None))
            lines.append(Line(text, number, edited=text in written, at=self.at, numbered=numbered))
        self._join(LineRun(lines, numbers[0] if numbers else start, numbered=bool(numbers)))

    def _join(self, view: LineRun) -> None:
        """Add a view to the runs; in those that it overlaps it stands in place of what they had there."""
        apart: list[LineRun] = []
        for run in self.runs:
            start, stop = _overlap(run, view)
            if start == stop:
                apart.append(run)
                continue
            around = [*run.lines[:start], *run.lines[stop:]]
            if not run.numbered:  # numbers that no longer hold
                for line in around:
                    line.number, line.numbered = None, ""
            lines = [*run.lines[:start], *view.lines, *run.lines[stop:]]
            guessed = run.start if start else min(run.start, view.start)
            first = next((line.number - at for at, line in enumerate(lines) if line.number is not None), guessed)
            view = LineRun(lines, first, numbered=view.numbered or run.numbered)
        self.runs = [*apart, view]

    def change(self, change: Change) -> None:
        """Make a change: of the text that it replaces nothing stays that it does not write itself."""
        match change:
            case UnreadableChange():
                self.runs.clear()
            case FileMoved():
                pass
            case EditedInPlace():
                for run in self.runs:
                    run.numbered = False
                    for line in run.lines:
                        if line.text is not None and len(line.text.strip()) >= TELLING and change.touches(line.text):
                            line.text = None
            case FileWritten(text=text):
                self.runs = [LineRun(self._written(text), 1)]
            case TextReplaced(old=old, new=new):
                others = [run for run in self.runs if not (old and self._replace(run, change))]
                if len(others) == len(self.runs):
                    self.runs.append(LineRun(self._written(new), self.runs[-1].start if self.runs else 1))
                leaving = frozenset(_telling(old)).difference(_telling(new))
                for line in (line for run in others for line in run.lines if leaving):
                    if line.text is not None and line.text.strip() in leaving:
                        line.text = None
                for run in self.runs:
                    run.numbered = False

    def _written(self, text: str) -> list[Line]:
        return [Line(line, edited=True, at=self.at) for line in text.split("\n")]

    def _replace(self, run: LineRun, change: TextReplaced) -> bool:
        """Replace a text within a run, at every place where the change says so; tell whether it stands there."""
        if change.old not in run.text:
            return False
        wanted = change.old.split("\n")
        start, matched = 0, False
        while (place := _find(run.lines, wanted, start)) >= 0:
            there = run.lines[place : place + len(wanted)]
            before = "\n".join(line.text or "" for line in there)
            after = before.replace(change.old, change.new, -1 if change.every else 1).split("\n")
            known = {line.text: line for line in there}
            written = [known.get(text) or Line(text, edited=True, at=self.at) for text in after]
            run.lines[place : place + len(wanted)] = written
            start, matched = place + len(written), True
            if not change.every:
                break
        run.__post_init__()
        return matched


def _overlap(run: LineRun, view: LineRun) -> tuple[int, int]:
    """Return from where to where the lines of a run are those that a view shows, too; an empty stretch if none are.

    Lines are the same by their numbers, where both have them, else by texts that stand in each of the two once.
    """
    known, seen = (_marks(each, numbered=run.numbered and view.numbered) for each in (run, view))
    places = sorted((at, known[mark]) for mark, at in seen.items() if mark in known)
    if len(places) < SAME or any(one[1] >= other[1] for one, other in pairwise(places)):
        return 0, 0
    (first, start), (last, stop) = places[0], places[-1]
    return max(start - first, 0), min(stop + len(view.lines) - last, len(run.lines))


def _marks(run: LineRun, *, numbered: bool) -> dict[object, int]:
    """Return what the lines of a run are known by, with their places."""
    if numbered:
        return {line.number: at for at, line in enumerate(run.lines) if line.number is not None}
    texts = [line.text.strip() if line.text else "" for line in run.lines]
    once = Tally(texts)
    return {text: at for at, text in enumerate(texts) if len(text) >= TELLING and once[text] == 1}


def _find(lines: Sequence[Line], wanted: Sequence[str], start: int) -> int:
    """Return where a text begins, which may begin and end within lines; -1 where it does not stand there."""
    first, *inner = wanted
    if not inner:
        return next((at for at in range(start, len(lines)) if first in (lines[at].text or "")), -1)
    last = inner.pop()
    for at in range(start, len(lines) - len(wanted) + 1):
        if (
            (lines[at].text or "").endswith(first)
            and (lines[at + len(wanted) - 1].text or "").startswith(last)
            and all(line.text == text for line, text in zip(lines[at + 1 : at + 1 + len(inner)], inner, strict=True))
        ):
            return at
    return -1


def _telling(text: str) -> Iterator[str]:
    return (line for line in map(str.strip, text.split("\n")) if len(line) >= TELLING)
