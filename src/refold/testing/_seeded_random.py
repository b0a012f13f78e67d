"""Chance that falls the same way on every machine: only `random()` is promised to be stable between Pythons."""

from __future__ import annotations

import random
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SeededRandom"]

T = TypeVar("T")
SLOT = re.compile(r"<(\w+)>")
HEX = "0123456789abcdef"
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class SeededRandom:
    """Seeded choices; `fork` gives dice of their own to a name, so that a change in one place moves no other."""

    def __init__(self, seed: int | str) -> None:
        self._seed = str(seed)
        key = int.from_bytes(blake2b(self._seed.encode(), digest_size=8).digest(), "big")
        self._random = random.Random(key).random  # noqa: S311 - sample data, no secrets

    def fork(self, name: str) -> SeededRandom:
        """Return dice of their own for a name."""
        return SeededRandom(f"{self._seed}/{name}")

    def below(self, count: int) -> int:
        """Return a whole number from 0 to before `count`."""
        return int(self._random() * count)

    def between(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, share: float) -> bool:
        """Return True in that share of cases."""
        return self._random() < share

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[self.below(len(values))]

    def some(self, values: Sequence[T], count: int) -> list[T]:
        """Return up to `count` different values, in their own order."""
        left = list(range(len(values)))
        while len(left) > count:
            del left[self.below(len(left))]
        return [values[place] for place in left]

    def hex(self, length: int) -> str:
        """Return lower-case hexadecimal digits."""
        return "".join(HEX[self.below(16)] for _ in range(length))

    def letters(self, length: int) -> str:
        """Return letters and digits, as ids and signatures have them."""
        return "".join(BASE62[self.below(62)] for _ in range(length))

    @staticmethod
    def fill(template: str, **slots: object) -> str:
        """Return a template with its `<slots>` filled in; a slot without a value stays."""
        return SLOT.sub(lambda match: str(slots.get(match[1], match[0])), template)
