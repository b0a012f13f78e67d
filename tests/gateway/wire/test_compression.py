import gzip
import json
import random
import sys
import zlib

import brotli
import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold._gateway.wire.compression import (
    FREE,
    MOST_TIMES,
    READABLE,
    STEP,
    TooLong,
    Unreadable,
    decompressor,
    whole,
)
from tests.gateway.scripted_upstream import ADMIN, call, chat, upstream

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: %s\r\ntransfer-encoding: chunked\r\n\r\n"
)
BITS = {b"gzip": 31, b"deflate": 15, b"bare": -15}
KINDS = [*BITS, b"br", b"zstd", b"frames"]  # frames: of zstd, one for each event
NAMES = {b"bare": b"deflate", b"frames": b"zstd"}
TOO_LONG = "Your input exceeds the context window of this model. Please adjust your input and try again."


def event(data):
    return b"event: %s\ndata: %s\n\n" % (data["type"].encode(), json.dumps(data).encode())


BEGUN = [event({"type": f"response.{name}", "response": {"id": "r"}}) for name in ("created", "in_progress")]
ERROR = {"type": "error", "error": {"type": "invalid_request_error", "code": "context_length_exceeded"}}
OVERFLOW = [*BEGUN, event({**ERROR, "error": {**ERROR["error"], "message": TOO_LONG}})]
USED = {"input_tokens": 3_210, "output_tokens": 5, "total_tokens": 3_215}
ANSWER = [*BEGUN, event({"type": "response.completed", "response": {"id": "r", "output": [], "usage": USED}})]


def packed(events, encoding):
    if encoding == b"frames":
        return [zstd.compress(each) for each in events]
    if encoding == b"zstd":
        frame = zstd.ZstdCompressor()
        return [*(frame.compress(each, frame.FLUSH_BLOCK) for each in events), frame.flush()]
    if encoding == b"br":
        stream = brotli.Compressor()
        return [*(stream.process(each) + stream.flush() for each in events), stream.finish()]
    machine = zlib.compressobj(9, zlib.DEFLATED, BITS[encoding])
    pieces = [machine.compress(b"") + machine.flush(zlib.Z_SYNC_FLUSH)]
    pieces += [machine.compress(each) + machine.flush(zlib.Z_SYNC_FLUSH) for each in events]
    return [*pieces, machine.flush()]


def decompressed(data, encoding):
    if encoding == b"frames":
        return zstd.decompress(data)
    return whole(data, encoding.decode(), 1_000_000) if encoding not in BITS else zlib.decompress(data, BITS[encoding])


def responses(count):
    body = chat(count, stream=True)
    items = []
    for message in body.pop("messages")[1:]:
        calls, text = message.get("tool_calls") or (), message["content"]
        items += [{"type": "function_call", "call_id": asked["id"], **asked["function"]} for asked in calls]
        if message["role"] == "tool":
            items.append({"type": "function_call_output", "call_id": message["tool_call_id"], "output": text})
        elif text:
            items.append({"role": message["role"], "content": text})
    return {**body, "input": items}


@pytest.mark.parametrize("encoding", KINDS)
def test_an_overflow_early_in_a_compressed_stream_is_answered_by_a_shorter_request(encoding):
    answers = [OVERFLOW, ANSWER]

    async def answer(reader, writer):
        writer.write(HEAD % NAMES.get(encoding, encoding))
        for piece in packed(answers.pop(0), encoding):
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    with (
        upstream(answer) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, admin_token=ADMIN)) as serving,
    ):
        headers = {"accept-encoding": "gzip, deflate, br, zstd, snappy"}
        status, told, data = call(serving.url, path="/v1/responses", body=responses(12), headers=headers)
        figures = call(serving.url, "GET", "/metrics")[2].decode()
    assert (status, told["x-refold-done"]) == (200, "recovered"), told
    assert decompressed(data, encoding) == b"".join(ANSWER)
    assert len(seen[1][1]) < len(seen[0][1])
    assert b"accept-encoding: gzip, deflate, br, zstd\r\n" in seen[0][0].lower(), "what can be read here is asked for"
    assert 'refold_tokens_total{kind="input"} 3210.0' in figures


def test_a_compressed_stream_that_says_something_else_goes_on_as_it_came():
    pieces = packed(ANSWER, b"gzip")

    async def answer(reader, writer):
        writer.write(HEAD % b"gzip")
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    with upstream(answer) as (url, seen), Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving:
        status, told, data = call(serving.url, path="/v1/responses", body=responses(3))
    assert (status, told["x-refold-done"], told["content-encoding"], len(seen)) == (200, "forwarded", "gzip", 1)
    assert data == b"".join(pieces)


