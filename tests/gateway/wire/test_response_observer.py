import json

import pytest

from refold._gateway.wire import response_observer
from refold._gateway.wire.response_observer import LAST, ROOM, ResponseObserver, usual_beginning
from refold.formats._streaming import sse
from refold.formats._streaming.accumulate import accumulator
from refold.models._usage_report import reported
from tests.formats.streaming.streams import CASES, IDS, anthropic, bare, chunk, encoded, words

STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}
CHAT = {"prompt_tokens": 9_000, "completion_tokens": 7, "total_tokens": 9_007}


def events(*data, named=False):
    return b"".join(
        (b"event: %s\n" % each["type"].encode() if named else b"") + b"data: %s\n\n" % json.dumps(each).encode()
        for each in data
    )


def delta(text="word", reason=None):
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


def read(stream, size):
    reading = ResponseObserver(STREAM)
    for at in range(0, len(stream), size):
        reading.feed(stream[at : at + size])
    return reading


SIZES = pytest.mark.parametrize("size", [7, 1_000, 10**7])
LENGTHS = pytest.mark.parametrize("length", [0, 3, 4_000], ids=["empty", "short", "long"])


@SIZES
@LENGTHS
def test_usage_at_the_end_of_a_stream_is_found_however_it_arrives(size, length):
    stream = events(*[delta()] * length, delta(reason="stop"), {"choices": [], "usage": CHAT}) + b"data: [DONE]\n\n"
    usage = read(stream, size).usage()
    assert (usage.prompt, usage.completion) == (9_000, 7)


@SIZES
@LENGTHS
def test_what_anthropic_says_at_the_start_of_a_stream_counts_with_its_end(size, length):
    said = {"input_tokens": 500, "cache_read_input_tokens": 8_000, "output_tokens": 1}
    start = {"type": "message_start", "message": {"usage": said}}
    block = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word"}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 40}}
    stream = events(start, *[block] * length, end, {"type": "message_stop"}, named=True)
    usage = read(stream, size).usage()
    assert (usage.prompt, usage.completion, usage.cached_read) == (8_500, 40, 8_000)


@SIZES
def test_the_last_of_several_reports_counts(size):
    said = [{"promptTokenCount": 100, "candidatesTokenCount": count} for count in (1, 2, 30)]
    stream = events(*({"candidates": [{"content": {}}], "usageMetadata": each} for each in said))
    assert read(stream, size).usage().completion == 30


@SIZES
def test_a_last_event_that_is_longer_than_what_is_kept_is_read_whole(size):
    output = [{"text": "x" * 3 * ROOM}]
    response = {"output": output, "usage": {"input_tokens": 12, "output_tokens": 3}}
    stream = events(*[{"type": "response.output_text.delta", "delta": "x"}] * 2_000, named=True)
    stream += events({"type": "response.completed", "response": response}, named=True)
    assert read(stream, max(size, 500)).usage().prompt == 12


@SIZES
def test_an_end_that_tells_of_a_full_window_is_seen_before_the_usage(size):
    stream = events(*[delta()] * 50, delta(reason="length"), {"choices": [], "usage": {**CHAT, "completion_tokens": 0}})
    reading = read(stream, size)
    assert reading.full(reading.usage(), 9_000)
    reading = read(stream.replace(b'"length"', b'"stop"'), size)
    assert not reading.full(reading.usage(), 9_000)


def test_an_answer_of_anthropics_that_ends_because_the_window_is_full_tells_so():
    for reason, full in (("model_context_window_exceeded", True), ("end_turn", False)):
        end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 40}}
        start = {"type": "message_start", "message": {"usage": {"input_tokens": 500}}}
        reading = read(events(start, end, {"type": "message_stop"}, named=True), 100)
        assert reading.full(reading.usage(), 9_000) is full


def test_what_is_kept_of_a_long_stream_is_its_end():
    reading = ResponseObserver(STREAM)
    for _ in range(20_000):
        reading.feed(events(delta()))
    assert len(reading.text) <= ROOM + 1_000
    assert reading.text.count(b"\n") >= LAST


def test_a_stream_without_usage_and_one_that_is_damaged_report_nothing():
    assert read(events(delta(), delta(reason="stop")) + b"data: [DONE]\n\n", 100).usage() is None
    assert read(b"data: {broken\n\ndata: \xff{\n\n", 100).usage() is None
    assert read(b"", 1).usage() is None


ODD = pytest.mark.parametrize(
    "frame",
    [{"line": "\r\n"}, {"line": "\r"}, {"bom": True}, {"comments": True}, {"spread": True}, {"line": "\r", "bom": True, "comments": True}],
    ids=["CRLF", "CR", "mark", "comments", "lines", "all"],
)  # fmt: skip


@ODD
@LENGTHS
@SIZES
def test_usage_is_found_however_a_server_frames_its_events(frame, length, size):
    stream = anthropic(words(*["word"] * length), usage={"input_tokens": 500, "cache_read_input_tokens": 8_000})
    usage = read(encoded("anthropic", stream, **frame), size).usage()
    assert (usage.prompt, usage.completion, usage.cached_read) == (8_500, 15, 8_000)
    stream = [*[chunk({"content": "word"})] * length, chunk(finish="length"), bare(usage=CHAT)]
    reading = read(encoded("openai-chat", stream, **frame), size)
    assert reading.usage().prompt == 9_000
    assert reading.body()["finish_reason"] == "length"


