"""Token counts of one text in one encoding: long texts in slices, repeated ones from a small memo."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from refold._counting.memo import remembered
from refold._text.surrogates import repair_surrogates
from refold.errors import UnknownModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["slices", "tokens"]

SLICE = 32_768  # characters; at most 128 KB, a few milliseconds in the tokenizer, which holds the interpreter's lock
LOOK_BACK = 1_024  # how far before the end of a slice a good cut is looked for

SPECIAL = "<|"  # how special tokens begin in most encodings
WIDTH = 4  # bytes of a token


def tokens(encoding: str, text: str) -> int:
    """Return how many tokens a text is; what looks like a special token counts as ordinary text."""
    if len(text) <= SLICE:
        return _count(encoding, text)
    return sum(_count(encoding, piece) for piece in slices(text))


def slices(text: str) -> Iterator[str]:
    """Yield a long text in pieces of at most 32,768 characters, cut where no token is torn if there is such a place.

    No encoding joins a letter or digit with a space behind it, nor a line break with the word behind it.
    """
    start = 0
    while len(text) - start > SLICE:
        end = start + SLICE
        end = max(_last_blank(text, end - LOOK_BACK, end), _last_line(text, end - LOOK_BACK, end)) or end
        yield text[start:end]
        start = end
    yield text[start:]


def _last_blank(text: str, least: int, end: int) -> int:
    """Return the last place of a blank between letters or digits, 0 for none."""
    place = text.rfind(" ", least, end - 1)
    while place >= 0 and not (_in_word(text[place - 1]) and _in_word(text[place + 1])):
        place = text.rfind(" ", least, place)
    return max(place, 0)


def _last_line(text: str, least: int, end: int) -> int:
    """Return the last place where a line begins with a word, 0 for none."""
    place = text.rfind("\n", least - 1, end - 1)
    while place >= 0 and text[place + 1].isspace():
        place = text.rfind("\n", least - 1, place)
    return place + 1


def _in_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _count(encoding: str, text: str) -> int:
    return remembered(encoding, text, _counting(encoding)) if text else 0


@cache
def _counting(encoding: str) -> Callable[[str], int]:
    """Return what counts a text in an encoding, looked for once.

    Tokens are counted quickest where they come as bytes. That call knows special tokens, which are ordinary text here,
    so it is for encodings whose special tokens show themselves, and for texts that hold none.
    """
    tokenizer = _tokenizer(encoding)
    flat = tokenizer.encode_flat
    passes_special = all(name.startswith(SPECIAL) for name in tokenizer.special_tokens()) and not flat("")

    def counted(text: str) -> int:
        return (
            len(flat(text)) // WIDTH if passes_special and SPECIAL not in text else len(tokenizer.encode_ordinary(text))
        )

    def count(text: str) -> int:
        try:
            return counted(text)
        except UnicodeEncodeError:
            return counted(repair_surrogates(text))

    return count


def _tokenizer(encoding: str) -> Any:
    from splintr import Tokenizer  # the vocabularies take 20 MB: only who counts pays for them

    try:
        return Tokenizer.from_pretrained(encoding)
    except ValueError as error:
        raise UnknownModel(f"no vocabulary {encoding!r}; `counter_for(model)` knows those there are") from error
