"""Reads an answer beside its way to the client: the usage it reports, and whether it is an error."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from refold.errors import UsageError
from refold.gateway.packing import Unreadable, unpacker
from refold.limits.overflow import classify_response
from refold.limits.usage import Reported, reported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from refold.gateway.pool import Answer

__all__ = ["Reading", "beginning", "prelude"]

LARGEST = 64 * 1024 * 1024  # bytes of an answer that are kept to be read
ROOM = 32 * 1024  # bytes of a stream that are kept before all but its last lines are dropped
LAST = 16  # lines at the end of a stream that are looked at: what ends it stands there, whatever follows it
FIRST = 3  # lines at the start of a stream that are looked at: Anthropic says there what it read
OPEN = frozenset({b"", b"null"})  # where an answer goes on
GOOD = OPEN | {b'"stop"', b'"STOP"', b'"tool_calls"'}  # reasons for which an answer ends and that tell nothing
BRACE = ord("{")
NOTHING = Raw()
PATIENCE = 5.0  # seconds for which a stream that has said nothing yet is kept from the client
MOST = 64 * 1024  # bytes that are read of such a stream
PRELUDE = (b"response.created", b"response.in_progress", b"response.queued")  # events that say nothing yet
_WHOLE = re.compile(rb".*?(?:\n\n|\r\n\r\n|\r\r)", re.S)  # an event
_decode = msgspec.json.Decoder().decode


class _Event(Struct):
    """What of an event may matter, in the provider's bytes; the rest of it is passed over."""

    usage: Raw = NOTHING
    usageMetadata: Raw = NOTHING  # noqa: N815 # Gemini's name
    error: Raw = NOTHING
    incomplete_details: Raw = NOTHING
    choices: Raw = NOTHING
    candidates: Raw = NOTHING
    message: Raw = NOTHING
    response: Raw = NOTHING


class _End(Struct):
    """Why a choice or a candidate ended."""

    finish_reason: Raw = NOTHING
    finishReason: Raw = NOTHING  # noqa: N815 # Gemini's name


_event = msgspec.json.Decoder(_Event).decode
_ends = msgspec.json.Decoder(list[_End]).decode


class Reading:
    """Is shown the pieces of one answer and knows at the end what it reported.

    Of answers that are `streaming`, lines of events, the last ones are kept and read at the end, backward, until usage
    and the reason of the end are found; others are one JSON body.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.streaming = "text/event-stream" in headers.get("Content-Type", "")
        encoded = headers.get("Content-Encoding", "")
        self._unpack = unpacker(encoded)
        self._packed = bool(encoded)
        self._text = bytearray()
        self._room = ROOM if self.streaming else LARGEST
        self._begun = False
        self._ended = False
        self._usage: dict[str, Any] = {}
        self._ends: dict[str, Any] = {}

    def feed(self, piece: bytes) -> None:
        """Take a piece of the answer as it came from upstream."""
        if self._unpack is None:
            return
        if self._packed:
            try:
                piece = self._unpack(piece)
            except Unreadable:
                self._unpack = None
                return
        self._text += piece
        if len(self._text) > self._room:
            self._shorten()

    @property
    def text(self) -> bytes:
        """The body of an answer that is not a stream."""
        return bytes(self._text)

    def body(self) -> dict[str, Any]:
        """Return what the answer says of itself: usage, error and reason of its end."""
        if self.streaming:
            self._events()
            return {**self._ends, **({"usage": self._usage} if self._usage else {})}
        try:
            held = _decode(self._text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}
        if isinstance(held, list):  # Gemini streams a list where no events were asked for
            held = held[-1] if held else {}
        return held if isinstance(held, dict) else {}

    def usage(self) -> Reported | None:
        """Return the usage that the answer reported, if it did."""
        try:
            if self.streaming:
                self._events()
                return reported(self._usage) if self._usage else None
            body = self.body()
            return reported({key: body[key] for key in ("usage", "usageMetadata") if key in body})
        except UsageError:
            return None

    def full(self, usage: Reported, window: int) -> bool:
        """Tell whether the answer shows, with the usage it reported, that the window was full."""
        if usage.prompt <= window and self.streaming and not self._ends:
            return False
        return classify_response(self.body(), window).kind == "context_overflow"

    def _shorten(self) -> None:
        """Drop what need not be kept; the rest may grow to twice its size before it is looked at again."""
        if not self.streaming:
            self._unpack = None
            return
        self._beginning()
        lines = self._text.rsplit(b"\n", LAST)
        if len(lines) > LAST:
            del self._text[: len(lines[0])]
        self._room = max(ROOM, 2 * len(self._text))

    def _events(self) -> None:
        """Read the last lines, and the first where these do not say everything."""
        for line in self._backward():
            if line.startswith(b"data:") and BRACE in line:
                self._read(line)
                if self._ended and self._usage:
                    return
        self._beginning()

    def _backward(self) -> Iterator[bytearray]:
        """Yield the last lines, the very last one first."""
        stop = len(self._text)
        for _ in range(LAST):
            start = self._text.rfind(b"\n", 0, stop) + 1
            yield self._text[start:stop]
            if not start:
                return
            stop = start - 1

    def _beginning(self) -> None:
        if not self._begun and self._text.startswith(b"event"):
            for line in self._text.split(b"\n", FIRST)[:FIRST]:
                if line.startswith(b"data:"):
                    self._read(line)
        self._begun = True

    def _read(self, line: bytearray) -> None:
        try:
            event = _event(line[5:])
            self._take(event)
            for inner in (event.message, event.response):
                if inner is not NOTHING and memoryview(inner)[0] == BRACE:
                    self._take(_event(inner))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return

    def _take(self, event: _Event) -> None:
        """Take what an event says; what a later one said is known already, and counts."""
        for raw in (event.usage, event.usageMetadata):
            if raw is not NOTHING and isinstance(usage := _decode(raw), dict):
                self._usage = {name: value for name, value in usage.items() if value is not None} | self._usage
        for key, raw in (("error", event.error), ("incomplete_details", event.incomplete_details)):
            if raw is not NOTHING and (held := _decode(raw)):
                self._ends.setdefault(key, held)
        for key, raw in (("choices", event.choices), ("candidates", event.candidates)):
            if raw is NOTHING:
                continue
            for end in _ends(raw):
                reasons = {bytes(end.finish_reason), bytes(end.finishReason)}
                self._ended = self._ended or not reasons <= OPEN
                if not reasons <= GOOD:
                    self._ends.setdefault(key, _decode(raw))


def prelude(text: bytes) -> bool:
    """Tell whether a stream has said nothing yet: comments, events that tell that it begins, a part of an event."""
    for event in _WHOLE.finditer(text):
        lines = [line for line in event[0].splitlines() if line and not line.startswith(b":")]
        if lines and not (lines[0].startswith(b"event:") and lines[0][6:].strip() in PRELUDE):
            return False
    return True


async def beginning(answer: Answer, unsaid: Callable[[Answer, bytes], bool]) -> bytes:
    """Return what a stream says first; of one that takes its time what there is, so that the client sees it live."""
    first = b""
    try:
        async with asyncio.timeout(PATIENCE) as waiting:
            while more := await answer.content.readany():
                first += more
                if len(first) >= MOST or not unsaid(answer, first):
                    break
    except TimeoutError:
        if not waiting.expired():
            raise
    return first