def test_what_cannot_be_decompressed_goes_to_the_client_as_it_is():
    async def answer(reader, writer):
        writer.write(HEAD % b"gzip" + b"5\r\nhello\r\n0\r\n\r\n")
        await writer.drain()

    with upstream(answer) as (url, _), Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving:
        assert call(serving.url, path="/v1/responses", body=responses(3))[2] == b"hello"
    assert decompressor("snappy") is None
    with pytest.raises(Unreadable):
        decompressor("gzip")(b"hello")
    decompress, text = decompressor("gzip"), bytes(range(256)) * 40
    assert b"".join(decompress(bytes([byte])) for byte in gzip.compress(text)) == text
    machine = zlib.compressobj(9, zlib.DEFLATED, -15)
    decompress = decompressor("deflate")
    bare = machine.compress(text) + machine.flush()
    assert b"".join(decompress(bytes([byte])) for byte in bare) == text
    for pack in (zstd.compress, brotli.compress):
        decompress, once = decompressor("zstd" if pack is zstd.compress else "br"), pack(text)
        assert b"".join(decompress(once[at : at + 7]) for at in range(0, len(once), 7)) == text
        with pytest.raises(Unreadable):
            decompressor("zstd" if pack is zstd.compress else "br")(b"hello, this is neither")


PACK = {
    "gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress, "x-gzip": gzip.compress
}  # fmt: skip


@pytest.mark.parametrize("encoding", PACK)
def test_a_request_that_is_compressed_is_read_and_goes_on_as_it_came_or_is_compacted_plain(encoding):
    ok = json.dumps({"choices": [{"message": {"role": "assistant", "content": "ok"}}]}).encode()

    def answer(head, body):
        return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(ok), ok)

    small, large = (PACK[encoding](json.dumps(chat(count)).encode()) for count in (1, 12))
    headers = {"content-encoding": encoding}
    with (
        upstream(answer) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, window=16_000)) as serving,
    ):
        assert call(serving.url, body=small, headers=headers)[1]["x-refold-done"] == "forwarded"
        assert call(serving.url, body=large, headers=headers)[1]["x-refold-done"] == "compacted"
    assert seen[0][1] == small
    assert b"content-encoding" not in seen[1][0].lower()
    assert len(json.loads(seen[1][1])["messages"]) > 1


@pytest.mark.parametrize("encoding", PACK)
def test_a_request_that_is_decompressed_to_too_much_or_not_to_its_end_is_not_read(encoding):
    packed = PACK[encoding](b" " * 1_000_000)
    assert whole(packed, encoding, 1_000_000) == b" " * 1_000_000
    with pytest.raises(TooLong):
        whole(packed, encoding, 999_999)
    for damaged in (packed[:-1], packed + b"more", b"hello"):
        with pytest.raises(Unreadable):
            whole(damaged, encoding, 2_000_000)


def test_what_is_asked_for_is_what_can_be_read():
    assert READABLE == ("gzip", "deflate", "br", "zstd")
    assert all(decompressor(name) is not None for name in READABLE)


LIMIT = 64 * 1024 * 1024
CODES = ["gzip", "deflate", "br", "zstd"]


def compressed(data, encoding):
    match encoding:
        case "gzip":
            return gzip.compress(data)
        case "deflate":
            return zlib.compress(data)
        case "br":
            return brotli.compress(data, quality=5)
        case _:
            return zstd.compress(data)


@pytest.mark.parametrize("encoding", CODES)
def test_a_body_of_any_size_is_decompressed_in_steps_and_whole(encoding):
    numbers = random.Random(1)
    for size in (0, 1, STEP - 1, STEP, STEP + 1, 3 * STEP, 5 * STEP + 7):
        data = numbers.randbytes(size // 2).hex().encode()
        packed = compressed(data, encoding)
        assert whole(packed, encoding, LIMIT) == data
        for broken in (packed[:-1], packed + b"x"):
            with pytest.raises(Unreadable):
                whole(broken, encoding, LIMIT)


@pytest.mark.parametrize("encoding", CODES)
def test_what_grows_out_of_proportion_or_begins_with_nothing_is_given_up_early(encoding):
    bomb = compressed(b'{"messages":"' + b" " * 40_000_000 + b'"}', encoding)
    with pytest.raises(TooLong) as error:
        whole(bomb, encoding, LIMIT)
    assert error.value.limit == FREE
    with pytest.raises(Unreadable, match="blank"):
        whole(compressed(b" " * 40_000_000, encoding), encoding, LIMIT)


def test_a_large_body_may_grow_as_much_as_text_does():
    numbers = random.Random(1)
    data = b"".join([numbers.randbytes(40_000).hex().encode() * 8 for _ in range(27)])  # of which each part repeats
    packed = zstd.compress(data)
    assert FREE < len(data) < MOST_TIMES * len(packed)
    assert whole(packed, "zstd", LIMIT) == data


def test_a_body_that_grows_out_of_proportion_is_refused_with_what_helps(gateway):
    serving, provider = gateway()
    bomb = gzip.compress(b'{"messages":"' + b" " * 40_000_000 + b'"}')
    status, _, answer = call(serving.url, body=bomb, headers={"content-encoding": "gzip"})
    assert status == 413
    assert "send it uncompressed" in answer.decode()
    assert not provider.received
