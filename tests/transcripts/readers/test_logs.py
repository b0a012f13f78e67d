import json

import pytest

from refold.transcripts import read
from refold.transcripts._streams import answer_of, answers, sse


def raw(value):
    return json.dumps(value).encode()


def lines(*rows):
    return "\n".join(map(json.dumps, rows)).encode()


def stream(*events):
    return "".join(f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n"


def delta(index, **fields):
    return {"type": "content_block_delta", "index": index, "delta": fields}


ANTHROPIC = [
    {
        "type": "message_start",
        "message": {
            "model": "claude-x",
            "usage": {"input_tokens": 3, "cache_read_input_tokens": 90, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    delta(0, type="thinking_delta", thinking="h"),
    delta(0, type="thinking_delta", thinking="m"),
    delta(0, type="signature_delta", signature="sig"),
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    delta(1, type="text_delta", text="ok"),
    delta(1, type="citations_delta", citation={"url": "u"}),
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "c1", "name": "ls", "input": {}},
    },
    delta(2, type="input_json_delta", partial_json='{"a"'),
    delta(2, type="input_json_delta", partial_json=": 1}"),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]
BLOCKS = [
    {"type": "thinking", "thinking": "hm", "signature": "sig"},
    {"type": "text", "text": "ok", "citations": [{"url": "u"}]},
    {"type": "tool_use", "id": "c1", "name": "ls", "input": {"a": 1}},
]


def chunk(id="g1", usage=None, **fields):
    return {
        "object": "chat.completion.chunk",
        "id": id,
        "model": "gpt",
        "choices": [{"index": 0, "delta": fields}],
        "usage": usage,
    }


CHUNKS = [
    chunk(role="assistant", content="he"),
    chunk(content="y", reasoning="r"),
    chunk(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"a"'}}]),
    chunk(
        tool_calls=[{"index": 0, "function": {"arguments": ":1}"}}], usage={"prompt_tokens": 8, "completion_tokens": 2}
    ),
]
CHAT = {
    "role": "assistant",
    "content": "hey",
    "reasoning": "r",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"a":1}'}}],
}


def test_requests_and_their_streamed_answers_are_a_conversation_each():
    body = {
        "model": "claude-x",
        "system": "be brief",
        "tools": [{"name": "ls", "input_schema": {}}],
        "messages": [{"role": "user", "content": "go"}],
    }
    first, second = read(
        lines(
            {
                "request": {"url": "/v1/messages", "body": body},
                "response": {"status_code": 200, "body": None, "body_raw": stream(*ANTHROPIC)},
            },
            {"request": {"url": "/health", "body": None}, "response": {}},
            {"request": {"body": body}, "response": None},
        )
    )
    assert (first.kind, first.format, first.name, first.system) == ("request-log", "anthropic", "request 1", "be brief")
    assert first.tools == body["tools"]
    assert first.messages == [body["messages"][0], {"role": "assistant", "content": BLOCKS}]
    assert [(u.covers, u.prompt, u.completion, u.cache_read) for u in first.usage] == [(1, 93, 9, 90)]
    assert (second.name, second.messages) == ("request 3", body["messages"])
    assert first.notes == (
        "1 × exchange that is no request to a model (line 2)",
        "1 × request without an answer, kept (line 3)",
    )


def test_a_har_file_is_a_request_log():
    entry = {
        "request": {
            "postData": {"text": json.dumps({"model": "gpt", "messages": [{"role": "user", "content": "go"}]})}
        },
        "response": {"content": {"text": stream(*CHUNKS)}},
    }
    (item,) = read(raw({"log": {"entries": [entry]}}))
    assert item.format == "openai-chat"
    assert item.messages[1] == CHAT
    assert [(u.covers, u.prompt, u.completion) for u in item.usage] == [(1, 8, 2)]


def test_a_litellm_call_has_its_tools_its_answer_and_its_usage():
    call = {
        "messages": [{"role": "user", "content": "go"}],
        "kwargs": {"tools": [{"type": "function"}]},
        "context_window": 1000,
        "response": {
            "model": "m",
            "choices": [{"message": {"role": "assistant", "content": "ok"}}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 1},
        },
    }
    (item,) = read(raw(call))
    assert (item.kind, item.window, item.model, item.tools) == ("litellm", 1000, "m", [{"type": "function"}])
    assert [message["content"] for message in item.messages] == ["go", "ok"]
    assert [(u.covers, u.prompt) for u in item.usage] == [(1, 5)]
    assert [found.name for found in read(lines(call, call))] == ["call 1", "call 2"]


def test_a_litellm_call_whose_tools_became_text_is_two_conversations_and_one_report():
    def response(content):
        return {"choices": [{"message": {"role": "assistant", "content": content}}]}

    sent, meant = read(
        raw(
            {
                "messages": [{"role": "user", "content": "as text"}],
                "raw_messages": [{"role": "user", "content": "as calls"}],
                "response": {**response("call"), "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
                "raw_response": response("text"),
            }
        )
    )
    assert [message["content"] for message in sent.messages] == ["as text", "text"]
    assert [message["content"] for message in meant.messages] == ["as calls", "call"]
    assert (len(sent.usage), len(meant.usage)) == (1, 0)


def test_recorded_traffic_gives_each_answer_and_counts_the_rest():
    rows = [
        {"method": "GET", "path": "/flags", "response": {"a": 1}},
        {"method": "POST", "path": "/chat/completions", "response": stream(*CHUNKS)},
        {
            "method": "POST",
            "path": "/v1/chat",
            "body": {"messages": [{"role": "user", "content": "go"}]},
            "response": stream(*CHUNKS),
        },
    ]
    first, second = read(raw(rows))
    assert (first.kind, first.messages) == ("http-recording", [CHAT])
    assert first.usage[0].covers == 0
    assert first.notes == (
        "the request was not recorded, only the answer",
        "1 × exchange with GET /flags, no call of a model",
    )
    assert [message["role"] for message in second.messages] == ["user", "assistant"]
    assert second.usage[0].covers == 1


def test_a_stream_a_line_an_event_is_the_answer_and_helper_lines_are_counted():
    (item,) = read(lines(*ANTHROPIC[:3], {"type": "thinking", "snapshot": "h"}, *ANTHROPIC[3:]))
    assert (item.kind, item.format, item.messages) == (
        "recorded-stream",
        "anthropic",
        [{"role": "assistant", "content": BLOCKS}],
    )
    assert item.notes[0] == "the request is not in the file, only the answer"
    assert item.notes[1] == "1 × line of type thinking, no event of the provider (line 4)"


def test_several_streams_in_a_file_are_several_answers():
    assert len(read(lines(*ANTHROPIC, *ANTHROPIC))) == 2
    assert len(read(lines(*CHUNKS, chunk(id="g2", content="x")))) == 2


def test_a_responses_stream_is_whole_with_the_last_event_and_as_far_as_it_got_without():
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    opened = {"type": "response.created", "response": {"model": "gpt", "instructions": "sys", "output": []}}
    done = {"type": "response.output_item.done", "item": item}
    usage = {"input_tokens": 20, "output_tokens": 2, "total_tokens": 22, "input_tokens_details": {"cached_tokens": 12}}
    closed = {
        "type": "response.completed",
        "response": {"model": "gpt", "instructions": "sys", "output": [item], "usage": usage},
    }
    (whole,) = read(lines(opened, done, closed))
    assert (whole.format, whole.messages, whole.system, whole.model) == ("openai-responses", [item], "sys", "gpt")
    assert [(u.prompt, u.completion, u.cache_read) for u in whole.usage] == [(20, 2, 12)]
    (cut,) = read(lines(opened, done))
    assert (cut.messages, cut.usage) == ([item], ())


def test_a_gemini_stream_is_put_together():
    def part(text):
        return {
            "candidates": [{"content": {"parts": [{"text": text}]}}],
            "usageMetadata": {"promptTokenCount": 4},
            "modelVersion": "g",
        }

    call = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "ls"}}]}}]}
    (answer,) = answers([part("a"), part("b"), call])
    assert answer.messages == [{"role": "model", "parts": [{"text": "ab"}, {"functionCall": {"name": "ls"}}]}]
    assert answer.model == "g"


