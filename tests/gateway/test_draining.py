"""A gateway that is told to end: requests that run are answered, no others are taken."""

import asyncio
import http.client
import json
import signal
import threading
import time
from urllib.parse import urlsplit

import pytest

from tests.gateway.scripted_upstream import call, chat, raw, upstream
from tests.gateway.serving_process import serving

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def streaming(seconds, begun):
    """An upstream that sends an event every fifth of a second, and the end after so many seconds."""

    async def answer(reader, writer):
        writer.write(HEAD)
        for number in range(int(seconds * 5)):
            data = b'data: {"choices":[{"delta":{"content":"word%d "}}]}\n\n' % number
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
            begun.set()
            await asyncio.sleep(0.2)
        end = b"data: [DONE]\n\n"
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(end), end))
        await writer.drain()

    return answer


def streamed(url):
    """Send one request, and return a thread that reads its stream, with the list that the stream comes into."""
    data = json.dumps(chat(1, stream=True)).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    streams = []
    thread = threading.Thread(target=lambda: streams.append(raw(url, head % len(data) + data, 30)))
    thread.start()
    return thread, streams


def test_after_sigterm_streams_end_as_they_should_and_new_requests_are_refused_cleanly():
    begun = threading.Event()
    with upstream(streaming(7, begun)) as (url, seen), serving(f"{url}/v1") as (process, address):
        place = urlsplit(address)
        idle = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
        idle.request("GET", "/livez")
        assert idle.getresponse().read()
        assert call(address, "GET", "/readyz")[0] == 200
        thread, streams = streamed(address)
        assert begun.wait(10)
        told = time.monotonic()
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert call(address, "GET", "/readyz")[0] == 503
        assert call(address, "GET", "/livez")[0] == 200
        for one in range(2):  # on a new connection, and on one that was there
            if one:
                idle.request("POST", "/v1/chat/completions", json.dumps(chat(1)))
                answer = idle.getresponse()
                status, headers, data = answer.status, dict(answer.getheaders()), answer.read()
            else:
                status, headers, data = call(address, body=chat(1))
            assert (status, headers["connection"], headers["retry-after"]) == (503, "close", "1")
            assert json.loads(data)["error"]["code"] == "draining"
        thread.join()
        process.wait(10)
        assert 5 < time.monotonic() - told < 12, "streams of more than five seconds were cut"
    assert streams[0].count(b"word") == 35
    assert streams[0].endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert len(seen) == 1


def test_a_stream_that_outlasts_its_time_is_cut_and_the_gateway_ends():
    begun = threading.Event()
    with upstream(streaming(20, begun)) as (url, _), serving(f"{url}/v1", "--drain-timeout", "1") as (process, address):
        thread, streams = streamed(address)
        assert begun.wait(10)
        told = time.monotonic()
        process.send_signal(signal.SIGTERM)
        thread.join()
        process.wait(10)
        assert 1 <= time.monotonic() - told < 6
    assert b"word" in streams[0]
    assert b"[DONE]" not in streams[0]
    assert not streams[0].endswith(b"0\r\n\r\n"), "the client sees that the stream is not whole"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_gateway_without_requests_ends_at_once(number):
    with serving("http://127.0.0.1:9/v1") as (process, _):
        process.send_signal(number)
        begun = time.monotonic()
        process.wait(10)
    assert time.monotonic() - begun < 4
