import contextlib
import gzip
import json
import re
import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from refold._gateway.server import asgi, connection
from refold._gateway.server.serving import Serving
from refold._gateway.server.tokens import TokenFile
from refold._gateway.settings import GatewaySettings
from tests.gateway.scripted_upstream import ADMIN, call, chat, raw, upstream, whole

ROOM = 130_000
BODY = json.dumps(chat(20)).encode()  # of which there is room for one of a client
PATHS = {
    "openai": ("/v1/chat/completions", "server_error"), "anthropic": ("/v1/messages", "api_error"),
    "gemini": ("/v1beta/models/gemini-2.5-pro:generateContent", "UNAVAILABLE"),
}  # fmt: skip


@contextlib.contextmanager
def working(provider="openai", **settings):
    """A gateway that has room for one body and works on a request with it until `go_on` is set."""
    begun, go_on = threading.Event(), threading.Event()

    def answer(head, body):
        begun.set()
        go_on.wait(30)
        return whole(b"{}")

    settings = {"port": 0, "body_memory": ROOM, "admin_token": ADMIN, **settings}
    with (
        upstream(answer) as (url, _),
        Serving(GatewaySettings(upstreams={provider: url}, **settings)) as serving,
        ThreadPoolExecutor(1) as clients,
    ):
        first = clients.submit(call, serving.url, path=PATHS[provider][0], body=BODY)
        try:
            assert begun.wait(10)
            yield serving.url, first, go_on
        finally:
            go_on.set()


def body_bytes(url):
    return float(re.search(rb"\nrefold_body_bytes (\S+)", call(url, "GET", "/metrics")[2])[1])


def until_released(url):
    deadline = time.monotonic() + 10
    while body_bytes(url) and time.monotonic() < deadline:
        time.sleep(0.02)
    return body_bytes(url)


@pytest.mark.parametrize("provider", PATHS)
def test_a_body_for_which_there_is_no_room_gets_503_in_the_clients_dialect_until_there_is(provider):
    path, kind = PATHS[provider]
    with working(provider) as (url, first, go_on):
        assert body_bytes(url) == len(BODY)
        status, headers, data = call(url, path=path, body=BODY)
        assert (status, headers["retry-after"], headers["x-refold-reason"]) == (503, "2", "overloaded")
        error = json.loads(data)["error"]
        assert kind in (error.get("type"), error.get("status"))
        assert "130,000" in error["message"]
        go_on.set()
        assert first.result()[0] == 200
        assert until_released(url) == 0
        assert call(url, path=path, body=BODY)[0] == 200


def test_a_small_body_passes_beside_one_that_fills_nearly_all_room():
    with working() as (url, _, go_on), ThreadPoolExecutor(1) as clients:
        second = clients.submit(call, url, body=chat(1))
        time.sleep(0.2)
        go_on.set()
        assert second.result()[0] == 200


def test_a_body_that_is_alone_may_be_larger_than_all_room():
    with working(body_memory=1_000) as (url, first, go_on):
        go_on.set()
        assert first.result()[0] == 200
        assert until_released(url) == 0


def test_what_a_body_grows_to_counts_as_well():
    packed = gzip.compress(BODY)
    with working(body_memory=len(BODY) + 2 * len(packed)) as (url, _, _):
        assert call(url, body=packed, headers={"content-encoding": "gzip"})[0] == 503


def test_a_body_behind_a_head_that_is_repeated_counts_as_well():
    begun, go_on = threading.Event(), threading.Event()

    def answer(head, body):
        if body == larger:
            begun.set()
            go_on.wait(30)
        return whole(b"{}")

    small, larger = b"{}", b"1" * 5_000
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n"
    with upstream(answer) as (provider, _):
        settings = GatewaySettings(upstreams={"openai": provider}, port=0, body_memory=ROOM, admin_token=ADMIN)
        with Serving(settings) as serving, ThreadPoolExecutor(1) as clients:
            requests = b"".join(head % len(body) + body for body in (small, larger))
            done = clients.submit(raw, serving.url, requests, 2)
            try:
                assert begun.wait(10)
                assert body_bytes(serving.url) == len(larger)
            finally:
                go_on.set()
            assert done.result().count(b"HTTP/1.1 200") == 2
            assert until_released(serving.url) == 0


