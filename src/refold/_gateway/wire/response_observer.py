"""Reads an answer beside its way to the client: the usage it reports, and whether it is an error."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
from msgspec import Raw, Struct

from refold._gateway.server.asgi import GatewayError
from refold._gateway.wire.compression import Unreadable, unpacker
from refold.errors import UsageError
from refold.models._usage_report import UsageReport, reported
from refold.models.provider_errors import classify_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refold._gateway.upstream.connection_pool import UpstreamResponse

__all__ = ["ResponseObserver", "beginning", "refused"]

LARGEST = 64 * 1024 * 1024  # bytes of an answer that are kept to be read
ROOM = 32 * 1024  # bytes of a stream that are kept before all but its last lines are dropped
LAST = 8  # events at the end of a stream that are looked at: what ends it stands there, whatever follows it
FIRST = 3  # lines at the start of a stream that are looked at: Anthropic says there what it read
LONGEST_START = 8 * 1024  # bytes of them
GOOD = (None, "stop", "STOP", "tool_calls", "end_turn", "tool_use")  # ends that tell nothing
BRACE = ord("{")
DATA = b"\ndata:"
NOTHING = Raw()
PATIENCE = 5.0  # seconds for which a stream that has said nothing yet is kept from the client
MOST = 64 * 1024  # bytes that are read of such a stream
EDGE = 1_024  # bytes at either end of a stream's beginning in which an error would stand
REFUSED = frozenset({400, 413, 422, 429, 500, 503})  # statuses that hide a request that is too long
PRELUDE = frozenset({b"response.created", b"response.in_progress", b"response.queued"})  # events that say nothing yet
_WHOLE = re.compile(rb".*?(?:\n\n|\r\n\r\n|\r\r)", re.S)  # an event
_decode = msgspec.json.Decoder().decode


class _End(Struct):
    """Why a choice or a candidate ended."""

    finish_reason: Any = None
    finishReason: Any = None  # noqa: N815 # Gemini's name


class _Delta(Struct):
    """Why a message of Anthropic's ended."""

    stop_reason: Any = None


class _Event(Struct):
    """What of an event may matter; the rest of it is passed over."""

    usage: Any = None
    usageMetadata: Any = None  # noqa: N815 # Gemini's name
    error: Any = None
    incomplete_details: Any = None
    choices: list[_End] | None = None
    candidates: list[_End] | None = None
    message: Raw = NOTHING
    response: Raw = NOTHING
    delta: _Delta | str | None = None


_event = msgspec.json.Decoder(_Event).decode