@pytest.mark.parametrize(("format", "name", "events"), CASES, ids=IDS)
def test_the_usage_and_the_end_of_a_stream_are_those_that_its_events_add_up_to(format, name, events):
    total = accumulator(format)
    for event in events:
        total.add(event)
    reading = read(encoded(format, events), 100)
    assert reading.usage() == (reported(total.usage) if total.usage else None)
    assert reading.body().get("error") == total.error


def test_a_deeply_nested_event_reports_nothing_and_harms_nothing():
    deep = b'data: {"usage": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n"
    stream = events(delta(reason="stop"), {"choices": [], "usage": CHAT}) + deep
    assert read(stream, 10**7).usage().prompt == 9_000
    reading = ResponseObserver({"Content-Type": "application/json"})
    reading.feed(deep[6:])
    assert reading.body() == {}
    assert reading.usage() is None


def test_of_a_stream_without_an_end_of_events_no_more_is_kept_than_of_a_body(monkeypatch):
    monkeypatch.setattr(response_observer, "LARGEST", 10 * ROOM)
    reading = read(b"data: " + b"x" * 100 * ROOM, 1_000)
    assert len(reading.text) <= 20 * ROOM
    assert reading.usage() is None


CREATED = b'event: response.created\ndata: {"type":"response.created"}\n\n'


@pytest.mark.parametrize(
    ("text", "unsaid"),
    [
        (b"", True),
        (b": waiting\n\n: waiting\r\n\r\n", True),
        (CREATED, True),
        (CREATED + b": waiting\n\nevent: response.in_progress\ndata: {}\n\n", True),
        (CREATED + b'event: response.failed\ndata: {"err', True),
        (b'data: {"error":', True),
        (b'data: {"choices":[]}\n\n', True),
        (b'data: {"choices":[],"usage":{"prompt_tokens":3}}\n\n', False),
        (b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n', True),
        (b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n', False),
        (b'data: {"choices":[{"delta":{"role":"assistant","tool_calls":[{"index":0}]}}]}\n\n', False),
        (b'data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"c2ln"}]}}]}\n\n', False),
        (b'data: {"type":"content_block_start","content_block":{"type":"tool_use","name":"ls"}}\n\n', False),
        (b': waiting\n\ndata: {"word":[]}\r\n\r\n', False),
        (b': waiting\ndata: {"word":[]}\n\n', False),
        (CREATED + b"event: response.failed\ndata: {}\n\n", False),
        (CREATED[24:], True),
        (CREATED[24:] + b'data: {"type":"response.failed"}\n\n', False),
        (b"\xef\xbb\xbf" + CREATED.replace(b"\n", b"\r"), True),
        (b"\xef\xbb\xbfdata: {}\r\r", False),
        (b"retry: 3000\n\n", True),
        (b"data: [response.\n\n", False),
        (b'data: {"type":["response.created"]}\n\n', False),
    ],
)
def test_a_stream_has_said_something_when_an_event_is_whole(text, unsaid):
    assert read(text, 10**6).unsaid is unsaid


class Arrived:
    """A response of which some bytes have arrived."""

    def __init__(self, text, status):
        self.text, self.status = text, status

    def read_nowait(self):
        text, self.text = self.text, b""
        return text

    def unread(self, data):
        self.text = data + self.text


ERROR = b'data: {"error": {"code": "context_length_exceeded"}}\n\n'


@pytest.mark.parametrize(
    ("text", "status", "headers", "usual"),
    [
        (events(delta()), 200, {}, True),
        (events(*[delta()] * 99), 200, {}, True),
        (b"", 200, {}, False),
        (events(delta())[:-1], 200, {}, False),
        (b": waiting\n\n" + events(delta()), 200, {}, False),
        (CREATED, 200, {}, False),
        (CREATED[24:], 200, {}, False),
        (ERROR, 200, {}, False),
        (events(*[delta()] * 99) + ERROR, 200, {}, False),
        (events(delta()), 429, {}, False),
        (events(delta()), 200, {"Content-Encoding": "gzip"}, False),
        (b"data: {}\n\n", 200, {"Content-Type": "application/json"}, False),
    ],
)
def test_a_stream_that_begins_as_most_do_is_told_from_all_that_may_be_a_refusal(text, status, headers, usual):
    reading, answer = ResponseObserver({**STREAM, **headers}), Arrived(text, status)
    assert usual_beginning(answer, reading) == (text if usual else None)
    assert reading.text == (text if usual else b"")
    assert answer.text == (b"" if usual else text)  # nothing is lost for who looks further


@pytest.mark.parametrize("silent", [b": waiting\n\n", events({"choices": [{"delta": {"role": "assistant"}}]})])
def test_a_stream_that_says_nothing_for_long_is_read_once_however_small_its_pieces(silent, monkeypatch):
    looked = []
    monkeypatch.setattr(
        response_observer, "first_events", lambda *given: (looked.append(event) or event for event in first(*given))
    )
    first, reading = sse.first_events, ResponseObserver(STREAM)
    for _ in range(2_000):
        for at in range(0, len(silent), 30):
            reading.feed(silent[at : at + 30])
            assert reading.unsaid
    assert len(looked) < 2 * 2_000
    reading.feed(events(delta()))
    assert not reading.unsaid
