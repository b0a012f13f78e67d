import asyncio
import http.client
import json
import time

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold._gateway.wire import response_observer
from refold.formats._streaming.openai_responses import BEGINNING
from tests.gateway.native.upstream import responses_turns
from tests.gateway.scripted_upstream import call, chat, upstream

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WORD = b'data: {"choices":[{"delta":{"content":"fine"}}]}\n\n'
SAID = "This model's maximum context length is 8000 tokens. However, your messages resulted in 16000 tokens."
CODED = {"message": SAID, "code": "context_length_exceeded"}


def event(value, name=""):
    return (f"event: {name}\n" if name else "").encode() + b"data: %s\n\n" % json.dumps(value).encode()


ERROR = event({"error": CODED})
FLAT = event({"type": "error", **CODED, "param": None, "sequence_number": 2}, "error")
WRONG = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": "prompt is too long: 21000 tokens > 20000"},
}


def created(instructions="Be brief."):
    """The events with which a response begins, each with the instructions of its request."""
    response = {"id": "resp_1", "object": "response", "error": None, "instructions": instructions, "output": []}
    return b"".join(event({"type": kind, "response": response}, kind) for kind in BEGINNING)


def streaming(pieces, gap=0.02, kind=b"text/event-stream"):
    """A provider whose first answer comes in pieces; all later ones are one word."""
    asked = []

    async def answer(reader, writer):
        asked.append(1)
        writer.write(HEAD.replace(b"text/event-stream", kind) if len(asked) == 1 else HEAD)
        for piece in pieces if len(asked) == 1 else [WORD]:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(gap)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return answer


@pytest.mark.parametrize(
    "pieces", [[ERROR], [ERROR[:3], ERROR[3:90], ERROR[90:]], [b": PROCESSING\n\n", b": PROCESSING\n\n", ERROR]]
)
def test_a_refusal_in_a_stream_is_found_however_its_first_event_comes(pieces):
    with (
        upstream(streaming(pieces)) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, window=100_000)) as serving,
    ):
        _, headers, data = call(serving.url, body=chat(10, stream=True))
    assert headers["x-refold-done"] == "recovered"
    assert data == WORD
    assert len(seen[1][1]) < len(seen[0][1])


def conversation(path):
    """A body of a long conversation in the form of the provider whose path it is."""
    if path == "/v1/responses":
        return {
            "model": "gpt-4o",
            "stream": True,
            "input": [{"role": "user", "content": "Go."}, *responses_turns(0, 20)],
        }
    if path == "/v1/messages":
        texts = [message["content"] or "reading" for message in chat(20)["messages"][1:]]
        return {
            "model": "claude-sonnet-4-5",
            "max_tokens": 100,
            "stream": True,
            "messages": [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)],
        }
    return chat(10, stream=True)


@pytest.mark.parametrize(
    ("path", "pieces"),
    [
        ("/v1/responses", [FLAT]),
        ("/v1/responses", [created(), FLAT]),
        ("/v1/responses", [created("x" * 100_000), event({"type": "keepalive"}, "keepalive"), FLAT]),
        ("/v1/messages", [event(WRONG, "error")]),
        ("/v1/messages", [event({"type": "message_start", "message": {}}, "message_start"), event(WRONG, "error")]),
        ("/v1/messages", [event({"type": "ping"}, "ping"), event(WRONG, "error")]),
        ("/v1/chat/completions", [event({"object": "error", "message": SAID, "code": 400})]),
        ("/v1/chat/completions", [event({"message": SAID}, "error")]),
        ("/v1/chat/completions", [b"event: error\ndata: %s\n\n" % SAID.encode()]),
    ],
    ids=[
        "Responses, first", "Responses, begun", "Responses, long instructions", "Anthropic, first", "Anthropic, begun",
        "Anthropic, ping", "chat, vLLM", "chat, by name", "chat, words",
    ],
)  # fmt: skip
def test_a_refusal_in_a_stream_is_found_in_whatever_form_its_provider_says_it(path, pieces):
    with (
        upstream(streaming(pieces)) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url, "anthropic": url}, port=0, window=100_000)) as serving,
    ):
        _, headers, data = call(serving.url, path=path, body=conversation(path))
    assert headers["x-refold-done"] == "recovered"
    assert data == WORD
    assert len(seen[1][1]) < len(seen[0][1])


@pytest.mark.parametrize("error", [{"error": CODED}, WRONG], ids=["OpenAI", "Anthropic"])
def test_an_error_in_a_whole_answer_of_status_200_is_a_refusal_also_behind_spaces(error):
    pieces = [b"\n   ", b"   \n", json.dumps(error).encode()]
    with (
        upstream(streaming(pieces, kind=b"application/json")) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, window=100_000)) as serving,
    ):
        _, headers, _ = call(serving.url, body=chat(10))
    assert headers["x-refold-done"] == "recovered"
    assert len(seen[1][1]) < len(seen[0][1])


def test_an_error_that_is_not_about_the_size_goes_to_the_client_as_it_came():
    error = event({"type": "error", "code": "server_error", "message": "Try again."}, "error")
    with (
        upstream(streaming([created(), error])) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving,
    ):
        _, headers, data = call(serving.url, path="/v1/responses", body=conversation("/v1/responses"))
    assert (headers["x-refold-done"], data, len(seen)) == ("forwarded", created() + error, 1)


def test_after_a_refusal_that_came_too_late_the_next_request_is_compacted(monkeypatch):
    monkeypatch.setattr(response_observer, "PATIENCE", 0.05)
    body = conversation("/v1/responses")
    with (
        upstream(streaming([created(), b": waiting\n\n", b": waiting\n\n", FLAT], gap=0.1)) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, window=100_000)) as serving,
    ):
        first, second = (call(serving.url, path="/v1/responses", body=body) for _ in range(2))
    assert first[2].endswith(FLAT)
    assert (second[1]["x-refold-done"], second[1]["x-refold-reason"]) == ("compacted", "silent_overflow")
    assert len(seen[1][1]) < len(seen[0][1])


def test_a_stream_that_says_nothing_yet_is_kept_from_the_client_for_a_while_alone(monkeypatch):
    monkeypatch.setattr(response_observer, "PATIENCE", 0.1)
    pieces = [b": waiting\n\n"] * 20
    begun = time.monotonic()
    with (
        upstream(streaming(pieces, gap=0.05)) as (url, _),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving,
    ):
        connection = http.client.HTTPConnection(serving.url.removeprefix("http://"), timeout=5)
        connection.request("POST", "/v1/chat/completions", json.dumps(chat(1, stream=True)))
        answer = connection.getresponse()
        assert time.monotonic() - begun < 0.9, "the head came while the stream went on"
        assert answer.read() == b"".join(pieces)
        connection.close()
