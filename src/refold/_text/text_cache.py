"""Caches for functions of texts: of short ones they hold many, of long ones few or none."""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["LONGEST_WORD", "forget_texts", "text_cache", "word_cache", "words_cache"]

P = ParamSpec("P")
R = TypeVar("R")

LONGEST_WORD = 1_000  # characters of a word or a line that is remembered: of encoded data one may have megabytes

SHORT, LONG = 2_000, 60_000  # characters
# How many texts stay that are no longer than those, and how many of the longer ones: a pass asks again and again for
# the same few, and a text of many megabytes that stays takes its memory long after its conversation.
FEW, SOME, MANY = 4, 64, 4_096

_clear: list[Callable[[], None]] = []  # one for each cache of texts


def text_cache(function: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
    """Remember what a pure function gives for the texts used last."""
    many, some, few = (lru_cache(maxsize=number)(function) for number in (MANY, SOME, FEW))
    _clear.extend(cached.cache_clear for cached in (many, some, few))

    @wraps(function)
    def wrapper(text: str, *args: P.args, **kwargs: P.kwargs) -> R:
        cached = many if len(text) <= SHORT else some if len(text) <= LONG else few
        return cached(text, *args, **kwargs)  # type: ignore[arg-type] # what hashes is left to the function

    return wrapper  # type: ignore[return-value] # mypy gives the text a name


def forget_texts() -> None:
    """Empty the caches of texts: what is remembered of a text takes up to ten times its size."""
    for clear in _clear:
        clear()


def word_cache(most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Remember what a pure function gives for the words, or few words, used last; for long ones it is called again."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(maxsize=most)(function)

        @wraps(function)
        def wrapper(*words: P.args, **others: P.kwargs) -> R:
            short = sum(map(len, words)) <= LONGEST_WORD  # type: ignore[arg-type] # texts, as its callers see to
            return cached(*words, **others) if short else function(*words, **others)  # type: ignore[arg-type] # they hash

        return wrapper

    return decorate


def words_cache(most: int) -> Callable[[Callable[[str], R]], Callable[[str, Iterable[str]], Iterator[R]]]:
    """Make of a pure function of a word one that takes a text and its words, and remembers the words used last.

    It costs no more than `lru_cache` where the text is short, as most are; long words are not remembered.
    """

    def decorate(function: Callable[[str], R]) -> Callable[[str, Iterable[str]], Iterator[R]]:
        cached = lru_cache(maxsize=most)(function)

        @wraps(function)
        def over(text: str, words: Iterable[str]) -> Iterator[R]:
            if len(text) <= LONGEST_WORD:
                return map(cached, words)
            return ((cached if len(word) <= LONGEST_WORD else function)(word) for word in words)

        return over

    return decorate
