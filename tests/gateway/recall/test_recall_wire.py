import asyncio
import json
import socket
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from refold._gateway.recall.tool import NAME
from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from tests.gateway.scripted_upstream import call, chat, raw, upstream

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    event = b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(event), event)


def asks(text):
    function = {"name": NAME, "arguments": '{"query": "f1.py"}'}
    said = chunk({"role": "assistant", "content": text}) if text else b""
    calls = [{"index": 0, "id": "r1", "type": "function", "function": function}]
    return HEAD + said + chunk({"tool_calls": calls}) + chunk({}, "tool_calls") + b"0\r\n\r\n"


@contextmanager
def two_rounds(second, text="", **settings):
    """A gateway whose upstream asks for originals, and then does something of its own."""

    async def answer(reader, writer):
        answer.count += 1
        if answer.count == 1:
            writer.write(asks(text))
            await writer.drain()
        else:
            await second(reader, writer)

    answer.count = 0
    given = {"window": 16_000, "background": False, "recall_tool": True, **settings}
    with (
        upstream(answer) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, **given)) as serving,
    ):
        yield serving, seen


def sent(body):
    data = json.dumps(body).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(data) + data


def test_a_client_that_leaves_while_originals_are_asked_for_ends_the_call_upstream():
    begun, left = threading.Event(), threading.Event()

    async def second(reader, writer):
        begun.set()
        await reader.read()
        left.set()

    with two_rounds(second) as (serving, _):
        place = urlsplit(serving.url)
        with socket.create_connection((place.hostname, place.port)) as client:
            client.sendall(sent(chat(12, stream=True)))
            assert begun.wait(10)
            assert not left.is_set()
        assert left.wait(5)
        assert all(not conversation.lock.locked() for conversation in serving.gateway.tracker.all())


@pytest.mark.parametrize("text", ["", "One moment."], ids=["silent", "worded"])
@pytest.mark.parametrize("how", ["stall", "reset"])
def test_a_provider_that_is_gone_in_the_second_round_is_told_in_the_clients_dialect(how, text):
    async def second(reader, writer):
        if how == "stall":
            await asyncio.sleep(3)
        writer.transport.abort()

    with two_rounds(second, text, timeout=0.4) as (serving, _):
        status, headers, data = call(serving.url, body=chat(12, stream=True))
    code = "upstream_timeout" if how == "stall" else "upstream_down"
    if text:
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        events = [line[6:] for line in data.split(b"\n") if line.startswith(b"data: ")]
        assert json.loads(events[0])["choices"][0]["delta"]["content"] == text
        assert json.loads(events[-1])["error"]["code"] == code
    else:
        assert (status, json.loads(data)["error"]["code"]) == (504 if how == "stall" else 502, code)


def test_what_comes_before_a_call_is_the_clients_at_once_and_as_its_own_bytes():
    async def second(reader, writer):
        await asyncio.sleep(0.3)
        writer.write(HEAD + chunk({"role": "assistant", "content": "Here."}) + chunk({}, "stop") + b"0\r\n\r\n")
        await writer.drain()

    with two_rounds(second, "One moment.") as (serving, seen):
        answer = raw(serving.url, sent(chat(12, stream=True)).replace(b"\r\nhost", b"\r\nconnection: close\r\nhost"))
    before = chunk({"role": "assistant", "content": "One moment."}).split(b"\r\n")[1]
    assert before in answer
    assert NAME.encode() not in answer.partition(b"\r\n\r\n")[2]
    assert b"\\n\\nHere." in answer
    first, second_body = (json.loads(body) for _, body in seen)
    assert second_body["messages"][: len(first["messages"])] == first["messages"]
    assert second_body["tools"] == first["tools"]
    assert seen[1][1].startswith(seen[0][1][: seen[0][1].rindex(b"]")])
    assert b"accept-encoding: identity" in seen[0][0].lower()


def test_a_bypassed_request_and_a_count_are_left_alone():
    async def second(reader, writer):
        raise AssertionError("one request alone")

    with two_rounds(second) as (serving, seen):
        body = json.dumps(chat(12)).encode()
        call(serving.url, body=body, headers={"x-refold-bypass": "1"})
    assert seen[0][1] == body


ODD = pytest.mark.parametrize(
    ("line", "mark"),
    [("\r\n", ""), ("\r", ""), ("\n", "\ufeff"), ("\r", "\ufeff")],
    ids=["CRLF", "CR", "mark", "CR and mark"],
)


def framed(*texts):
    """Texts as the chunks of a body, cut into pieces of three bytes."""
    data = "".join(texts).encode()
    pieces = [data[at : at + 3] for at in range(0, len(data), 3)]
    return HEAD + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@ODD
def test_a_recall_is_seen_however_lines_end_and_whatever_events_nobody_can_read(line, mark):
    def event(delta, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({'id': 'c', 'choices': [choice]})}{line}{line}"

    deep = f'data: {{"a": {"[" * 100_000 + "]" * 100_000}}}{line}{line}'
    function = {"name": NAME, "arguments": '{"query": "f1.py"}'}
    before = event({"role": "assistant", "content": "One moment."})
    asked = event({"tool_calls": [{"index": 0, "id": "r1", "type": "function", "function": function}]})
    answers = [
        framed(mark, f": waiting{line}{line}", before, deep, asked, event({}, "tool_calls")),
        framed(event({"content": "Here."}), event({}, "stop")),
    ]

    async def answer(reader, writer):
        writer.write(answers.pop(0))
        await writer.drain()

    given = {"window": 16_000, "background": False, "recall_tool": True}
    with (
        upstream(answer) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, **given)) as serving,
    ):
        status, _, data = call(serving.url, body=chat(12, stream=True))
    assert (status, len(seen)) == (200, 2)
    assert data.decode().startswith(f"{mark}: waiting{line}{line}{before}{deep}")
    assert NAME not in data.decode()
    assert '"\\n\\nHere."' in data.decode()
