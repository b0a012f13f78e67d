"""Server-sent events: decoded from bytes as they arrive, or read from either end of a buffer.

A stream is a run of blocks, each ended by an empty line; a line ends with LF, CR or CRLF, and a stream may mix them.
A block is one event: named or not, with data in one line or several, or a comment that keeps the connection alive. The
bytes of all events, one after another, are the stream itself.

The standard drops a block that the stream ends in; here it is an event like the others, because servers leave out the
last empty line. A CR at the end of a piece ends its line at once, so an event never waits for the next one; the LF that
may follow it then begins the next block, where an empty line means nothing.

<https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from refold.core._json import Json

__all__ = ["Decoder", "Event", "first_events", "last_events", "objects"]

BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"  # the data that ends a stream of OpenAI's chat completions
LIMIT = 64 * 1024 * 1024  # bytes: a last event repeats the whole response, images included
CR, LF = LINE_ENDS = b"\r\n"
_BLOCK_END = re.compile(rb"(?:\n|\r\n?+)(?:\n|\r\n?+)")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # the escape of half a surrogate pair
_decode = msgspec.json.Decoder().decode


class Event(Struct, frozen=True):
    """One event: its bytes with the empty line that ends it, its name, and its data where it has any."""

    raw: bytes
    name: str = ""
    data: bytes | None = None
    comment: bool = False  # nothing but comments and empty lines: it only keeps the connection alive

    @property
    def done(self) -> bool:
        """Tell whether this is the `[DONE]` that ends a stream of OpenAI's."""
        return self.data == DONE

    def json(self) -> Json | None:
        """Return the data where it is a JSON object; None for anything else, `[DONE]` among it."""
        return None if self.data is None else _object(self.data)


class Decoder:
    """Takes a stream in pieces of any size and returns the events that are complete.

    An event of more than `limit` bytes comes out in several parts without data: it can be forwarded, not read.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0  # bytes of the buffer in which no block ends
        self._first = True
        self._oversized = False

    def feed(self, piece: bytes) -> list[Event]:
        """Take a piece and return the events that it completes."""
        buffer = self._buffer
        buffer += piece
        events: list[Event] = []
        start = 0
        for end in _BLOCK_END.finditer(buffer, self._searched):
            events.append(self._event(buffer[start : end.end()]))
            start = end.end()
        del buffer[:start]
        self._searched = max(len(buffer) - 3, 0)  # the two line ends may yet be cut anywhere: \r \n \r \n
        if len(buffer) > self._limit:
            events.append(Event(bytes(buffer[: self._searched])))
            del buffer[: self._searched]
            self._searched = 0
            self._oversized, self._first = True, False
        return events

    def finish(self) -> list[Event]:
        """Return what is left when the stream has ended: at most one event."""
        rest, self._buffer = self._buffer, bytearray()
        self._searched = 0
        return [self._event(rest)] if rest else []

    def _event(self, block: bytearray) -> Event:
        if self._oversized:
            self._oversized = False
            return Event(bytes(block))
        if self._first:
            self._first = False
            return _event(bytes(block), skip=len(BOM) if block.startswith(BOM) else 0)
        return _event(bytes(block))


def first_events(buffer: bytes | bytearray, start: int = 0) -> Iterator[Event]:
    """Yield the events that are complete in a buffer which begins where the stream does, each read when it is due.

    `start` is where one of them begins, and those before it are left out.
    """
    skip = len(BOM) if start == 0 and buffer.startswith(BOM) else 0
    for end in _BLOCK_END.finditer(buffer, start):
        yield _event(bytes(buffer[start : end.end()]), skip)
        start, skip = end.end(), 0


def last_events(buffer: bytes | bytearray) -> Iterator[Event]:
    """Yield the events of a buffer from the last one to the first, each read when it is due.

    What follows the last empty line is an event; so is what begins the buffer, though it may have begun earlier.
    """
    text = bytes(buffer)
    only_lf = CR not in text
    stop = len(text)
    while stop > 0:
        end = stop
        while end > 0 and text[end - 1] in LINE_ENDS:
            end -= 1
        if only_lf:
            empty = text.rfind(b"\n\n", 0, end)
            start = empty + 2 if empty >= 0 else 0
        else:
            start = _block_start(text, end)
        yield _event(text[start:stop], len(BOM) if start == 0 and text.startswith(BOM) else 0)
        stop = start


def objects(stream: bytes) -> Iterator[Json]:
    """Yield the JSON objects in the data of a recorded stream; anything else is skipped.

    Recordings may have lost their empty lines: where several lines of data are no object together, each is tried.
    """
    decoder = Decoder()
    events: Iterable[Event] = (*decoder.feed(stream), *decoder.finish())
    for event in events:
        if event.data is None:
            continue
        whole = _object(event.data)
        yield from [whole] if whole is not None else filter(None, map(_object, event.data.split(b"\n")))


def _block_start(text: bytes, end: int) -> int:
    """Return where the block begins whose content ends at a place: line by line back to an empty one."""
    while True:
        at = text.rfind(b"\n", 0, end)
        at = max(at, text.rfind(b"\r", at + 1, end))
        if at < 0:
            return 0
        end = at - 1 if text[at] == LF and at > 0 and text[at - 1] == CR else at
        if end == 0:
            return 0
        if text[end - 1] in LINE_ENDS:
            return at + 1


def _event(block: bytes, skip: int = 0) -> Event:
    """Read one block; `skip` bytes at its start are a byte order mark."""
    if block.startswith(b"data: "):
        line = block[6:].rstrip(LINE_ENDS)
        if LF not in line and CR not in line:  # as in most
            return Event(block, "", line)
    name = ""
    data: bytes | None = None
    comment = True
    for line in (block[skip:] if skip else block).splitlines():
        field, colon, value = line.partition(b":")
        if not field:
            continue
        comment = False
        if colon and value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            data = value if data is None else b"%s\n%s" % (data, value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return Event(block, name, data, comment)


def _object(data: bytes) -> Json | None:
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if not _HALF.search(data):
            return None
        try:  # some servers cut a text between the halves of a surrogate pair, which msgspec refuses
            value = json.loads(data)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None