class ResponseObserver:
    """Is shown the pieces of one answer and knows at the end what it reported.

    Of answers that are `streaming`, lines of events, the last ones are kept and read at the end, backward, until usage
    and the reason of the end are found; others are one JSON body.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.streaming = "text/event-stream" in headers.get("Content-Type", "")
        encoded = headers.get("Content-Encoding", "")
        self._unpack = unpacker(encoded) if encoded else bytes
        self._packed = bool(encoded)
        self._text = bytearray(b"\n" if self.streaming else b"")  # so that every event begins after a line's end
        self._room = ROOM if self.streaming else LARGEST
        self._start: bytearray | None = None
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

    @property
    def unsaid(self) -> bool:
        """Whether a stream has said nothing yet: comments, events that tell that it begins, a part of an event.

        False where nobody here can read it.
        """
        if self._unpack is None:
            return False
        text = self._text
        if text.startswith(DATA) and text.find(b"\n\n", 1) >= 0:
            return False
        for event in _WHOLE.finditer(text):
            lines = [line for line in bytes(event[0]).splitlines() if line and not line.startswith(b":")]
            if lines and not (lines[0].startswith(b"event:") and lines[0][6:].strip() in PRELUDE):
                return False
        return True

    def mentions(self, word: bytes, edge: int) -> bool:
        """Tell whether a word stands in so many bytes at either end of what was read."""
        return self._text.find(word, 0, edge) >= 0 or self._text.find(word, -edge) >= 0

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

    def usage(self) -> UsageReport | None:
        """Return the usage that the answer reported, if it did."""
        try:
            if self.streaming:
                self._events()
                return reported(self._usage) if self._usage else None
            body = self.body()
            return reported({key: body[key] for key in ("usage", "usageMetadata") if key in body})
        except UsageError:
            return None

    def full(self, usage: UsageReport, window: int) -> bool:
        """Tell whether the answer shows, with the usage it reported, that the window was full."""
        if usage.prompt <= window and self.streaming and not self._ends:
            return False
        return classify_response(self.body(), window).kind == "context_overflow"

    def _shorten(self) -> None:
        """Drop what need not be kept; the rest may grow to twice its size before it is looked at again."""
        if not self.streaming:
            self._unpack = None
            return
        if self._start is None:
            self._start = self._text[:LONGEST_START]
        start = len(self._text)
        for _ in range(LAST):
            start = max(self._text.rfind(DATA, 0, start), 0)
        del self._text[:start]
        self._room = max(ROOM, 2 * len(self._text))

    def _events(self) -> None:
        """Read the last events, the very last one first, and the first where these do not say everything."""
        text, stop = self._text, len(self._text)
        for _ in range(LAST):
            start = text.rfind(DATA, 0, stop)
            if start < 0:
                break
            end = text.find(b"\n", start + len(DATA), stop)
            self._read(text[start + len(DATA) : end if end >= 0 else stop])
            if self._ended and self._usage:
                return
            stop = start
        self._beginning()

    def _beginning(self) -> None:
        text = self._text if self._start is None else self._start
        if text.startswith(b"\nevent"):
            for line in text.split(b"\n", FIRST)[1:FIRST]:
                if line.startswith(b"data:"):
                    self._read(line[5:])

    def _read(self, data: bytearray) -> None:
        if BRACE not in data:  # it says that it is done
            return
        try:
            event = _event(data)
            self._take(event)
            if event.message is not NOTHING:
                self._take(_event(event.message))
            if event.response is not NOTHING:
                self._take(_event(event.response))
                self._ended = self._ended or bool(self._usage)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return

    def _take(self, event: _Event) -> None:
        """Take what an event says; what a later one said is known already, and counts."""
        usage = event.usage or event.usageMetadata
        if isinstance(usage, dict):
            usage |= {name: value for name, value in self._usage.items() if value is not None}
            self._usage = usage
        if event.error:
            self._ends.setdefault("error", event.error)
        if event.incomplete_details:
            self._ends.setdefault("incomplete_details", event.incomplete_details)
        for end in event.choices or event.candidates or ():
            if reason := end.finish_reason or end.finishReason:
                self._ended = True
                if reason not in GOOD:
                    self._ends.setdefault("finish_reason", reason)
        if isinstance(event.delta, _Delta) and event.delta.stop_reason not in GOOD:
            self._ends.setdefault("stop_reason", event.delta.stop_reason)


async def beginning(answer: UpstreamResponse, reading: ResponseObserver) -> bytes:
    """Read as much of an answer as tells whether it is a refusal for size, and return it as it came.

    A stream that has said nothing yet but that it begins may still end in an error. Of one that takes its time, what
    there is goes on, so that the client sees it live.
    """
    content = answer.content
    try:
        if answer.status in REFUSED:
            first = await content.read()
            reading.feed(first)
            return first
        if answer.status != 200 or not reading.streaming:
            return b""
        first = content.read_nowait()
        reading.feed(first)
        return first if not reading.unsaid else first + await _more(content, reading)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise GatewayError(502, f"the provider broke off ({type(error).__name__})", "upstream_down") from error


async def _more(content: aiohttp.StreamReader, reading: ResponseObserver) -> bytes:
    """Read on until a stream has said something, for no longer than anybody waits."""
    got = b""
    try:
        async with asyncio.timeout(PATIENCE) as waiting:
            while reading.unsaid and len(got) < MOST and (piece := await content.readany()):
                got += piece
                reading.feed(piece)
    except TimeoutError:
        if not waiting.expired():
            raise
    return got


def refused(answer: UpstreamResponse, reading: ResponseObserver) -> bool:
    """Tell whether an answer may be a refusal: by its status, or by an event at either end of its beginning."""
    return answer.status in REFUSED or (answer.status == 200 and reading.mentions(b"error", EDGE))