def test_a_body_that_is_announced_and_does_not_come_takes_no_room():
    with upstream(lambda head, body: whole(b"{}")) as (provider, _):
        settings = GatewaySettings(upstreams={"openai": provider}, port=0, body_memory=ROOM, admin_token=ADMIN)
        with Serving(settings) as serving:
            parts = urlsplit(serving.url)
            with socket.create_connection((parts.hostname, parts.port)) as client:
                head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {parts.netloc}\r\ncontent-length: {ROOM}\r\n\r\n"
                client.sendall(head.encode() + b" " * 1_000)
                time.sleep(0.2)
                assert call(serving.url, body=BODY)[0] == 200
            assert until_released(serving.url) == 0  # also what had arrived of a body whose client has left


@contextlib.contextmanager
def crowded(provider=None, clients=10, part=20_000, **settings):
    """A gateway, and the connections of clients that have sent a part of a body."""
    with contextlib.ExitStack() as stack:
        if provider is None:
            provider, _ = stack.enter_context(upstream(lambda head, body: whole(b"{}")))
        settings = {"port": 0, "body_memory": ROOM, "admin_token": ADMIN, **settings}
        serving = stack.enter_context(Serving(GatewaySettings(upstreams={"openai": provider}, **settings)))
        yield serving.url, [stack.enter_context(started(serving.url, part)) for _ in range(clients)]


def started(url, part, token="", length=10 * ROOM):
    """A connection on which the beginning of a long body was sent."""
    parts = urlsplit(url)
    client = socket.create_connection((parts.hostname, parts.port))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {parts.netloc}\r\n"
    head += f"x-refold-token: {token}\r\n" if token else ""
    client.sendall(f"{head}content-length: {length}\r\n\r\n".encode() + b" " * part)
    return client


def answered(client, seconds=5.0):
    """What a client has got, nothing where nothing has come."""
    return client.recv(65_536) if select.select([client], [], [], seconds)[0] else b""


def test_bodies_that_stop_arriving_give_their_room_to_others(monkeypatch):
    monkeypatch.setattr(asgi, "SILENCE", 0.3)
    with crowded() as (url, slow):
        time.sleep(0.5)
        assert 0 < body_bytes(url) < ROOM
        assert call(url, body=BODY)[0] == 200
        answers = [answered(client, 0.2)[:12] for client in slow]
        assert b"HTTP/1.1 408" in answers
        assert set(answers) <= {b"HTTP/1.1 408", b"HTTP/1.1 503", b""}


def test_a_body_that_keeps_arriving_is_not_ended_for_others(monkeypatch):
    monkeypatch.setattr(asgi, "SILENCE", 0.5)
    with crowded(clients=1, part=80_000) as (url, (steady,)):
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            steady.sendall(b" " * 500)
            time.sleep(0.01)
        assert call(url, body=BODY)[0] == 503
        steady.sendall(b" " * 10)
        assert answered(steady, 0.1) == b""


def test_the_bodies_of_one_token_leave_room_for_another(tmp_path):
    file = TokenFile(tmp_path / "tokens.jsonl")
    slow, quick = file.create("team:slow")[1], file.create("team:quick")[1]
    with crowded(clients=0, tokens=str(tmp_path / "tokens.jsonl"), require_token=True) as (url, _):
        with contextlib.ExitStack() as stack:
            for _ in range(10):
                stack.enter_context(started(url, 20_000, slow))
            time.sleep(0.3)
            assert 0.5 * ROOM < body_bytes(url) <= 0.75 * ROOM
            assert call(url, body=chat(5), headers={"x-refold-token": slow})[0] == 503
            assert call(url, body=chat(5), headers={"x-refold-token": quick})[0] == 200
        assert until_released(url) == 0


@pytest.fixture
def endless():
    """A provider that answers with a stream that no client reads to its end."""

    async def answer(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        for _ in range(4_000):
            writer.write(b"data: " + b"x" * 16_000 + b"\n\n")
            await writer.drain()

    with upstream(answer) as (url, _):
        yield url


def test_a_response_that_nobody_reads_gives_the_room_of_its_request_to_others(endless, monkeypatch):
    monkeypatch.setattr(connection, "STOPPED", 0.3)
    with crowded(endless, clients=0) as (url, _), started(url, len(BODY) - 2, length=len(BODY)) as unread:
        unread.sendall(b"{}")
        time.sleep(1.0)
        assert body_bytes(url) == len(BODY)
        with started(url, len(BODY) - 1, length=len(BODY)) as other:
            assert answered(other, 0.5) == b""
            assert body_bytes(url) == len(BODY) - 1


def test_a_client_that_does_not_read_its_response_is_left_after_the_timeout(endless):
    with crowded(endless, clients=0, timeout=1.0) as (url, _), started(url, len(BODY) - 2, length=len(BODY)) as unread:
        unread.sendall(b"{}")
        time.sleep(0.5)
        assert body_bytes(url) == len(BODY)
        assert until_released(url) == 0
