import contextlib
import gzip
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from tests.gateway.scripted_upstream import ADMIN, call, chat, upstream, whole

ROOM = 100_000
BODY = json.dumps(chat(20)).encode()  # of which there is room for one
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
        assert "100,000" in error["message"]
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
