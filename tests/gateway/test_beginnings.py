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
    if path.startswith("/v1beta"):
        texts = [message["content"] or "reading" for message in chat(20)["messages"][1:]]
        return {
            "contents": [
                {"role": ("user", "model")[at % 2], "parts": [{"text": text}]} for at, text in enumerate(texts)
            ]
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


GEMINI = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
TOO_LONG = {
    "code": 400,
    "message": "The input token count (16000) exceeds the maximum number of tokens allowed (8000).",
    "status": "INVALID_ARGUMENT",
}
FILTERS = {"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}


def role(**more):
    return event({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"role": "assistant", **more}}]})


@pytest.mark.parametrize(
    ("path", "pieces"),
    [
        ("/v1/chat/completions", [role(), ERROR]),
        ("/v1/chat/completions", [event(FILTERS), role(content="", refusal=None) + b": waiting\n\n", ERROR]),
        ("/v1/chat/completions", [role(content="")[:-40], role(content="")[-40:], ERROR]),
        ("/v1/messages", [
            event({"type": "message_start", "message": {}}, "message_start"),
            event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            event(WRONG, "error"),
        ]),
        ("/v1/responses", [
            created(),
            event({"type": "response.output_item.added", "item": {"type": "message", "content": []}}),
            event({"type": "response.content_part.added", "part": {"type": "output_text", "text": ""}}),
            event({"type": "response.failed", "response": {"status": "failed", "error": CODED}}, "response.failed"),
        ]),
        (GEMINI, [event({"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}}]}),
                  event({"error": TOO_LONG})]),
        (GEMINI, [event({"candidates": [{"content": {"role": "model"}}]}), event({"error": TOO_LONG})]),
    ],
    ids=["chat", "chat, Azure", "chat, cut", "Anthropic", "Responses", "Gemini", "Gemini, no parts"],
)  # fmt: skip
def test_a_refusal_behind_events_without_content_is_recovered_and_the_client_sees_one_answer(path, pieces):
    with (
        upstream(streaming(pieces)) as (url, seen),
        Serving(
            GatewaySettings(upstreams={"openai": url, "anthropic": url, "gemini": url}, port=0, window=100_000)
        ) as serving,
    ):
        _, headers, data = call(serving.url, path=path, body=conversation(path))
    assert headers["x-refold-done"] == "recovered"
    assert data == WORD
    assert len(seen[1][1]) < len(seen[0][1])


FAILED = {
    "id": "resp_1", "object": "response", "created_at": 1, "instructions": "x" * 9_000, "output": [],
    "status": "failed", "error": CODED, "usage": None,
}  # fmt: skip


def test_a_whole_response_that_failed_for_its_size_with_status_200_is_recovered():
    text = json.dumps(FAILED).encode()
    body = {**conversation("/v1/responses"), "stream": False}
    with (
        upstream(streaming([text[:500], text[500:5_000], text[5_000:]], kind=b"application/json")) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, window=100_000)) as serving,
    ):
        _, headers, data = call(serving.url, path="/v1/responses", body=body)
    assert (headers["x-refold-done"], data) == ("recovered", WORD)
    assert len(seen[1][1]) < len(seen[0][1])


def test_a_whole_response_that_failed_for_another_reason_goes_to_the_client_as_it_came():
    text = json.dumps({**FAILED, "error": {"code": "server_error", "message": "Try again."}}).encode()
    with (
        upstream(streaming([text[:500], text[500:]], kind=b"application/json")) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving,
    ):
        _, headers, data = call(serving.url, path="/v1/responses", body=conversation("/v1/responses"))
    assert (headers["x-refold-done"], data, len(seen)) == ("forwarded", text, 1)


def test_the_first_word_of_a_stream_takes_what_came_before_it_to_the_client():
    pieces = [role(content=""), WORD]
    with (
        upstream(streaming([*pieces, b": waiting\n\n" * 99], gap=0.5)) as (url, _),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving,
    ):
        connection = http.client.HTTPConnection(serving.url.removeprefix("http://"), timeout=5)
        connection.request("POST", "/v1/chat/completions", json.dumps(chat(1, stream=True)))
        answer = connection.getresponse()
        assert answer.read1() == b"".join(pieces), "live: nothing more has come yet"
        connection.close()


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
