"""Token counts of one text in one encoding: long texts in slices, repeated ones from a small memo."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from refold.core.halves import whole
from refold.counting.memo import remembered
from refold.errors import UnknownModel

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["slices", "tokens"]

SLICE = 32_768  # characters; at most 128 KB, a few milliseconds in the tokenizer, which holds the interpreter's lock
LOOK_BACK = 1_024  # how far before the end of a slice a good cut is looked for

# No encoding joins a letter or digit with a space behind it, nor a line break with the word behind it.
CUT = re.compile(r"(?<=\w)(?= \w)|(?<=\n)(?=[^\s])")


def tokens(encoding: str, text: str) -> int:
    """Return how many tokens a text is; what looks like a special token counts as ordinary text."""
    if len(text) <= SLICE:
        return _count(encoding, text)
    return sum(_count(encoding, piece) for piece in slices(text))


def slices(text: str) -> Iterator[str]:
    """Yield a long text in pieces of at most 32,768 characters, cut where no token is torn if there is such a place."""
    start = 0
    while len(text) - start > SLICE:
        end = start + SLICE
        for found in CUT.finditer(text, end - LOOK_BACK, end):
            end = found.start()
        yield text[start:end]
        start = end
    yield text[start:]


def _count(encoding: str, text: str) -> int:
    def encoded(text: str) -> int:
        try:
            return len(_tokenizer(encoding).encode_ordinary(text))
        except UnicodeEncodeError:
            return len(_tokenizer(encoding).encode_ordinary(whole(text)))

    return remembered(encoding, text, encoded) if text else 0


@cache
def _tokenizer(encoding: str) -> Any:
    from splintr import Tokenizer  # the vocabularies take 20 MB: only who counts pays for them

    try:
        return Tokenizer.from_pretrained(encoding)
    except ValueError as error:
        raise UnknownModel(f"no vocabulary {encoding!r}; `counter_for(model)` knows those there are") from error