@pytest.mark.parametrize(
    ("body", "format"),
    [
        ({"choices": [{"message": {"role": "assistant", "content": "x"}}]}, "openai-chat"),
        ({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "x"}]}, "anthropic"),
        ({"output": [{"type": "message"}]}, "openai-responses"),
        ({"output": {"message": {"role": "assistant", "content": [{"text": "x"}]}}}, "bedrock"),
        ({"candidates": [{"content": {"role": "model", "parts": []}}]}, "gemini"),
    ],
)
def test_a_whole_reply_is_told_by_its_shape(body, format):
    assert answer_of(body).format == format
    assert answer_of(json.dumps(body)).format == format


def test_what_is_no_reply_is_none():
    assert answer_of({"error": "x"}) is None
    assert answer_of("plain words") is None
    assert answer_of("{broken") is None
    assert answer_of(None) is None


def test_arguments_cut_off_in_mid_stream_are_kept_as_they_came():
    (answer,) = answers(ANTHROPIC[:10])
    assert answer.messages[0]["content"][2]["input"] == {"": '{"a"'}
    assert sse('data: {"a": 1}\ndata: {"cut\n: comment\n') == [{"a": 1}]


def test_a_litellm_call_of_the_responses_api():
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
    usage = {"input_tokens": 7, "output_tokens": 1, "total_tokens": 8}
    call = {
        "input": [{"role": "user", "content": "go"}],
        "instructions": "s",
        "response": {"output": [item], "usage": usage},
    }
    (found,) = read(raw(call))
    assert (found.kind, found.format, found.system) == ("litellm", "openai-responses", "s")
    assert found.messages == [call["input"][0], item]
    assert [(u.covers, u.prompt) for u in found.usage] == [(1, 7)]


def test_a_recorded_body_may_be_text():
    body = json.dumps({"messages": [{"role": "user", "content": "go"}]})
    (item,) = read(raw([{"method": "POST", "path": "/chat", "body": body, "response": stream(*CHUNKS)}]))
    assert [message["role"] for message in item.messages] == ["user", "assistant"]
