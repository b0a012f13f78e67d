import copy
import itertools
import json

import msgspec
import pytest
from anthropic.lib.streaming._beta_messages import accumulate_event
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from refold.formats._streaming.accumulate import ACCUMULATORS, accumulator, response_body, stream_format
from refold.formats._streaming.sse import Decoder
from tests.formats.streaming.sdks import judged, plain
from tests.formats.streaming.streams import (
    ANTHROPIC,
    CASES,
    CHAT,
    GEMINI,
    IDS,
    RESPONSES,
    STREAMS,
    USAGE,
    anthropic,
    bare,
    call,
    candidate,
    chunk,
    encoded,
    response,
    scripted,
    use,
    words,
)

EVERY = pytest.mark.parametrize(("format", "name", "events"), CASES, ids=IDS)
FORMATS = pytest.mark.parametrize("format", ACCUMULATORS)


def compared(format, body):
    """A body in the form in which the judges compare it."""
    if format != "gemini":
        return plain(body)
    first = (body["candidates"] or [{}])[0]
    finish = {"finishReason": first["finishReason"]} if "finishReason" in first else {}
    parts = first.get("content", {}).get("parts", [])
    return {"parts": parts, "usageMetadata": body["usageMetadata"], **finish}


# Gemini's SDK takes the first candidate of each chunk for the first candidate
JUDGED = {id: case for id, case in zip(IDS, CASES, strict=True) if id != "gemini, two candidates"}


@pytest.mark.parametrize(("format", "name", "events"), JUDGED.values(), ids=JUDGED)
def test_a_stream_adds_up_to_what_the_official_sdk_makes_of_it(format, name, events):
    stream = encoded(format, events)
    decoder = Decoder()
    decoded = [event.json() for event in (*decoder.feed(stream), *decoder.finish()) if not event.done]
    assert compared(format, response_body(format, decoded)) == plain(judged(format, stream))


@EVERY
def test_events_are_never_changed_and_a_body_can_be_taken_at_any_time(format, name, events):
    before = copy.deepcopy(events)
    total = accumulator(format)
    bodies = []
    for event in events:
        total.add(event)
        bodies.append((total.body(), json.dumps(total.body())))
    assert events == before
    assert all(json.dumps(body) == text for body, text in bodies)
    assert total.body() == response_body(format, events)


@EVERY
def test_a_stream_ends_with_its_usage_and_its_reason(format, name, events):
    total, broken = accumulator(format), accumulator(format)
    for event in events:
        total.add(event)
    assert total.complete
    assert total.stop or "blocked" in name
    assert total.usage or format == "openai-chat"
    ends = {
        "message_delta",
        "message_stop",
        *(f"response.{status}" for status in ("completed", "incomplete", "failed")),
    }
    for event in events:
        chosen = event.get("choices") or event.get("candidates") or [{}]
        ended = any(choice.get("finish_reason") or choice.get("finishReason") for choice in chosen)
        if not (ended or event.get("type") in ends or "promptFeedback" in event):
            broken.add(event)
    assert not broken.complete
    assert broken.stop is None


@FORMATS
def test_the_scripted_provider_says_the_same_with_and_without_a_stream(format):
    for events, reply in scripted(format):
        body = response_body(format, events)
        if format == "openai-chat":  # these deltas tell of no call in a null, and of no refusal either
            body = plain(body)
            reply = plain(reply)
        assert body == reply


@FORMATS
def test_the_text_of_the_events_is_the_text_of_the_body(format):
    for events, _ in scripted(format):
        total = accumulator(format)
        text = "".join(map(total.add, events))
        assert text in ("", "Hello there, this is a text of several words.", "I look.", "Cut")
        assert json.dumps(text)[1:-1] in json.dumps(total.body())
        assert bool(text) == any(map(str.strip, map(accumulator(format).add, events)))


