"""Locates the messages in the bytes of a request body, and parses other fields only on demand.

A client sends its whole history with every call. `continued` opens a body by what is known of the one before: the
part that both share is compared, not read.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

from refold.core._json import Json
from refold.errors import BadValue

__all__ = [
    "LONGEST_MARK",
    "LONGEST_MESSAGE",
    "Bytes",
    "ParsedBody",
    "breathe",
    "check_values",
    "continued",
    "find_any",
    "native",
    "opened",
    "position",
    "rebuilt",
    "repeats",
    "spliced",
    "without_key",
]

Bytes: TypeAlias = Raw | bytes
Values: TypeAlias = dict[str, Bytes]

_values = msgspec.json.Decoder(dict[str, Raw]).decode
_list = msgspec.json.Decoder(list[Raw]).decode
_decode = msgspec.json.Decoder().decode
_KEY = re.compile(rb'[\s,{]*"((?:[^"\\]|\\.)*)"\s*:\s*', re.S)
_SPACE = re.compile(rb"\s*")
_TEXT_SPACE = re.compile(r"\s*")
_WHITE = b" \t\r\n"
_BLANK = frozenset({b" ", b"\t", b"\r", b"\n"})
_HEAD = b'{"\\u0000":['  # a name that no client gives
_LISTS = frozenset({"messages", "input", "contents"})
WINDOW = 1024 * 1024  # bytes that are looked at in one call, in which no other thread runs
MOST_VALUES = 250_000  # values of a body; to make as many takes 40 ms, in which no other thread runs
LONGEST_MESSAGE = 24 * 1024 * 1024  # bytes of one that is read, which takes 30 ms; it holds no text for any model
LONGEST_SLOW = 16 * 1024 * 1024  # bytes of a body that the standard library reads, at a third of the speed
MUCH = 4 * 1024 * 1024  # bytes that are read in a thread, by some calls in which no other thread runs
BREATH = 0.005  # seconds between two such calls
LONGEST_MARK = 32  # bytes: a mark is searched for again where the last search ended in its middle


class ParsedBody(Struct):
    """A body whose messages were found.

    `raws` are the client's own bytes of each message; `start` and `stop` are where their list begins and ends, without
    its brackets, `end` where the last message ends. `before` and `after` are the values at the keys on either side.
    """

    body: bytes
    raws: list[Bytes]
    start: int
    end: int
    stop: int
    before: Values
    after: Values

    def raw(self, key: str) -> Bytes | None:
        """Return the bytes of the value at a key of the body."""
        match = self.before.get(key)
        return self.after.get(key) if match is None else match

    def get(self, *keys: str) -> Any:
        """Return the value at the first of several keys that is there."""
        for key in keys:
            match = self.raw(key)
            if match is not None:
                return native(match)
        return None


def opened(body: bytes, key: str) -> ParsedBody | None:
    """Open a body whose messages are a list at a key; None where there is no such list, or the key stands twice.

    Raises:
        ValueError: the body is no JSON object, or there is too much in it to be read while others wait.
    """
    if not _begins_as_object(body):
        raise ValueError("the body is no JSON object")
    check_values(body)
    try:
        values = _values(body)
        value = values.get(key)
        if value is None or memoryview(value)[0] != 0x5B:  # [
            return None
        breathe(len(body))
        return _located(body, dict(values), key, _checked(_list(value)))
    except msgspec.DecodeError:  # lone surrogates, numbers out of range: others read them, so nothing is wrong yet
        if len(body) > LONGEST_SLOW:
            message = f"a body of more than {LONGEST_SLOW:,} bytes that is no strict JSON is not read"
            raise BadValue(f"{message}: leave out halves of surrogate pairs") from None
        return _opened_slowly(body, key)


def _begins_as_object(body: bytes) -> bool:
    """Tell whether the first byte that is no space opens an object; other threads may run while it is looked for."""
    for at in range(0, len(body), WINDOW):
        if begun := body[at : at + WINDOW].lstrip(_WHITE):
            return begun.startswith(b"{")
    return False


def check_values(body: bytes, start: int = 0) -> None:
    """See that a body has no more values from a position on than are made in a moment; other threads may run meanwhile.

    Raises:
        BadValue: it has too many.
    """
    stop = len(body)
    if stop - start <= 2 * MOST_VALUES:  # a value and its comma are two bytes
        return
    windows = range(start, stop, WINDOW)
    signs = [_signs_in(body[at : min(at + WINDOW, stop)]) for at in windows]  # also within strings
    if not _are_many(sum(commas for commas, _ in signs), sum(lists for _, lists in signs)):
        return
    commas = lists = in_string = 0
    rest = b""  # a backslash at the end of a part, of which the next one begins with what it escapes
    for at in windows:
        part = rest + body[at : min(at + WINDOW, stop)]
        cut = part.rstrip(b"\\")
        rest = b"\\" * ((len(part) - len(cut)) % 2)
        pieces = cut.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        more_commas, more_lists = _signs_in(b" ".join(pieces[in_string::2]))
        commas, lists = commas + more_commas, lists + more_lists
        in_string ^= (len(pieces) - 1) % 2
        if _are_many(commas, lists):
            raise BadValue(f"a body with more than {MOST_VALUES:,} values is not read: send them as text")


def breathe(size: int) -> None:
    """Let other threads run between two long calls for so many bytes: else a request of others may wait for both."""
    if size > MUCH:
        time.sleep(BREATH)


def _signs_in(part: bytes) -> tuple[int, int]:
    """Return how many commas, and how many beginnings of lists and objects, are in a part of a body."""
    return part.count(b","), part.count(b"[") + part.count(b"{")


def _are_many(commas: int, lists: int) -> bool:
    return commas > MOST_VALUES or lists > 2 * MOST_VALUES  # lists within one another need no comma


def _checked(raws: list[Raw]) -> list[Bytes]:
    """Return messages, none of which is too long to be read.

    Raises:
        BadValue: one is.
    """
    if max((len(memoryview(raw)) for raw in raws), default=0) > LONGEST_MESSAGE:
        raise BadValue(f"a message of more than {LONGEST_MESSAGE:,} bytes is not read: send several")
    return list(raws)


def find_any(body: bytes, marks: Iterable[bytes], start: int, stop: int) -> bool:
    """Tell whether one of several short marks stands in a part of a body; other threads may run meanwhile."""
    for at in range(start, stop, WINDOW):
        end = min(at + WINDOW + LONGEST_MARK, stop)
        for mark in marks:  # without a generator, since nearly every request looks for a few marks in a few bytes
            if body.find(mark, at, end) >= 0:
                return True
    return False


def repeats(known: ParsedBody, body: bytes) -> bool:
    """Tell whether a body begins with all that is known of another one, to the end of its last message."""
    return bool(known.raws) and body.startswith(memoryview(known.body)[: known.end])


def continued(known: ParsedBody, body: bytes) -> ParsedBody | None:
    """Open a body that repeats another one; None where it does not go on as a list of messages does.

    What is new is read, and nothing else. The list of messages goes over to the new one: `known` is not used any more.

    Raises:
        BadValue: there is too much new in it to be read while others wait.
    """
    at = known.end
    check_values(body, at)
    sign = body[at : at + 1]
    if sign in _BLANK and (match := _SPACE.match(body, at)):
        at = match.end()
        sign = body[at : at + 1]
    if sign == b",":
        at += 1
    elif sign != b"]":
        return None
    got = _appended(known, body, at) or _followed(known, body, at)
    if got is None:
        return None
    fresh, stop, after = got
    if sign == b"," and not fresh:  # a comma behind the last message, which no JSON has
        return None
    known.raws.extend(_checked(fresh) if stop - at > LONGEST_MESSAGE else fresh)
    end = _end(body, known.start, stop) if body[stop - 1] in _WHITE else stop
    return ParsedBody(body, known.raws, known.start, end, stop, known.before, after)


def _appended(known: ParsedBody, body: bytes, at: int) -> tuple[list[Raw], int, Values] | None:
    """Read the messages that are new where all that follows them is as before."""
    stop = len(body) - len(known.body) + known.stop
    if stop <= at or not body.endswith(memoryview(known.body)[known.stop :]):
        return None
    try:
        return _list(b"[%b]" % body[at:stop]), stop, known.after
    except msgspec.DecodeError:
        return None


def _followed(known: ParsedBody, body: bytes, at: int) -> tuple[list[Raw], int, Values] | None:
    """Read the messages that are new, and the values behind them."""
    rest = _HEAD + body[at:]
    try:
        after: Values = dict(_values(rest))
        value = after.pop("\0")
        fresh = _list(value)
    except (msgspec.DecodeError, KeyError):
        return None
    if not known.before.keys().isdisjoint(after) or not _LISTS.isdisjoint(after):
        return None  # a key stands twice: the last one counts, which is not this list
    return fresh, len(body) - len(rest) + len(_HEAD) - 1 + len(memoryview(value)) - 1, after


def spliced(opened: ParsedBody, *messages: bytes) -> bytes:
    """Return the body with other messages, which are given as pieces of the JSON of the list without its brackets."""
    body = memoryview(opened.body)
    return b"".join((body[: opened.start], *messages, body[opened.stop :]))


def rebuilt(opened: ParsedBody, key: str, raws: Iterable[Bytes], without: Sequence[str] = ()) -> bytes:
    """Return a body with other messages at a key, and without the values at some others; all else keeps its bytes."""
    values = {**opened.before, key: b"[%b]" % b",".join(map(bytes, raws)), **opened.after}
    pairs = (msgspec.json.encode(name) + b":" + bytes(raw) for name, raw in values.items() if name not in without)
    return b"{%b}" % b",".join(pairs)


def without_key(body: bytes, key: str) -> bytes:
    """Return a body without the value at a key; the other values keep their bytes.

    Raises:
        ValueError: the body is no JSON object.
    """
    try:
        return msgspec.json.encode({name: raw for name, raw in _values(body).items() if name != key})
    except msgspec.DecodeError:  # lone surrogates, numbers out of range
        return json.dumps({name: value for name, value in json.loads(body).items() if name != key}).encode()


def position(opened: ParsedBody, key: str) -> tuple[int, int] | None:
    """Return where the value at a key beside the messages begins and ends in the body; None where it is not found."""
    for values, at, stop in ((opened.before, 0, opened.start), (opened.after, opened.stop + 1, len(opened.body))):
        while key in values and at < stop and (match := _KEY.match(opened.body, at)):
            name, at = str(_decode(b'"' + match[1] + b'"')), match.end()
            if name not in values or not opened.body.startswith(bytes(values[name]), at):
                break
            size = len(memoryview(values[name]))
            if name == key:
                return at, at + size
            at += size
    return None


def native(raw: Bytes) -> Any:
    """Return a value; what the fast parser refuses (lone surrogates) the other one reads."""
    try:
        return _decode(raw)
    except msgspec.DecodeError:
        return json.loads(bytes(raw))


def _located(body: bytes, values: Values, key: str, raws: list[Bytes]) -> ParsedBody | None:
    """Walk the keys of the body, to find where each value stands."""
    at, start, stop = 0, -1, -1
    before: Values = {}
    after: Values = {}
    while match := _KEY.match(body, at):
        name = str(_decode(b'"' + match[1] + b'"'))
        raw, at = values[name], match.end()
        if not body.startswith(raw, at):
            return None  # a key that stands twice
        size = len(memoryview(raw))
        if name == key:
            if start >= 0:
                return None
            start, stop = at + 1, at + size - 1
        elif start < 0:
            before[name] = raw
        else:
            after[name] = raw
        at += size
    return ParsedBody(body, raws, start, _end(body, start, stop), stop, before, after) if start >= 0 else None


def _end(body: bytes, start: int, stop: int) -> int:
    while stop > start and body[stop - 1] in _WHITE:
        stop -= 1
    return stop


def _opened_slowly(body: bytes, key: str) -> ParsedBody | None:
    """Do the same with the standard library, which takes what JSON proper does not."""
    text = body.decode()
    if not isinstance(value := json.loads(text), dict) or not isinstance(value.get(key), list):
        return None
    before: Values = {}
    after: Values = {}
    raws: list[Bytes] | None = None
    start = stop = 0
    for name, first, last in _pairs(text, _skip(text, 0) + 1, keyed=True):
        if name == key:
            if raws is not None:
                return None
            raws = [text[a:b].encode() for _, a, b in _pairs(text, first + 1, keyed=False)]
            start, stop = len(text[: first + 1].encode()), len(text[: last - 1].encode())
        else:
            (before if raws is None else after)[name] = text[first:last].encode()
    if raws is None or _twice(before, after, value, key):
        return None
    return ParsedBody(body, raws, start, _end(body, start, stop), stop, before, after)


def _twice(before: Values, after: Values, value: Json, key: str) -> bool:
    """Tell whether the walk met fewer keys than there are, or one on both sides of the messages."""
    return bool(before.keys() & after.keys()) or len(before) + len(after) + 1 != len(value) or key not in value


def _pairs(text: str, at: int, *, keyed: bool) -> Iterator[tuple[str, int, int]]:
    """Yield the name, start and end of each value of an object (or, without names, of a list) that begins before."""
    decoder = json.JSONDecoder()
    at = _skip(text, at)
    while text[at] not in "]}":
        name = ""
        if keyed:
            name, at = decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        _, end = decoder.raw_decode(text, at)
        yield name, at, end
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    match = _TEXT_SPACE.match(text, at)
    return match.end() if match else at
