import asyncio
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from refold.gateway.serving import Serving
from refold.gateway.settings import Settings
from tests.gateway.wire import call, chat, raw, upstream

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def sent(body):
    data = json.dumps(body).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(data) + data


def test_a_stream_that_is_cut_is_cut_for_the_client_too():
    async def cut(reader, writer):
        writer.write(HEAD + chunk(b"data: {}\n\n"))
        await writer.drain()
        await asyncio.sleep(0.05)

    with upstream(cut) as (url, _), Serving(Settings(upstreams={"openai": url}, port=0)) as serving:
        answer = raw(serving.url, sent(chat(1, stream=True)))
    assert b"data: {}" in answer
    assert not answer.endswith(b"0\r\n\r\n"), "the client must see that the stream is not whole"
    assert b"still open" not in answer


def test_a_whole_answer_that_is_cut_is_shorter_than_it_said():
    async def cut(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        await writer.drain()

    with upstream(cut) as (url, _), Serving(Settings(upstreams={"openai": url}, port=0)) as serving:
        answer = raw(serving.url, sent(chat(1)))
    assert b"content-length: 100" in answer
    assert answer.endswith(b"\r\n\r\n{")


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 2", b"nonsense\r\n\r\n"])
def test_a_connection_that_ends_before_an_answer_is_a_502_in_the_clients_dialect(said):
    async def reset(reader, writer):
        writer.write(said)
        await writer.drain()

    with upstream(reset) as (url, _), Serving(Settings(upstreams={"openai": url}, port=0)) as serving:
        status, _, data = call(serving.url, body=chat(1))
    assert status == 502
    assert json.loads(data)["error"]["code"] == "upstream_down"


def test_a_provider_that_stalls_is_given_up():
    async def stall(reader, writer):
        await asyncio.sleep(5)

    async def midway(reader, writer):
        writer.write(HEAD + chunk(b"data: {}\n\n"))
        await writer.drain()
        await asyncio.sleep(5)

    with upstream(stall) as (url, _), Serving(Settings(upstreams={"openai": url}, port=0, timeout=0.3)) as serving:
        status, _, data = call(serving.url, body=chat(1))
        assert (status, json.loads(data)["error"]["code"]) == (504, "upstream_timeout")
    with upstream(midway) as (url, _), Serving(Settings(upstreams={"openai": url}, port=0, timeout=0.3)) as serving:
        begun = time.monotonic()
        assert b"data: {}" in raw(serving.url, sent(chat(1, stream=True)))
        assert time.monotonic() - begun < 3


@pytest.mark.parametrize("early", [True, False], ids=["before the answer", "in the answer"])
def test_a_client_that_leaves_ends_the_call_upstream(early):
    left = threading.Event()

    async def watch(reader, writer):
        if not early:
            writer.write(HEAD + chunk(b"data: {}\n\n"))
        await reader.read()  # returns when the gateway closes its side
        left.set()

    with upstream(watch) as (url, seen), Serving(Settings(upstreams={"openai": url}, port=0)) as serving:
        place = urlsplit(serving.url)
        with socket.create_connection((place.hostname, place.port)) as client:
            client.sendall(sent(chat(1, stream=True)))
            if early:
                while not seen:
                    time.sleep(0.01)
            else:
                assert b"200 OK" in client.recv(1_000)
            assert not left.is_set()
        assert left.wait(3)