@pytest.mark.parametrize("name", ANTHROPIC)
def test_a_message_that_breaks_off_is_as_far_as_the_sdk_has_it(name):
    total, snapshot, buffers = accumulator("anthropic"), None, {}
    for event in ANTHROPIC[name]:
        total.add(event)
        if event["type"] == "ping":
            continue
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers, request_headers={})
        ours, theirs = plain(total.body()), plain(snapshot.to_dict(mode="json"))
        for block, other in zip(ours["content"], theirs["content"], strict=True):
            if "" in (block.get("input") or {}):  # arguments that are no JSON yet, which the SDK completes by guess
                block["input"] = other["input"]
        assert ours == theirs


@pytest.mark.parametrize("name", CHAT)
def test_a_completion_that_breaks_off_is_as_far_as_the_sdk_has_it(name):
    total, state = accumulator("openai-chat"), ChatCompletionStreamState()
    for event in CHAT[name]:
        total.add(event)
        state.handle_chunk(ChatCompletionChunk.model_validate(event))
        assert plain(total.body()) == plain(state.current_completion_snapshot.to_dict(mode="json"))


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_that_breaks_off_holds_what_its_deltas_came_to(name):
    events = RESPONSES[name]
    final = events[-1]["response"].get("output") or [
        event["item"] for event in events if event["type"] == "response.output_item.done"
    ]
    body = response_body("openai-responses", events[:-1])
    assert (body["output"], body["status"]) == (final, "in_progress")
    grown = response_body("openai-responses", [
        event for event in events[:-1] if not event["type"].endswith(".done")
    ])["output"]  # fmt: skip
    for item, whole in zip(grown, final, strict=True):
        assert {**item, "status": ""} == {**whole, "status": ""}


@pytest.mark.parametrize("name", GEMINI)
def test_a_stream_of_gemini_that_breaks_off_is_what_its_chunks_came_to(name):
    for count in range(len(GEMINI[name])):
        body = response_body("gemini", GEMINI[name][:count])
        texts = [
            part["text"]
            for event in GEMINI[name][:count]
            for each in event.get("candidates", ())
            for part in each.get("content", {}).get("parts", ())
            if "text" in part and each["index"] == 0
        ]
        parts = body["candidates"][0]["content"]["parts"] if body["candidates"] else []
        assert "".join(part.get("text", "") for part in parts) == "".join(texts)


# Streams that the SDKs refuse, or that servers other than the provider's own send


def test_arguments_that_break_off_are_kept_as_they_came():
    events = anthropic(use("write", '{"path": "a.py", "content": "de'), stop="max_tokens")
    (block,) = response_body("anthropic", events)["content"]
    assert block["input"] == {"": '{"path": "a.py", "content": "de'}
    events = anthropic(use("write", "[1]"), stop="tool_use")
    assert response_body("anthropic", events)["content"][0]["input"] == {"": "[1]"}


def test_a_message_without_its_beginning_still_adds_up():
    body = response_body("anthropic", anthropic(words("Hi"))[2:])
    assert body == {
        "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn",
        "usage": {"output_tokens": 15},
    }  # fmt: skip
    events = [event for event in anthropic(words("Hi"), use("ls", "{}")) if event["type"] != "content_block_start"]
    assert [block.get("text") for block in response_body("anthropic", events)["content"]] == ["Hi", None]


def test_blocks_and_deltas_without_a_number_follow_each_other():
    events = [
        {key: value for key, value in event.items() if key != "index"}
        for event in anthropic(words("Hi"), use("ls", '{"a"', ": 1}"))
    ]
    text, used = response_body("anthropic", events)["content"]
    assert (text["text"], used["input"]) == ("Hi", {"a": 1})


def test_deltas_that_nobody_knows_are_added_to_their_block():
    block = {"type": "odd", "odd": "", "list": ["a"]}
    deltas = ({"type": "odd_delta", "odd": "x"}, {"type": "odd_delta", "odd": "y", "list": ["b"], "n": 1})
    (grown,) = response_body("anthropic", anthropic((block, *deltas)))["content"]
    assert grown == {"type": "odd", "odd": "xy", "list": ["a", "b"], "n": 1}


