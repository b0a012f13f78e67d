"""Counts what a reader skips, so that nothing is dropped silently."""

from __future__ import annotations

__all__ = ["SkippedItems", "spans", "type_of"]

MAX_RANGES = 6  # ranges of line numbers in one note; a session can have thousands of lines of one kind


def spans(numbers: list[int]) -> str:
    """Return line numbers as ranges: `lines 3-5, 9`, the long tail cut to an ellipsis."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number <= ranges[-1][1] + 1:
            ranges[-1][1] = max(number, ranges[-1][1])
        else:
            ranges.append([number, number])
    listed = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges[:MAX_RANGES])
    word = "line" if len(set(numbers)) == 1 else "lines"
    return f"{word} {listed}{', …' if len(ranges) > MAX_RANGES else ''}"


def type_of(value: object) -> object:
    """Return the type that an object names as its own, of anything else the type that it has."""
    return value.get("type") if isinstance(value, dict) else type(value).__name__


class SkippedItems:
    """Counts what is left aside by its reason, with line numbers where the file has lines."""

    def __init__(self) -> None:
        self._numbers: dict[str, list[int]] = {}
        self._counts: dict[str, int] = {}

    def add(self, reason: str, number: int = 0) -> None:
        """Count one thing; `number` is its line, 0 where lines mean nothing."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        if number:
            self._numbers.setdefault(reason, []).append(number)

    def notes(self) -> tuple[str, ...]:
        """Return one note for each reason, in the order in which they were met."""
        return tuple(
            f"{count} × {reason}" + (f" ({spans(self._numbers[reason])})" if reason in self._numbers else "")
            for reason, count in self._counts.items()
        )
