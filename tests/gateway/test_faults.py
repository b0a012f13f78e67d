import asyncio
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from tests.gateway.scripted_upstream import call, chat, raw, upstream

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

    with upstream(cut) as (url, _), Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving:
        answer = raw(serving.url, sent(chat(1, stream=True)))
    assert b"data: {}" in answer
    assert not answer.endswith(b"0\r\n\r\n"), "the client must see that the stream is not whole"
    assert b"still open" not in answer


def test_a_whole_answer_that_is_cut_is_shorter_than_it_said():
    async def cut(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        await writer.drain()

    with upstream(cut) as (url, _), Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving:
        answer = raw(serving.url, sent(chat(1)))
    assert b"content-length: 100" in answer
    assert answer.endswith(b"\r\n\r\n{")


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 2", b"nonsense\r\n\r\n"])
def test_a_connection_that_ends_before_an_answer_is_a_502_in_the_clients_dialect(said):
    async def reset(reader, writer):
        writer.write(said)
        await writer.drain()

    with upstream(reset) as (url, _), Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving:
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

    with (
        upstream(stall) as (url, _),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, timeout=0.3)) as serving,
    ):
        status, _, data = call(serving.url, body=chat(1))
        assert (status, json.loads(data)["error"]["code"]) == (504, "upstream_timeout")
    with (
        upstream(midway) as (url, _),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, timeout=0.3)) as serving,
    ):
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

    with upstream(watch) as (url, seen), Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving:
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


@pytest.mark.parametrize(("path", "said"), [
    ("/v1/chat/completions", lambda body: body["error"]["code"]), ("/v1/messages", lambda body: body["error"]["type"]),
    ("/v1beta/models/m:generateContent", lambda body: body["error"]["status"]),
])  # fmt: skip
def test_a_fault_of_the_gateway_is_an_error_in_the_clients_dialect(gateway, monkeypatch, path, said):
    serving, provider = gateway()

    async def faulty(*_):
        raise KeyError("private words")

    monkeypatch.setattr(serving.gateway._exchanges, "run", faulty)
    status, headers, data = call(serving.url, path=path, body=chat(1))
    assert (status, headers["x-refold-reason"]) == (500, "internal")
    assert said(json.loads(data)) in ("internal", "api_error", "INTERNAL")
    assert b"KeyError" in data
    assert b"private" not in data
    assert b'code="internal"' in call(serving.url, "GET", "/metrics")[2]
    assert not provider.received


def test_a_fault_in_the_middle_of_an_answer_ends_it(gateway, monkeypatch):
    serving, _ = gateway()

    async def faulty(_, send, *__):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise KeyError

    monkeypatch.setattr(serving.gateway._exchanges, "run", faulty)
    found = raw(serving.url, sent(chat(1)))
    assert b"half" in found
    assert b"0\r\n\r\n" not in found
    assert b"still open" not in found


def test_a_store_that_fails_beside_the_traffic_is_counted_and_nothing_else(gateway, monkeypatch, caplog):
    from contextlib import asynccontextmanager

    from refold.errors import StoreError

    serving, provider = gateway(window=18_000)

    @asynccontextmanager
    async def failing(_):
        raise StoreError("down")
        yield

    monkeypatch.setattr(serving.gateway._keeper, "lease", failing)
    body = chat(9, max_tokens=100)
    assert call(serving.url, body=body)[1]["x-refold-reason"] == "background"
    end = time.monotonic() + 5
    while b'refold_compaction_failures_total{reason="store"} 1.0' not in call(serving.url, "GET", "/metrics")[2]:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert provider.received[0].body == body
    serving.stop()
    assert {record.message for record in caplog.records} <= {"compaction failed"}, "without words of the request"
