"""Reads an answer beside its way to the client: the usage it reports, and whether it is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from refold.errors import UsageError
from refold.gateway.packing import Unreadable, unpacker
from refold.limits.overflow import classify_response
from refold.limits.usage import Reported, reported

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Reading", "prelude"]

LARGEST = 64 * 1024 * 1024  # bytes of an answer that are kept to be read
LAST = 16  # lines at the end of a piece that are looked at: what ends a stream stands there, whatever follows it
FIRST = 1_024  # bytes at the start of a stream that are looked at: Anthropic says there what it read
SPEAKING = (b'"usage', b"error", b"_exceeded", b'"length"', b"max_tokens", b"MAX_TOKENS")  # of lines that may matter
PRELUDE = (b"response.created", b"response.in_progress", b"response.queued")  # events that say nothing yet
_decode = msgspec.json.Decoder().decode


class Reading:
    """Is shown the pieces of one answer and knows at the end what it reported.

    `streaming` answers are lines of events, of which only those that speak of usage or of an end are parsed, and only
    where such stand, at the beginning and the end of what arrives at once; others are one JSON body.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.streaming = "text/event-stream" in headers.get("Content-Type", "")
        encoded = headers.get("Content-Encoding", "")
        self._unpack = unpacker(encoded)
        self._packed = bool(encoded)
        self._pieces: list[bytes] = []
        self._line = b""
        self._new = True
        self._size = 0
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
        if self.streaming:
            piece = self._line + piece
            cut = piece.rfind(b"\n") + 1
            self._line = piece[cut:]
            if cut:
                last = _last(piece, cut)
                if self._new and piece.startswith(b"event"):
                    self._events(piece, 0, min(last, FIRST))
                self._new = False
                self._events(piece, last, cut)
        elif self._size < LARGEST:
            self._pieces.append(piece)
            self._size += len(piece)

    @property
    def text(self) -> bytes:
        """The body of an answer that is not a stream."""
        return b"".join(self._pieces)

    def body(self) -> dict[str, Any]:
        """Return what the answer says of itself: usage, error and reason of its end."""
        if self.streaming:
            if self._line:
                line, self._line = self._line + b"\n", b""
                self._events(line, 0, len(line))
            return {**self._ends, **({"usage": self._usage} if self._usage else {})}
        try:
            held = _decode(self.text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}
        if isinstance(held, list):  # Gemini streams a list where no events were asked for
            held = held[-1] if held else {}
        return held if isinstance(held, dict) else {}

    def usage(self) -> Reported | None:
        """Return the usage that the answer reported, if it did."""
        if self.streaming and not self._usage and not self._line:
            return None
        try:
            body = self.body()
            if self.streaming:
                return reported(self._usage)
            return reported({key: body[key] for key in ("usage", "usageMetadata") if key in body})
        except UsageError:
            return None

    def full(self, usage: Reported, window: int) -> bool:
        """Tell whether the answer shows, with the usage it reported, that the window was full."""
        if usage.prompt <= window and self.streaming and not self._ends:
            return False
        return classify_response(self.body(), window).kind == "context_overflow"

    def _events(self, piece: bytes, begin: int, stop: int) -> None:
        """Read the lines that speak of what matters, which are few."""
        lines = set()
        for mark in SPEAKING:
            at = piece.find(mark, begin, stop)
            while at >= 0:
                start, end = piece.rfind(b"\n", 0, at) + 1, piece.find(b"\n", at)
                lines.add((start, end))
                at = piece.find(mark, end, stop)
        for start, end in sorted(lines):
            self._event(piece[start:end])

    def _event(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        try:
            held = _decode(line[5:])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if not isinstance(held, dict):
            return
        for place in (held, held.get("message"), held.get("response")):
            if isinstance(place, dict):
                self._take(place)

    def _take(self, place: dict[str, Any]) -> None:
        for key in ("usage", "usageMetadata"):
            usage = place.get(key)
            if isinstance(usage, dict):
                self._usage |= {name: value for name, value in usage.items() if value is not None}
        for key in ("error", "choices", "candidates", "incomplete_details"):
            if place.get(key):
                self._ends[key] = place[key]


def _last(piece: bytes, stop: int) -> int:
    """Return where the last lines begin of a piece whose last line ends before `stop`."""
    for _ in range(LAST):
        stop = piece.rfind(b"\n", 0, stop - 1) + 1
        if not stop:
            break
    return stop


def prelude(text: bytes) -> bool:
    """Tell whether a stream has said nothing yet but that it begins."""
    if not text.startswith((b"event: response.", b"event:response.")):
        return False
    names = [line[6:].strip() for line in text.split(b"\n") if line.startswith(b"event:")]
    return bool(names) and all(name in PRELUDE for name in names)
