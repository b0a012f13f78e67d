"""Leaves out of an output that is cut what a harness reminds of in it: it is no part of what a tool returned."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._salience.segments import Segment
from refold._text.text_cache import text_cache

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["without_reminders"]

OPENING = "<system-reminder>"
REMINDER = re.compile(r"<system-reminder>(?:(?!</system-reminder>).)*</system-reminder>[ \t]*\n?", re.S)
FILE = re.compile(r"\b(?:Contents of|Instructions from):? \S")  # of instructions, which hold for the work
NOTHING: frozenset[str] = frozenset()


def without_reminders(text: str, chosen: Iterable[Segment]) -> list[Segment]:
    """Return chosen segments of an output without what a harness says in them."""
    left = list(chosen)
    for start, stop in _reminders(text):
        outside = [one for one in left if one.stop <= start or stop <= one.start]
        across = [one for one in left if one.start < stop and start < one.stop]
        ends = [(one.start, start) for one in across] + [(stop, one.stop) for one in across]
        left = outside + [Segment(*end, NOTHING) for end in ends if end[0] < end[1]]
    return left


@text_cache
def _reminders(text: str) -> tuple[tuple[int, int], ...]:
    """Return where a harness reminds of something, but for the files of instructions that it gives."""
    if OPENING not in text:
        return ()
    return tuple(match.span() for match in REMINDER.finditer(text) if not FILE.search(match[0]))
