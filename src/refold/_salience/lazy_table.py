"""A table that computes what it does not have: many atoms share the few values that scores depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold._text.text_cache import LONGEST_WORD

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LazyTable"]


class LazyTable(dict[Any, Any]):
    """What a function gives for a value: worked out once for a value, and looked up from then on.

    A table that outlives a conversation has words as its values; it begins anew at `most`, and keeps no long ones.
    """

    def __init__(self, function: Callable[[Any], Any], most: int | None = None) -> None:
        self.function, self.most = function, most

    def __missing__(self, value: Any) -> Any:
        if self.most is not None:
            if len(value) > LONGEST_WORD:
                return self.function(value)
            if len(self) >= self.most:
                self.clear()
        computed = self[value] = self.function(value)
        return computed