def test_a_model_that_takes_over_in_mid_stream_is_the_model_of_the_message():
    block = {"type": "fallback", "from": {"model": "claude-x"}, "to": {"model": "claude-y"}}
    assert response_body("anthropic", anthropic((block,), words("Hi")))["model"] == "claude-y"


@pytest.mark.parametrize(
    ("format", "events", "error"),
    [
        ("anthropic", [*anthropic(words("Hi"))[:4], {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}],
         {"type": "overloaded_error", "message": "x"}),
        ("openai-chat", [chunk({"content": "Hi"}), {"error": {"message": "x", "code": 502}}], {"message": "x", "code": 502}),
        ("openai-chat", [chunk({"content": "Hi"}), {"error": "x"}], {"message": "x"}),
        ("openai-responses", [*RESPONSES["text"][:6], {"type": "error", "code": "c", "message": "x", "sequence_number": 9}],
         {"code": "c", "message": "x"}),
        ("openai-responses", RESPONSES["failed"], {"code": "server_error", "message": "It failed."}),
        ("gemini", [GEMINI["text"][0], {"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}],
         {"code": 503, "message": "x", "status": "UNAVAILABLE"}),
    ],
)  # fmt: skip
def test_an_error_in_mid_stream_is_reported_beside_what_came_before(format, events, error):
    total = accumulator(format)
    for event in events:
        total.add(event)
    assert total.error == error
    assert total.complete is (error.get("code") == "server_error")
    assert "H" in json.dumps(total.body())


def test_choices_do_not_run_into_each_other():
    body = response_body("openai-chat", CHAT["two choices"])
    assert [choice["message"]["content"] for choice in body["choices"]] == ["Hello", "Hola"]
    assert [choice["finish_reason"] for choice in body["choices"]] == ["stop", "length"]
    body = response_body("gemini", GEMINI["two candidates"])
    assert [each["content"]["parts"] for each in body["candidates"]] == [[{"text": "Hello"}], [{"text": "Hola"}]]


@pytest.mark.parametrize(
    "pieces",
    [
        [call(0, "call_a", "read", '{"a": 1}'), call(0, "call_b", "ls", "{}")],
        [{**call(0, "call_a", "read", '{"a": 1}'), "index": None}, {**call(0, "call_b", "ls", "{}"), "index": None}],
        [call(0, "call_a", "read", '{"a": '), call(0, "call_a", "read", "1}"), call(1, "call_b", "ls", "{}")],
        [call(0, "call_a", "read", '{"a": '), call(0, "", "", "1}"), call(1, "call_b", "ls", "{}")],
        [call(1, "call_b", "ls", "{}"), call(0, "call_a", "read", '{"a": 1}')],
        [call(0, "call_a", "re", '{"a": 1}'), call(0, name="ad"), call(1, "call_b", "ls", "{}")],
    ],
    ids=["numbered alike", "not numbered", "names repeated", "empty names", "out of order", "a name in pieces"],
)
def test_calls_are_told_apart_however_a_server_numbers_them(pieces):
    body = response_body(
        "openai-chat", [*(chunk({"tool_calls": [piece]}) for piece in pieces), chunk(finish="tool_calls")]
    )
    calls = body["choices"][0]["message"]["tool_calls"]
    assert calls == [
        {"id": "call_a", "type": "function", "function": {"name": "read", "arguments": '{"a": 1}'}},
        {"id": "call_b", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
    ]


def test_calls_without_ids_and_numbers_begin_with_their_names():
    pieces = [
        {"function": {"name": "ls", "arguments": "{"}},
        {"function": {"arguments": "}"}},
        {"function": {"name": "ls"}},
    ]
    body = response_body("openai-chat", [chunk({"tool_calls": [piece]}) for piece in pieces])
    assert [call["function"] for call in body["choices"][0]["message"]["tool_calls"]] == [
        {"name": "ls", "arguments": "{}"}, {"name": "ls"},
    ]  # fmt: skip


def test_a_custom_call_keeps_its_type():
    piece = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** "}}
    more = {"index": 0, "custom": {"input": "Begin"}}
    body = response_body("openai-chat", [chunk({"tool_calls": [piece]}), chunk({"tool_calls": [more]})])
    assert body["choices"][0]["message"]["tool_calls"] == [
        {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    ]


def test_a_role_that_every_chunk_repeats_is_one_role():
    body = response_body("openai-chat", [chunk({"role": "assistant", "content": piece}) for piece in ("a", "b")])
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "ab"}


def test_details_of_another_type_are_another_detail_whatever_their_number():
    details = [
        {"type": "reasoning.summary", "summary": "Let ", "index": 0}, {"type": "reasoning.summary", "summary": "me.", "index": 0},
        {"type": "reasoning.encrypted", "data": "gAAA=", "id": "rs_1", "index": 0},
    ]  # fmt: skip
    body = response_body("openai-chat", [chunk({"reasoning_details": [detail]}) for detail in details])
    assert body["choices"][0]["message"]["reasoning_details"] == [
        {"type": "reasoning.summary", "summary": "Let me.", "index": 0}, details[2],
    ]  # fmt: skip


def test_content_that_comes_as_parts_and_as_text_is_all_there():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    body = response_body(
        "openai-chat", [chunk({"content": ""}), chunk({"content": [thinking]}), chunk({"content": "Yes"})]
    )
    assert body["choices"][0]["message"]["content"] == [thinking, {"type": "text", "text": "Yes"}]
    body = response_body("openai-chat", [chunk({"content": "So"}), chunk({"content": [thinking]})])
    assert body["choices"][0]["message"]["content"] == [{"type": "text", "text": "So"}, thinking]


def test_a_chunk_before_the_first_choice_takes_no_names():
    first = {**bare(prompt_filter_results=[{"prompt_index": 0}]), "id": "", "model": ""}
    body = response_body("openai-chat", [first, *CHAT["text"]])
    assert (body["id"], body["model"], body["usage"]) == ("chatcmpl-1", "gpt-x", USAGE)
    assert body["prompt_filter_results"] == [{"prompt_index": 0}]


@FORMATS
def test_halves_of_an_emoji_in_two_deltas_are_one_emoji(format):
    halves = ('"A\\ud83d"', '"\\ude00B"')
    deltas = {
        "anthropic": ('{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": %s}}', 0),
        "openai-chat": ('{"choices": [{"index": 0, "delta": {"content": %s}}]}', 0),
        "openai-responses": ('{"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": %s}', 4),
        "gemini": ('{"candidates": [{"content": {"parts": [{"text": %s}]}}]}', 0),
    }  # fmt: skip
    data, before = deltas[format]
    lines = b"".join(f"data: {data % half}\n\n".encode() for half in halves)
    events = [*STREAMS[format]["text"][:before], *(event.json() for event in Decoder().feed(lines))]
    body = response_body(format, events)
    assert "A\U0001f600B" in json.dumps(body, ensure_ascii=False)
    assert msgspec.json.encode(body)
    assert msgspec.json.encode(response_body(format, events[:-1]))


def test_a_response_without_numbers_is_told_by_its_ids():
    events = [
        {key: value for key, value in event.items() if key != "output_index"}
        for event in RESPONSES["reasoning, text and two calls"]
    ]
    assert response_body("openai-responses", events[:-1])["output"] == events[-1]["response"]["output"]


def test_a_part_of_gemini_with_a_signature_stays_by_itself():
    parts = [{"text": "a"}, {"text": "b", "thoughtSignature": "c2ln"}, {"text": "c"}, {"text": "", "thought": True}]
    body = response_body("gemini", [response(candidate(part)) for part in parts])
    assert body["candidates"][0]["content"]["parts"] == parts[:3]


def test_citations_and_log_probabilities_of_gemini_grow():
    body = response_body("gemini", GEMINI["citations"])
    assert [each["uri"] for each in body["candidates"][0]["citationMetadata"]["citations"]] == [
        "https://x",
        "https://y",
    ]


@pytest.mark.parametrize(
    ("event", "format"),
    [
        ({"type": "response.created"}, "openai-responses"),
        ({"type": "message_start"}, "anthropic"),
        ({"object": "chat.completion.chunk"}, "openai-chat"),
        ({"candidates": []}, "gemini"),
        ({"type": "message"}, None),
        ({"type": ["response."]}, None),
        ({}, None),
    ],
)
def test_the_format_of_an_event(event, format):
    assert stream_format(event) == format


# Laws

WORDS = st.sampled_from(
    ["type", "index", "delta", "message", "content", "content_block", "usage", "choices", "candidates", "parts", "text",
     "tool_calls", "function", "name", "id", "arguments", "output_index", "item", "item_id", "response", "output", "part",
     "error", "logprobs", "thought", "finish_reason", "summary", "summary_index", "content_index", "annotation", "citation",
     "partial_json", "usageMetadata", "functionCall", "citationMetadata", "citations", "to", "model", "incomplete_details"]
)  # fmt: skip
KINDS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "text_delta", "input_json_delta",
     "citations_delta", "signature_delta", "odd_delta", "text", "fallback", "error", "response.created", "response.completed",
     "response.output_item.added", "response.output_item.done", "response.content_part.added", "response.output_text.delta",
     "response.output_text.done", "response.reasoning_summary_part.added", "response.function_call_arguments.delta",
     "response.output_text.annotation.added", "response.odd", "response."]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers(-1, 3) | st.floats(allow_nan=False) | KINDS | st.text(max_size=3)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5))
