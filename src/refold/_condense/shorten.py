"""Shortens one text or one call's arguments: whole lines from both ends, important lines between, a marker."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from refold._condense.call_outline import ERROR, may_be_wrong
from refold._condense.pins import sentences_of
from refold._text.graphemes import grapheme_prefix, grapheme_suffix
from refold._text.places import MANY, places_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["shorten", "shorten_arguments", "shortening"]

ROUNDS = 7
CLOSE = 0.96  # of the limit used is near enough
CHANGED = 0.6  # of the characters, which the changed lines of an edit may take
NEAR = 20  # a step of less than this part of the text changes nothing that matters
HEAD, TAIL = 0.5, 0.35  # of the characters; the rest is for error lines of the middle
LONG_LINE = 400  # characters from which a line may be cut inside, between words
LONG_LIST = 24  # items from which a list in arguments is cut
WORD_END = re.compile(r"[^\w./-]")


class Pinned(NamedTuple):
    """Sentences that stay with their places in a text, and the sentences of each of its lines."""

    places: tuple[tuple[str, int], ...]
    by_line: tuple[frozenset[str], ...]


def shorten(text: str, limit: int, count: Callable[[str], int], *, keep: Sequence[str] = ()) -> str:
    """Return a text of at most `limit` tokens if that can be: head, tail, error lines, and a marker between.

    Sentences in `keep` stand in the middle where they would be left out; with them the result may be above the limit.
    """
    size = count(text)
    if size <= limit:
        return text
    lines = text.split("\n")
    wrong = _wrong(text, lines)
    pins = Pinned(tuple(places_of(dict.fromkeys(keep), text)), tuple(map(_sentences, lines)) if keep else ())
    chars = int(len(text) * max(limit, 0) / size)
    best = _cut(lines, 0, pins, wrong)
    low, high = 0, len(text)
    for _ in range(ROUNDS):
        shortened = _cut(lines, chars, pins, wrong)
        size = count(shortened)
        if size <= limit:
            best, low = shortened, chars
            if size >= CLOSE * limit:
                break
        else:
            high = chars
        aimed = int(chars * limit / max(size, 1) * 0.99)
        following = aimed if low < aimed < high else (low + high) // 2
        if size <= limit and abs(following - chars) * NEAR < chars:
            break
        chars = following
    return best


def shorten_arguments(arguments: str, chars: int, *, free_text: bool = False) -> str:
    """Return a call's arguments with each long text cut to about `chars` characters; JSON stays JSON.

    Arguments that are neither JSON nor free text are left as they are.
    """
    return shortening(arguments, free_text=free_text)(chars)


def shortening(arguments: str, *, free_text: bool = False) -> Callable[[int], str]:
    """Return what shortens a call's arguments to about so many characters, as `shorten_arguments` does."""
    try:
        decoded = json.loads(arguments)
    except (ValueError, RecursionError):
        return lambda chars: shorten(arguments, chars, len) if free_text else arguments
    compact = (",", ":") if '": ' not in arguments[:400] else None

    def shortened(chars: int) -> str:
        try:
            return json.dumps(_smaller(decoded, chars), ensure_ascii=False, separators=compact)
        except RecursionError:
            return arguments

    return shortened


def _smaller(value: object, chars: int) -> Any:
    match value:
        case str():
            return shorten(value, chars, len) if len(value) > chars + 60 else value
        case dict():
            return {key: _of_edit(key, inner, value, chars) or _smaller(inner, chars) for key, inner in value.items()}
        case list() if len(value) > LONG_LIST:
            left = f"[… {len(value) - 12:,} items left out …]"
            return [_smaller(inner, chars) for inner in (*value[:8], left, *value[-4:])]
        case list():
            return [_smaller(inner, chars) for inner in value]
        case _:
            return value


def _of_edit(key: str, text: object, arguments: Mapping[str, object], chars: int) -> str:
    """Return what an edit replaces, or by what, with the lines that differ; nothing where that needs no cut or more."""
    other = arguments.get(key.replace("old", "new") if "old" in key else key.replace("new", "old"))
    if not (isinstance(text, str) and isinstance(other, str)) or other is text or len(text) <= chars + 60:
        return ""
    same = set(other.split("\n"))
    changed = [line for line in text.split("\n") if line not in same and any(map(str.isalnum, line))]
    return shorten(text, chars, len, keep=changed) if 0 < sum(map(len, changed)) <= chars * CHANGED else ""


