"""What a text says, apart from the identifiers in it: its lines, and the sentences of long lines.

Many outputs say again what an older one said: the same page, folder or room, seen once more with one thing changed. A
statement that stands elsewhere word for word is worth nothing a second time (`_salience.cover`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._salience.segments import segments_of
from refold.core.messages import Text, ToolResult, memoized

if TYPE_CHECKING:
    from refold.core.messages import Message

__all__ = ["prepare", "statements_in", "statements_of", "statements_of_segments"]

LEAST = 8  # characters of a line that says something: a bracket alone does not
LONG_LINE = 60  # characters of a line that is taken by its sentences
END = re.compile(r"(?:[.,;:!?]| and) +|[。！？；，]|\\n")


def prepare(message: Message) -> None:
    """Find what a message says, or each segment of its outputs; both remember it."""
    for result in message.results:
        statements_of_segments(result)
    if not message.results:  # outputs mostly stay as pointers or in part
        statements_in(message)


def statements_of(text: str) -> frozenset[str]:
    """Return the lines of a text, and the sentences of its long lines."""
    lines = text.split("\n")
    if len(text) > LONG_LINE:
        lines = [piece for line in lines for piece in (END.split(line) if len(line) > LONG_LINE else (line,))]
    return frozenset([stripped for line in lines if len(stripped := line.strip()) >= LEAST])


@memoized
def statements_of_segments(result: ToolResult) -> tuple[frozenset[str], ...]:
    """Return what each segment of an output says."""
    text = result.text
    return tuple([statements_of(text[segment.start : segment.stop]) for segment in segments_of(result)])


@memoized
def statements_in(message: Message) -> frozenset[str]:
    """Return what a message says in words and outputs."""
    parts = (part for part in message.parts if isinstance(part, Text | ToolResult))
    return frozenset().union(*[statements_of(part.text) for part in parts])
