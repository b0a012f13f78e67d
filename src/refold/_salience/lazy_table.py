"""A table that computes what it does not have: many atoms share the few values that scores depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LazyTable"]


class LazyTable(dict[Any, Any]):
    """What a function gives for a value: worked out once for a value, and looked up from then on."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __missing__(self, value: Any) -> Any:
        computed = self[value] = self.function(value)
        return computed
