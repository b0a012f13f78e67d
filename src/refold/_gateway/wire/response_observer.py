"""Observes a response while it is forwarded: the usage it reports, why it ended, and whether it is an error.

A stream is not decoded event by event, which would cost more than forwarding it: its bytes are buffered, all but the
last events and the very first ones are dropped now and then, and these are read once, at the end. What they report is
what the accumulators of `refold.formats._streaming` make of all events; a test compares the two.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from refold._gateway.upstream.response import UpstreamAborted
from refold._gateway.wire.compression import Unreadable, decompressor
from refold.core._json import Json, listing, mapping, string
from refold.errors import UsageError
from refold.formats._streaming.openai_responses import BEGINNING
from refold.formats._streaming.sse import Event, first_events, last_events
from refold.models._usage_report import UsageReport, reported
from refold.models.provider_errors import classify_response

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refold._gateway.upstream.response import UpstreamResponse

__all__ = ["EDGE", "ResponseObserver", "beginning", "refused", "usual_beginning"]

LARGEST = 64 * 1024 * 1024  # bytes of an answer that are kept to be read
ROOM = 32 * 1024  # bytes of a stream that are kept before all but its last events are dropped
PLAIN = 5  # events at the end of a stream that are looked at first
LAST = 8  # events at the end of a stream that are read: usage and the reason of the end are there, whatever follows
FIRST = 2  # events at the start of a stream that are read: Anthropic reports there what the prompt took
LONGEST_START = 8 * 1024  # bytes of them
GOOD = (None, "stop", "STOP", "tool_calls", "end_turn", "tool_use")  # ends that tell nothing
ENVELOPE = frozenset({"type", "object", "sequence_number"})  # fields of an event that is an error itself
BRACE, CR, LF = b"{\r\n"
NOTHING = Raw()
PATIENCE = 5.0  # seconds for which an answer that has said nothing yet is kept from the client
MOST = 512 * 1024  # bytes that are read of such an answer: two events repeat the instructions and tools of the request
QUIET = frozenset({*BEGINNING, "message_start", "ping", "keepalive"})  # events after which it has still said nothing
OPENING = frozenset({"content_block_start", "response.output_item.added", "response.content_part.added"})
EMPTY = frozenset({"text", "message", "output_text"})  # types of what these open, and later events fill
LONGEST_SILENT = 4 * 1024  # bytes of an event that may have no content; Azure's of its filters has 700
# a body of status 200 that is no answer, or none yet: some servers send spaces until they have one
NO_ANSWER = re.compile(rb'\s*(?:\[?\s*\{\s*"(?:error"|(?:type|object)"\s*:\s*"error").*)?', re.DOTALL)
RESPONSE = b'"resp_'  # the id of a response of OpenAI's begins so
FAILED = re.compile(rb'"status"\s*:\s*"failed"')  # a response that is whole and no answer
TEXT = re.compile(rb'"(?:content|text)"\s*:\s*"[^"]')  # what the events of most streams begin to say
NAMED = re.compile(rb"event: [^\r\n]*\n")
EDGE = 1_024  # bytes at either end of a stream's beginning in which an error would stand
REFUSED = frozenset({400, 413, 422, 429, 500, 503})  # statuses that hide a request that is too long
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

    type: Any = None
    object: Any = None
    usage: Any = None
    usageMetadata: Any = None  # noqa: N815 # Gemini's name
    error: Any = None
    incomplete_details: Any = None
    choices: list[_End] | None = None
    candidates: list[_End] | None = None
    message: Raw = NOTHING
    response: Raw = NOTHING
    delta: _Delta | str | None = None


class _Typed(Struct):
    """The name of a long event that bears it in its data alone."""

    type: str | None = None


_event = msgspec.json.Decoder(_Event).decode
_typed = msgspec.json.Decoder(_Typed).decode


class ResponseObserver:
    """Takes the pieces of one response and returns at the end what it reported.

    Of responses that are `streaming` the last events are read, backward, until usage and the reason of the end are
    known; others are one JSON body.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.streaming = "text/event-stream" in headers.get("Content-Type", "")
        encoded = headers.get("Content-Encoding", "")
        self._decompress = decompressor(encoded) or _nothing if encoded else None
        self._text = bytearray()
        self._room = ROOM if self.streaming else LARGEST
        self._start: bytearray | None = None
        self._silent = 0  # bytes of the text in events that are known to have no content
        self._ended = False  # whether the reason of the end was read
        self._begins = False  # whether the rest of the usage is at the start, as in Anthropic's streams
        self._usage: Json = {}
        self._ends: Json = {}

    def feed(self, piece: bytes) -> None:
        """Take a piece of the answer as it came from upstream."""
        if self._decompress is not None:
            try:
                piece = self._decompress(piece)
            except Unreadable:
                self._decompress, piece = _nothing, b""
        text = self._text
        text += piece
        if len(text) > self._room:
            self._shorten()

    @property
    def plain_stream(self) -> bool:
        """Whether the response is a stream that is not compressed."""
        return self.streaming and self._decompress is None

    @property
    def text(self) -> bytes:
        """The body of an answer that is not a stream."""
        return bytes(self._text)

    @property
    def unsaid(self) -> bool:
        """Whether an answer has said nothing yet: comments, events without content, a part of an event.

        A body that is no stream has said nothing as long as it is spaces or an error; a response of OpenAI's until its
        end, since it may say anywhere that it failed. False where nobody here can read it.
        """
        if self._decompress is _nothing:
            return False
        text = self._text
        if not self.streaming:
            return text.find(RESPONSE, 0, EDGE) >= 0 or NO_ANSWER.fullmatch(text) is not None
        for event in first_events(text, self._silent):
            if event.data is not None and not _is_silent(event.data, event.name):
                return False
            self._silent += len(event.raw)
        return True

    @property
    def failed(self) -> bool:
        """Whether a body that is no stream may be an error or a response that failed."""
        if NO_ANSWER.fullmatch(self._text) is not None:
            return self.mentions(b"error", EDGE)
        return FAILED.search(self._text) is not None

    def mentions(self, word: bytes, edge: int) -> bool:
        """Tell whether a word stands in so many bytes at either end of what was read."""
        return self._text.find(word, 0, edge) >= 0 or self._text.find(word, -edge) >= 0

    def body(self) -> Json:
        """Return what the answer says of itself: usage, error and reason of its end."""
        if self.streaming:
            self._events()
            return {**self._ends, **({"usage": self._usage} if self._usage else {})}
        try:
            body = _decode(self._text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        if isinstance(body, list):  # Gemini streams a list where no events were asked for
            body = body[-1] if body else {}
        body = mapping(body)
        if not body.get("error") and "error" in (body.get("type"), body.get("object")):
            return {"error": body}
        return body

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
        if not self.streaming or len(self._text) > LARGEST:
            self._decompress = _nothing
            return
        if self._start is None:
            self._start = self._text[:LONGEST_START]
        count, start = 0, len(self._text)
        for event in last_events(self._text):
            start -= len(event.raw)
            count += event.data is not None
            if count == LAST:
                break
        del self._text[:start]
        self._silent = 0
        self._room = max(ROOM, 2 * len(self._text))

    def _events(self) -> None:
        """Read the last events, the very last one first, and the first ones where these do not say everything."""
        if not self._plain_end():
            count = 0
            for event in last_events(self._text):
                if event.data is None:
                    continue
                count += 1
                self._read(event.data, event.name)
                if count == LAST or (self._ended and self._usage):
                    break
        if self._ended and self._usage and not self._begins:
            return
        start = self._text if self._start is None else self._start
        for event in islice(_with_data(first_events(start)), FIRST):
            self._read(event.data or b"", event.name)
            if event.name == "message_start":
                break

    def _plain_end(self) -> bool:
        """Read the last events where each is a line of data, after its name or alone; tell whether that was all.

        Nearly all streams end so, and each request waits for this.
        """
        for block in reversed(self._text.rsplit(b"\n\n", PLAIN)[1:]):
            name, _, data = block.partition(b"data: ")
            if not data or CR in block or LF in data or not (not name or NAMED.fullmatch(name)):
                if not block:
                    continue
                return False
            self._read(data, "error" if name == b"event: error\n" else "")
            if self._ended and self._usage:
                return True
        return False

    def _read(self, data: bytes | bytearray, name: str) -> None:
        if BRACE not in data and name != "error":  # it says that it is done
            return
        try:
            event = _event(data)
            self._take(event)
            if not event.error and "error" in (name, event.type, event.object):
                fields = mapping(_decode(data)).items()
                self._ends.setdefault("error", {key: value for key, value in fields if key not in ENVELOPE})
            if event.message is not NOTHING:
                self._take(_event(event.message))
            if event.response is not NOTHING:
                self._take(_event(event.response))
                self._ended = self._ended or bool(self._usage)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if name == "error":  # some servers send words alone
                self._ends.setdefault("error", {"message": bytes(data).decode("utf-8", "replace")})

    def _take(self, event: _Event) -> None:
        """Take what an event says; what a later one said is known already, and counts."""
        usage = event.usage or event.usageMetadata
        if isinstance(usage, dict):
            if self._usage:
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
        if isinstance(event.delta, _Delta) and event.delta.stop_reason is not None:
            self._ended = self._begins = True
            if event.delta.stop_reason not in GOOD:
                self._ends.setdefault("stop_reason", event.delta.stop_reason)


def _nothing(piece: bytes) -> bytes:
    """Read no more: the encoding is one that nobody here knows, or there is too much."""
    return b""


def _with_data(events: Iterator[Event]) -> Iterator[Event]:
    return (event for event in events if event.data is not None)


def _is_silent(data: bytes, name: str = "") -> bool:
    """Tell whether an event has no content: it says that an answer begins, and by whom, or opens an empty part."""
    if name in QUIET:
        return True
    try:
        if len(data) > LONGEST_SILENT:
            return not name and _typed(data).type in QUIET
        fields = mapping(_decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    kind = name or string(fields, "type")
    if kind in QUIET:
        return True
    match fields:
        case {"error": error} if error:
            return False
        case {"choices": list() as choices}:
            return not (fields.get("usage") or any(map(_has_content, choices)))
        case {"candidates": list() as candidates}:
            return not any(map(_has_content, candidates))
        case {"content_block": block} | {"item": block} | {"part": block} if kind in OPENING:
            opened = mapping(block)
            return opened.get("type") in EMPTY and not (opened.get("text") or opened.get("content"))
    return False


def _has_content(choice: object) -> bool:
    """Tell whether a choice or a candidate of an event has text or anything else, or its end."""
    match choice:
        case {"delta": dict() as delta}:
            values: list[Any] = [value for key, value in delta.items() if key != "role"]
        case {"content": dict() as content}:
            parts = [mapping(part) for part in listing(content.get("parts"))]
            values = [part for part in parts if part.keys() - {"text", "thought"} or part.get("text")]
        case _:
            return True
    return any(values) or any(mapping(choice).get(name) for name in ("finish_reason", "finishReason"))


def usual_beginning(answer: UpstreamResponse, reading: ResponseObserver) -> bytes | None:
    """Return what has arrived of a stream that has begun as most do, with text and no error; None of any other answer.

    Nothing is read of the others, of which `beginning` and `refused` tell more.
    """
    if answer.status != 200 or not reading.plain_stream:
        return None
    try:
        first = answer.read_nowait()
    except UpstreamAborted as aborted:
        raise aborted.refusal() from aborted
    if (
        first.startswith(b"data:")
        and b"\n\n" in first
        and first.find(b"response.", 0, EDGE) < 0
        and first.find(b"error", 0, EDGE) < 0
        and first.find(b"error", -EDGE) < 0
        and TEXT.search(first)
    ):
        reading.feed(first)
        return first
    answer.unread(first)
    return None


async def beginning(answer: UpstreamResponse, reading: ResponseObserver) -> bytes:
    """Read as much of an answer as tells whether it is a refusal for size, and return it as it came.

    An answer that has said nothing yet may still end in an error. Of one that takes its time, what there is goes on, so
    that the client sees it live.
    """
    try:
        if answer.status in REFUSED:
            first = await answer.read()
            reading.feed(first)
            return first
        if answer.status != 200:
            return b""
        first = answer.read_nowait()
        reading.feed(first)
        return first if not reading.unsaid else first + await _more(answer, reading)
    except UpstreamAborted as aborted:
        raise aborted.refusal() from aborted


async def _more(answer: UpstreamResponse, reading: ResponseObserver) -> bytes:
    """Read on until an answer has said something, for no longer than anybody waits."""
    got = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while reading.unsaid and len(got) < MOST and (piece := await answer.read_any()):
                got += piece
                reading.feed(piece)
    return got


def refused(answer: UpstreamResponse, reading: ResponseObserver) -> bool:
    """Tell whether an answer may be a refusal: by its status, or by an error at either end of its beginning."""
    if answer.status in REFUSED:
        return True
    if answer.status != 200:
        return False
    return reading.mentions(b"error", EDGE) if reading.streaming else reading.failed
