"""How many requests a minute a name has: as many at once as a minute has, which then come back evenly."""

from __future__ import annotations

from math import ceil
from time import monotonic

__all__ = ["Rates"]

MINUTE = 60.0
REMEMBERED = 4_096  # names; of more, the one that took none for longest is forgotten


class Rates:
    """The requests that each name has left."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}  # requests and when that was, the oldest first

    def __len__(self) -> int:
        return len(self._left)

    def wait(self, name: str, rate: int) -> int:
        """Return in how many seconds a name has a request, 0 where it has one now, of so many a minute."""
        return _until(self._now(name, rate), rate)

    def take(self, name: str, rate: int) -> int:
        """Take one of the requests that a name has, if there is one; return what `wait` does."""
        left = self._now(name, rate)
        self._left.pop(name, None)
        self._left[name] = left - 1 if left >= 1 else left, monotonic()
        if len(self._left) > REMEMBERED:
            del self._left[next(iter(self._left))]
        return _until(left, rate)

    def _now(self, name: str, rate: int) -> float:
        left, at = self._left.get(name, (float(rate), monotonic()))
        return min(left + (monotonic() - at) * rate / MINUTE, float(rate))


def _until(left: float, rate: int) -> int:
    """Return the seconds until there is a whole request."""
    return 0 if left >= 1 else ceil((1 - left) * MINUTE / rate)
