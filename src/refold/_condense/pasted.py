"""What a user pasted into a turn: code, quotations, documents in tags. Sentences in it are not the user's own.

In doubt a text is the user's: a fence without an end, tags that name a task or a request, other tags.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["pasted_spans", "without_pasted"]

FENCE = re.compile(r"^[ \t]*(```+|~~~+)([^\n]*)$", re.M)
QUOTED = re.compile(r"(?:^[ \t]*>[^\n]*(?:\n|\Z))+", re.M)
OPENING = re.compile(r"^[ \t]*<([A-Za-z][\w-]*)(?: [^<>\n]*)?>", re.M)
# Words in the names of elements that hold what was pasted, and words of those that hold what is asked for.
DOCUMENT = (
    "log logs output trace stacktrace traceback stdout stderr diff patch code snippet file files document documents "
    "doc docs article page webpage email mail transcript quote issue ticket bug report description example examples"
)
REQUEST = "task user request instruction instructions requirement requirements rules prompt goal"
DOCUMENTS, REQUESTS = frozenset(DOCUMENT.split()), frozenset(REQUEST.split())
NAME = re.compile(r"[-_]")
CHECKED = ("```", "~~~", ">")  # signs without which nothing was pasted


@lru_cache(maxsize=256)
def pasted_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return where what was pasted begins and ends in a text, in order."""
    if not any(sign in text for sign in CHECKED):
        return ()
    spans: list[tuple[int, int]] = []
    for start, stop in sorted(_spans(text)):
        if not spans or start >= spans[-1][1]:
            spans.append((start, stop))
    return tuple(spans)


def without_pasted(text: str) -> str:
    """Return what a user said beside what was pasted; a line break stands for each part of that."""
    spans = pasted_spans(text)
    if not spans:
        return text
    ends = [0, *(end for span in spans for end in span), len(text)]
    return "\n".join(text[start:stop] for start, stop in zip(ends[::2], ends[1::2], strict=True))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    yield from _fenced(text)
    yield from (match.span() for match in QUOTED.finditer(text))
    if "</" in text:
        yield from _elements(text)


def _fenced(text: str) -> Iterator[tuple[int, int]]:
    """Yield the blocks between a fence and the next one that is as long and bears no label."""
    opening: re.Match[str] | None = None
    for match in FENCE.finditer(text):
        if opening is None:
            opening = match
        elif match[1].startswith(opening[1]) and not match[2].strip():
            yield opening.start(), match.end()
            opening = None


def _elements(text: str) -> Iterator[tuple[int, int]]:
    """Yield the elements that begin a line and are named like a document."""
    endless: set[str] = set()
    at = 0
    while match := OPENING.search(text, at):
        at = match.end()
        name = match[1]
        words = set(NAME.split(name.lower()))
        if name not in endless and not words.isdisjoint(DOCUMENTS) and words.isdisjoint(REQUESTS):
            end = text.find(f"</{name}>", at)
            if end < 0:
                endless.add(name)
            else:
                at = end + len(f"</{name}>")
                yield match.start(), at
