"""A provider's prompt cache: which beginning of a request was seen before, message by message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Cached", "Point", "PromptCache"]

LEAST = 1_024  # tokens of the shortest beginning that is stored, with both providers
STEP = 128  # OpenAI reports cached tokens in such steps
LOOK_BACK = 20  # Anthropic looks this far back from a mark for what it stored before


class Cached(Struct, frozen=True):
    """Tokens of a prompt that came from the cache, and tokens that were put into it."""

    read: int = 0
    written: int = 0


class Point(Struct, frozen=True):
    """A place where a prompt may be cut: the key of everything before it, its tokens, and whether it bears a mark."""

    key: str
    tokens: int
    marked: bool = False


class PromptCache:
    """Remembers beginnings for ever; clocks are no part of a deterministic test."""

    def __init__(self) -> None:
        self._stored: set[str] = set()

    def automatic(self, points: Sequence[Point]) -> Cached:
        """Read the longest known beginning and keep this one, without marks or a price for it (OpenAI)."""
        known = next((point.tokens for point in reversed(points) if point.key in self._stored), 0)
        self._stored.update(point.key for point in points if point.tokens >= LEAST)
        return Cached(known // STEP * STEP)

    def marked(self, points: Sequence[Point]) -> Cached:
        """Read and keep up to marks alone (Anthropic): the last mark decides what is written."""
        marks = [place for place, point in enumerate(points) if point.marked and point.tokens >= LEAST]
        if not marks:
            return Cached()
        known = max((self._before(points, mark) for mark in marks), default=0)
        self._stored.update(points[mark].key for mark in marks)
        return Cached(known, points[marks[-1]].tokens - known)

    def _before(self, points: Sequence[Point], mark: int) -> int:
        """Return the tokens of the longest stored beginning that is found back from a mark."""
        near = reversed(points[max(0, mark - LOOK_BACK) : mark + 1])
        return next((point.tokens for point in near if point.key in self._stored), 0)
