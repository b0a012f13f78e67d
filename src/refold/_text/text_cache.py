"""A cache for functions of texts: of short ones it holds many, of long ones few."""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["text_cache"]

P = ParamSpec("P")
R = TypeVar("R")

SHORT, LONG = 2_000, 60_000  # characters
# How many texts stay that are no longer than those, and how many of the longer ones: a pass asks again and again for
# the same few, and a text of many megabytes that stays takes its memory long after its conversation.
FEW, SOME, MANY = 4, 64, 4_096


def text_cache(function: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
    """Remember what a pure function gives for the texts used last."""
    many, some, few = (lru_cache(maxsize=number)(function) for number in (MANY, SOME, FEW))

    @wraps(function)
    def wrapper(text: str, *args: P.args, **kwargs: P.kwargs) -> R:
        cached = many if len(text) <= SHORT else some if len(text) <= LONG else few
        return cached(text, *args, **kwargs)  # type: ignore[arg-type] # what hashes is left to the function

    return wrapper  # type: ignore[return-value] # mypy gives the text a name