EVENTS = st.builds(lambda kind, rest: {**rest, "type": kind}, KINDS, st.dictionaries(WORDS, VALUES, max_size=6))


@FORMATS
@given(st.lists(EVENTS | st.dictionaries(WORDS, VALUES, max_size=6), max_size=6))
def test_no_events_raise_or_are_changed_or_make_a_body_that_cannot_be_sent(format, events):
    before = copy.deepcopy(events)
    total = accumulator(format)
    for event in events:
        assert isinstance(total.add(event), str)
    assert events == before
    assert isinstance(msgspec.json.decode(msgspec.json.encode(total.body())), dict)
    assert isinstance(total.usage, dict)
    assert total.stop is None or isinstance(total.stop, str)


@given(st.text(max_size=40), st.lists(st.integers(0, 40), max_size=6))
def test_a_text_is_the_same_in_any_pieces(text, cuts):
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:stop] for start, stop in itertools.pairwise(places)]
    body = response_body("anthropic", anthropic(words(*pieces)))
    assert body["content"] == [{"type": "text", "text": text}]
    body = response_body("openai-chat", [chunk({"content": piece, "odd": piece}) for piece in pieces])
    assert body["choices"][0]["message"] == {"role": "assistant", "content": text, "odd": text}
    body = response_body("gemini", [response(candidate({"text": piece})) for piece in pieces])
    assert body["candidates"][0]["content"]["parts"] == ([{"text": text}] if text else [])


@given(st.permutations([(at, piece) for at in range(3) for piece in range(3)]))
def test_calls_in_parallel_are_the_same_in_any_interleaving(order):
    texts = [['{"a"', ": ", f"{at}}}"] for at in range(3)]
    taken = [0, 0, 0]
    deltas, blocks = [], []
    for at, _ in order:
        piece = texts[at][taken[at]]
        taken[at] += 1
        deltas.append(chunk({"tool_calls": [call(at, arguments=piece)]}))
        blocks.append(
            {"type": "content_block_delta", "index": at, "delta": {"type": "input_json_delta", "partial_json": piece}}
        )
    opened = [chunk({"tool_calls": [call(at, f"c{at}", "f", "")]}) for at in range(3)]
    body = response_body("openai-chat", opened + deltas)
    assert [each["function"]["arguments"] for each in body["choices"][0]["message"]["tool_calls"]] == list(
        map("".join, texts)
    )
    starts = [event for event in anthropic(*(use("f", id=f"c{at}") for at in range(3))) if "content_block" in event]
    assert [block["input"] for block in response_body("anthropic", starts + blocks)["content"]] == [
        {"a": at} for at in range(3)
    ]
