import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder

from refold.formats._streaming.sse import LIMIT, Decoder, first_events, last_events, objects
from tests.formats.streaming.streams import CASES, IDS, encoded

EVERY = pytest.mark.parametrize(("format", "name", "events"), CASES, ids=IDS)
LINES = pytest.mark.parametrize("line", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])


def decoded(stream, *cuts):
    """The events of a stream that arrives in pieces, cut at these places."""
    decoder = Decoder()
    places = [0, *sorted(cuts), len(stream)]
    events = [event for start, stop in itertools.pairwise(places) for event in decoder.feed(stream[start:stop])]
    return events + decoder.finish()


def read(events):
    return [(event.name, event.data) for event in events if not event.comment]


@LINES
@EVERY
def test_a_stream_is_the_same_events_wherever_its_bytes_are_cut(format, name, events, line):
    stream = encoded(format, events, line, bom=True, comments=True)
    whole = decoded(stream)
    assert b"".join(event.raw for event in whole) == stream
    assert [event.json() for event in whole if not event.comment and not event.done] == events
    expected = read(whole)
    for size in (1, 2, 7, 64):
        for first in range(size):  # so that every byte is the first of a piece once
            cut = decoded(stream, *range(first, len(stream), size))
            assert read(cut) == expected
            assert b"".join(event.raw for event in cut) == stream


@LINES
def test_data_in_several_lines_is_one_json_object(line):
    format, _, events = CASES[0]
    assert [event.json() for event in decoded(encoded(format, events, line, spread=True))] == events


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n", b"\r\n\n"])
def test_an_event_is_complete_with_its_empty_line_and_does_not_wait_for_the_next(end):
    decoder = Decoder()
    (event,) = (event for byte in b"data: 1" + end for event in decoder.feed(bytes([byte])))
    assert event.data == b"1"
    assert Decoder().feed(b"data: 1" + end)[0].raw == b"data: 1" + end


@pytest.mark.parametrize(
    ("block", "name", "data", "comment"),
    [
        (b": keep-alive\n\n", "", None, True),
        (b"\n\n", "", None, True),
        (b"data\n\n", "", b"", False),
        (b"data:x\n\n", "", b"x", False),
        (b"data:  x \n\n", "", b" x ", False),
        (b"data: a\ndata:\ndata: b\n\n", "", b"a\n\nb", False),
        (b"event: a\nevent: b\ndata: x: y\n\n", "b", b"x: y", False),
        (b"id: 7\nretry: 5\n\n", "", None, False),
        (b"DATA: x\n\n", "", None, False),
        (b" data: x\n\n", "", None, False),
        (b": note\ndata: x\n\n", "", b"x", False),
        (b"\xef\xbb\xbfdata: x\n\n", "", b"x", False),
        (b"event: \xff\ndata: \xff\n\n", "\ufffd", b"\xff", False),
    ],
)
def test_the_fields_of_a_block(block, name, data, comment):
    (event,) = Decoder().feed(block)
    assert (event.raw, event.name, event.data, event.comment) == (block, name, data, comment)


def test_a_byte_order_mark_is_one_at_the_start_of_a_stream_alone():
    events = decoded(b"\xef\xbb\xbfdata: 1\n\n\xef\xbb\xbfdata: 2\n\n")
    assert [event.data for event in events] == [b"1", None]
    assert b"".join(event.raw for event in events) == b"\xef\xbb\xbfdata: 1\n\n\xef\xbb\xbfdata: 2\n\n"


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b"[DONE]", None),
        (b"[1]", None),
        (b'{"a": ', None),
        (b"\xff{}", None),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", None),
        (b'{"a": "\\ud83d"}', {"a": "\ud83d"}),  # half an emoji, whose other half may follow in the next event
        (b'{"a": "\\uD83D", "b": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", None),
        (b'{"a": "\\udc00"', None),
    ],
)
def test_data_is_a_json_object_or_nothing(data, value):
    (event,) = Decoder().feed(b"data: " + data + b"\n\n")
    assert event.json() == value
    assert event.done is (data == b"[DONE]")