def _wrong(text: str, lines: Sequence[str]) -> list[int]:
    """Return which lines tell of something that went wrong, but for very long ones."""
    if not may_be_wrong(text):
        return []
    return [
        position
        for position, line in enumerate(lines)
        if len(line) <= LONG_LINE and may_be_wrong(line) and ERROR.search(line)
    ]


def _cut(lines: Sequence[str], chars: int, pins: Pinned, wrong: Sequence[int]) -> str:
    head, first = _taken(lines, int(chars * HEAD))
    tail, last = _taken_last(lines, first, int(chars * TAIL))
    visible = "\n".join([*head, *tail])
    pinned = _left_out(pins.places, visible, len("\n".join(head)), sum(map(len, lines)) + len(lines) - 1)
    sentences = frozenset(pinned)
    errors = _errors(
        (
            lines[position]
            for position in wrong
            if first <= position < len(lines) - last and lines[position].strip() not in sentences
        ),
        chars - int(chars * HEAD) - int(chars * TAIL),
    )
    left = len(lines) - last - first - len(errors) - _whole(pins.by_line[first : len(lines) - last], sentences)
    if left > 1:
        marker = f"[… {left:,} of {len(lines):,} lines left out …]"
    else:
        whole = sum(map(len, lines)) + len(lines) - 1
        out = whole - len(visible) - sum(map(len, errors)) - sum(map(len, pinned))
        marker = f"[… {max(out, 0):,} of {whole:,} characters left out …]"
    return "\n".join([*head, marker, *pinned, *errors, *tail])


def _sentences(line: str) -> frozenset[str]:
    return frozenset(piece.strip() for piece in sentences_of(line) if piece.strip())


def _left_out(keep: Sequence[tuple[str, int]], visible: str, head: int, whole: int) -> list[str]:
    """Return the sentences that what is visible of a text does not contain: a head and the rest of a tail.

    Among very many only those count as visible that stand where they were found.
    """
    tail = whole - (len(visible) - head)
    hidden = [sentence for sentence, place in keep if place < 0 or (head < place + len(sentence) and place < tail)]
    return hidden if len(hidden) > MANY else [sentence for sentence in hidden if sentence not in visible]


def _whole(sentences_by_line: Sequence[frozenset[str]], sentences: frozenset[str]) -> int:
    """Return how many lines consist of sentences and nothing else."""
    return sum(bool(each) and each <= sentences for each in sentences_by_line) if sentences else 0


def _taken(lines: Iterable[str], chars: int) -> tuple[list[str], int]:
    """Return lines up to a number of characters, and how many are whole; a very long line is cut between words."""
    taken: list[str] = []
    for line in lines:
        if len(line) + 1 > chars:
            if len(line) > LONG_LINE and chars > 20:
                return [*taken, _words(line, chars)], len(taken)
            break
        taken.append(line)
        chars -= len(line) + 1
    return taken, len(taken)


def _taken_last(lines: Sequence[str], first: int, chars: int) -> tuple[list[str], int]:
    """Return the last lines from `first` on up to a number of characters, and how many are whole."""
    position = len(lines)
    while position > first and len(lines[position - 1]) + 1 <= chars:
        position -= 1
        chars -= len(lines[position]) + 1
    tail = list(lines[position:])
    if position > first and len(line := lines[position - 1]) > LONG_LINE and chars > 20:
        tail.insert(0, _last_words(line, chars))
    return tail, len(lines) - position


def _words(line: str, chars: int) -> str:
    """Return the beginning of a line, at most so many characters, up to the end of a word where there is one."""
    end = min(chars, len(line) - 1)
    while end > chars // 2 and not WORD_END.match(line[end]):
        end -= 1
    return grapheme_prefix(line, end if end > chars // 2 else chars)


def _last_words(line: str, chars: int) -> str:
    """Return the end of a line, at most so many characters, from the beginning of a word where there is one."""
    length = min(chars, len(line) - 1)
    while length > chars // 2 and not WORD_END.match(line[-length - 1]):
        length -= 1
    return grapheme_suffix(line, length if length > chars // 2 else chars)


def _errors(lines: Iterable[str], chars: int) -> list[str]:
    """Return the lines, as far as there is room for them."""
    fitting: list[str] = []
    for line in lines:
        if len(line) < chars:
            fitting.append(line)
            chars -= len(line) + 1
    return fitting
