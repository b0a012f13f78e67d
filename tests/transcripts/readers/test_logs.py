import json

import pytest

from refold.transcripts import read
from refold.transcripts._streams import answer_of, answers


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


def test_calls_that_are_null_in_a_reply_are_left_out_as_a_request_refuses_them():
    reply = {"role": "assistant", "content": "ok", "tool_calls": None, "function_call": None, "refusal": None}
    call = {"messages": [{"role": "user", "content": "go"}], "response": {"choices": [{"message": reply}]}}
    (item,) = read(raw(call))
    assert item.messages[1] == {"role": "assistant", "content": "ok", "refusal": None}


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
    text = "".join(f"data: {json.dumps(event)}\n" for event in ANTHROPIC[:10])
    assert answer_of(text + 'data: {"cut\n: comment\n') == answer


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


def test_a_recorded_stream_may_hold_line_separators_in_its_text():
    chunks = [chunk(content="one\u2028"), chunk(content="\x85two"), chunk(content="\U0001f600")]
    text = "".join(f"data: {json.dumps(each, ensure_ascii=False)}\n\n" for each in chunks)
    assert answer_of(text).messages == [{"role": "assistant", "content": "one\u2028\x85two\U0001f600"}]


@pytest.mark.parametrize("line", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_recorded_stream_may_end_its_lines_as_it_likes(line, mark):
    text = mark + "".join(f"data: {json.dumps(event, indent=1)}\n\n".replace("\n ", "\ndata:  ").replace("\n}", "\ndata: }")
                          for event in ANTHROPIC).replace("\n", line)  # fmt: skip
    assert answer_of(text).messages == [{"role": "assistant", "content": BLOCKS}]


def test_halves_of_an_emoji_in_two_chunks_are_one_emoji():
    text = 'data: {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "%s"}}]}\n\n'
    assert answer_of(text % "A\\ud83d" + text % "\\ude00B").messages == [
        {"role": "assistant", "content": "A\U0001f600B"}
    ]
    assert answer_of(text % "A\ud83d").messages == [{"role": "assistant", "content": "A\ufffd"}]


def test_a_recorded_stream_of_several_choices_is_its_first_choice():
    rows = [chunk(content="He"), chunk(content="Ho"), chunk(content="llo"), chunk(content="la")]
    for row in (rows[1], rows[3]):
        row["choices"][0]["index"] = 1
    assert answer_of(stream(*rows)).messages == [{"role": "assistant", "content": "Hello"}]


def test_everything_in_a_recorded_message_is_there():
    call = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** "}}
    details = [{"type": "reasoning.text", "text": piece, "index": 0} for piece in ("Let ", "me.")]
    rows = [
        *(chunk(reasoning_details=[detail]) for detail in details),
        chunk(tool_calls=[call]), chunk(tool_calls=[{"index": 0, "custom": {"input": "Begin"}}]),
    ]  # fmt: skip
    (message,) = answer_of(stream(*rows)).messages
    assert message["tool_calls"] == [{"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}]
    assert message["reasoning_details"] == [{"type": "reasoning.text", "text": "Let me.", "index": 0}]
    audio = {"id": "a", "data": "AA==", "transcript": "Hi"}
    assert answer_of(stream(chunk(audio=audio))).messages == [{"role": "assistant", "content": None, "audio": audio}]


def test_calls_that_a_server_numbers_alike_are_calls_of_their_own():
    calls = [{"index": 0, "id": id, "function": {"name": id, "arguments": "{}"}} for id in ("c1", "c2")]
    (message,) = answer_of(stream(*(chunk(tool_calls=[call]) for call in calls))).messages
    assert [call["function"] for call in message["tool_calls"]] == [call["function"] for call in calls]


def test_a_recorded_compaction_block_has_its_content():
    block = {"type": "compaction", "content": None}
    grown = {"type": "compaction_delta", "content": "All of it.", "encrypted_content": "E="}
    events = [ANTHROPIC[0], {"type": "content_block_start", "index": 0, "content_block": block}, delta(0, **grown)]
    (answer,) = answers(events)
    assert answer.messages[0]["content"] == [{**grown, "type": "compaction"}]


def test_a_responses_stream_that_breaks_off_holds_the_text_that_came():
    part = {"type": "output_text", "text": "", "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "content": [], "status": "in_progress"}
    at = {"output_index": 0, "item_id": "m", "content_index": 0}
    events = [
        {"type": "response.created", "response": {"model": "gpt", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **at, "part": part},
        *({"type": "response.output_text.delta", **at, "delta": piece} for piece in ("Half", " of it")),
    ]
    (answer,) = answers(events)
    assert answer.messages == [{**item, "content": [{**part, "text": "Half of it"}]}]


def test_thoughts_of_gemini_are_one_thought():
    parts = [{"text": "Let ", "thought": True}, {"text": "me.", "thought": True}, {"text": "Yes"}]
    (answer,) = answers([{"candidates": [{"content": {"parts": [part]}}]} for part in parts])
    assert answer.messages[0]["parts"] == [{"text": "Let me.", "thought": True}, {"text": "Yes"}]


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "message_start"}],
        [*ANTHROPIC[:1], {"type": "content_block_start"}],
        [*ANTHROPIC[:2], {"type": "content_block_delta", "index": 0}],
        [{"object": "chat.completion.chunk", "choices": [None]}],
        [{"candidates": [{"content": {"parts": "x"}}]}],
        [{"type": "response.completed"}],
    ],
)
def test_events_that_are_damaged_spoil_no_file(events):
    assert len(list(answers(events))) <= 1
    deep = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert answer_of(f"data: {deep}\n\n" + stream(*CHUNKS)).messages == [CHAT]
