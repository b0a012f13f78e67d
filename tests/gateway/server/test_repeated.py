import asyncio
import re
import socket
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from refold._gateway.server.repeated import RepeatedRequests
from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from tests.gateway.scripted_upstream import upstream, whole

REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%b"
TALK = b'{"model":"m","messages":[{"role":"user","content":"%b"}]}'
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndata:\r\n2\r\n\n\n\r\n0\r\n\r\n"
ANSWERS = {
    "a length": (whole(b'{"a":1}'), b'{"a":1}'),
    "no body": (whole(b""), b"content-length: 0\r\n"),
    "chunks": (STREAM, b"\r\n0\r\n\r\n"),
    "no content": (b"HTTP/1.1 204 No Content\r\nx-it: 1\r\n\r\n", b"x-it: 1\r\n"),
    "an error of the provider": (b"HTTP/1.1 529 \r\ncontent-length: 2\r\n\r\n{}", b"{}"),
}


@contextmanager
def serving(answers, **settings):
    """A gateway whose upstream gives these answers; its address, and what upstream got."""
    with ExitStack() as stack:
        url, seen = stack.enter_context(upstream(lambda head, body: answers.pop(0)))
        gateway = Serving(GatewaySettings(upstreams={"openai": url}, port=0, **settings))
        yield stack.enter_context(gateway).url, seen


def exchanged(url, sent):
    """Send bodies with one head on one connection; return what came to each, up to bytes that end it, or at its end."""
    address = urlsplit(url)
    answers = []
    with socket.create_connection((address.hostname, address.port), timeout=5) as client:
        for body, end in sent:
            client.sendall(REQUEST % (len(body), body))
            got = b""
            while not (b"\r\n\r\n" in got and end in got) and (piece := client.recv(65_536)):
                got += piece
            answers.append(re.sub(rb"(x-refold-conversation: )[^\r]+", rb"\1", got))
    return answers


@pytest.mark.parametrize("name", ANSWERS)
def test_a_request_that_repeats_a_head_is_answered_byte_for_byte_as_the_first_one(name):
    answer, end = ANSWERS[name]
    with serving([answer] * 3) as (url, seen):
        answers = exchanged(url, [(TALK % each, end) for each in (b"1", b"22", b"333")])
    assert [body for _, body in seen] == [TALK % b"1", TALK % b"22", TALK % b"333"]
    assert answers[0].endswith(end) or end in answers[0]
    assert answers == [answers[0]] * 3


def test_an_error_of_the_gateway_closes_the_connection_behind_a_repeated_head_too():
    with serving([whole(b"{}")], max_body=200) as (url, _):
        good, refused = exchanged(url, [(TALK % b"1", b"{}"), (TALK % (b"2" * 300), b"no end")])
    assert good.startswith(b"HTTP/1.1 200")
    assert refused.startswith(b"HTTP/1.1 413")
    assert b"\r\nconnection: close\r\n" in refused


def test_a_response_that_the_provider_cuts_ends_the_connection_behind_a_repeated_head():
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99\r\n\r\n"
    with serving([whole(b"{}"), head + b"data: {}\n\n"]) as (url, _):
        _, cut = exchanged(url, [(TALK % b"1", b"{}"), (TALK % b"2", b"no end")])
    assert cut.startswith(b"HTTP/1.1 200")
    assert cut.endswith(b"data: {}\n\n")


class Client(asyncio.Transport):
    """The client's side: what it was sent, and whether the connection was closed."""

    def __init__(self):
        super().__init__()
        self.got = b""
        self.closed = False

    def write(self, data):
        assert not self.closed
        self.got += data

    def close(self):
        self.closed = True


def served(app, act=None, *, keep_alive=60.0, idle=True):
    """Let an application answer one request; return the client, and the state that uvicorn would have."""

    async def main():
        state, client, bodies = SimpleNamespace(tasks=set(), connections=set()), Client(), [b"the body"]
        protocol = RepeatedRequests(app, {"type": "http"}, state, keep_alive, lambda: idle)
        protocol.connection_made(client)
        protocol.serve(lambda: bodies.pop() if bodies else None)
        if act is not None:
            await act(protocol, client, state)
        while state.tasks:
            await asyncio.sleep(0)
        return client, state

    return asyncio.run(main())


def answer(*pieces, status=200, headers=()):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        for place, piece in enumerate(pieces, 1):
            await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": piece, "more_body": place < len(pieces)})

    return app


async def broken(scope, receive, send):
    raise ValueError("a bug")


async def silent(scope, receive, send):
    return


@pytest.mark.parametrize(
    "app", [broken, silent, answer(b"", headers=[(b"x-one", b"1\r\nx-two: 2")])], ids=["broken", "silent", "line end"]
)
def test_an_application_that_gives_no_response_is_answered_for_and_the_connection_ends(app):
    client, state = served(app)
    assert client.got.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert client.got.endswith(b"connection: close\r\n\r\nInternal Server Error")
    assert client.closed
    assert not state.tasks


@pytest.mark.parametrize("pieces", [[b"too long"], [b"12", b""], [b"12"]])
def test_a_body_that_is_not_as_long_as_its_head_says_ends_the_connection(pieces):
    client, _ = served(answer(*pieces, headers=[(b"content-length", b"3")]))
    assert client.closed
    assert b"too long" not in client.got


def test_the_head_reaches_the_client_before_the_body_has_begun():
    async def late(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0.01)
        heads.append(client_of[0].got)
        await send({"type": "http.response.body", "body": b"1"})

    async def look(protocol, client, state):
        client_of.append(client)

    heads, client_of = [], []
    client, _ = served(late, look)
    assert heads == [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]
    assert client.got == heads[0] + b"1\r\n1\r\n0\r\n\r\n"


def test_an_application_gets_the_body_once_and_then_the_end_of_the_connection():
    async def app(scope, receive, send):
        got.append(await receive())
        got.append(await receive())

    async def leave(protocol, client, state):
        await asyncio.sleep(0.01)
        protocol.connection_lost(None)

    got = []
    client, state = served(app, leave)
    assert got == [{"type": "http.request", "body": b"the body", "more_body": False}, {"type": "http.disconnect"}]
    assert client.got == b""
    assert not state.connections


def test_nothing_is_sent_while_the_client_does_not_read():
    async def stop(protocol, client, state):
        protocol.pause_writing()
        await asyncio.sleep(0.01)
        assert client.got == b""
        protocol.resume_writing()

    client, _ = served(answer(b"1"), stop)
    assert client.got.endswith(b"1\r\n1\r\n0\r\n\r\n")


@pytest.mark.parametrize("idle", [True, False])
def test_a_connection_at_rest_is_closed_unless_a_request_has_begun_to_arrive(idle):
    async def wait(protocol, client, state):
        while state.tasks:
            await asyncio.sleep(0)
        assert not client.closed
        await asyncio.sleep(0.05)

    client, _ = served(answer(b"1"), wait, keep_alive=0.02, idle=idle)
    assert client.closed is idle


def test_at_the_end_of_its_server_a_connection_ends_behind_its_response():
    async def end(protocol, client, state):
        (each,) = state.connections
        each.shutdown()
        assert not client.closed

    client, _ = served(answer(b"1"), end)
    assert b"\r\nconnection: close\r\n" in client.got
    assert client.got.endswith(b"0\r\n\r\n")
    assert client.closed