def test_what_is_left_at_the_end_is_an_event_and_nothing_is_lost():
    decoder = Decoder()
    assert decoder.feed(b'data: {"a": 1}\n\ndata: {"b": 2}\n') != []
    (event,) = decoder.finish()
    assert event.json() == {"b": 2}
    assert event.raw == b'data: {"b": 2}\n'
    assert decoder.finish() == []
    assert [event.raw for event in decoded(b"data: 1\n\n\n")] == [b"data: 1\n\n", b"\n"]


@pytest.mark.parametrize("size", [1, 7, 50, 1_000])
def test_an_event_that_is_too_large_is_forwarded_but_not_read(size):
    large = b"data: " + b"x" * 300 + b"\n\n"
    stream = b"data: 1\n\n" + large + b"data: 2\n\n" + large + large + b"data: 3\n\n"
    decoder = Decoder(limit=100)
    events = []
    for at in range(0, len(stream), size):
        events += decoder.feed(stream[at : at + size])
        assert len(decoder._buffer) <= 100
    events += decoder.finish()
    assert b"".join(event.raw for event in events) == stream
    whole = [event.data for event in events if event.data is not None]
    if size <= 100:
        assert whole == [b"1", b"2", b"3"]
    assert LIMIT >= 64 * 1024 * 1024


def test_a_large_event_in_small_pieces_is_searched_once():
    piece, decoder = b"x" * 1_000, Decoder()
    decoder.feed(b"data: ")
    for _ in range(20_000):  # 20 MB: a search from the start for every piece would take minutes
        assert decoder.feed(piece) == []
    (event,) = decoder.feed(b"\n\n")
    assert len(event.data) == 20_000_000


BLOCKS = st.lists(
    st.sampled_from(
        [b"data: x", b"data:", b"data: {", b"}", b": c", b"event: e", b"id: 1", b"odd", b"\n", b"\r", b"\r\n", b"\n\n",
         b"\r\n\r\n", b"\r\r", b"data: \xc3\xa9"]
    ),
    max_size=25,
).map(b"".join)  # fmt: skip


@given(BLOCKS, st.lists(st.integers(0, 80), max_size=5))
def test_any_stream_is_read_as_the_sdk_reads_it(stream, cuts):
    events = decoded(stream, *(cut for cut in cuts if cut <= len(stream)))
    assert b"".join(event.raw for event in events) == stream
    assert read(events) == read(decoded(stream))
    ended = decoded(stream + b"\n\n")
    sdk = SSEDecoder().iter_bytes(iter([stream + b"\n\n"]))
    assert [(name, data) for name, data in read(ended) if data] == [
        (event.event or "", event.data.encode()) for event in sdk if event.data
    ]


@given(BLOCKS)
def test_either_end_of_a_buffer_is_read_as_the_whole_is(buffer):
    expected = read(decoded(buffer))
    assert read(last_events(buffer))[::-1] == expected
    assert b"".join([event.raw for event in last_events(buffer)][::-1]) == buffer
    assert list(first_events(buffer)) == Decoder().feed(buffer)


@LINES
@EVERY
def test_the_last_events_of_a_buffer_come_backward(format, name, events, line):
    stream = encoded(format, events, line, bom=True, comments=True)
    backward = [event.json() for event in last_events(bytearray(stream)) if not event.comment and not event.done]
    assert backward == events[::-1]
    assert next(last_events(stream[:-1])).data == next(last_events(stream)).data
    assert list(last_events(b"")) == []


def test_the_objects_of_a_recorded_stream():
    assert list(objects(b'data: {"a": 1}\ndata: {"cut\n: comment\n')) == [{"a": 1}]
    assert list(objects(b'event: a\ndata: {"a": 1}\nevent: b\ndata: {"b": 2}\n')) == [{"a": 1}, {"b": 2}]
    assert list(objects(b'data: {"a":\ndata: 1}\r\n\r\ndata: [DONE]\n\ndata: {}')) == [{"a": 1}, {}]
    assert list(objects('data: {"a": "x\u2028\x85 y"}\n\n'.encode())) == [{"a": "x\u2028\x85 y"}]
    assert list(objects(b"")) == []
