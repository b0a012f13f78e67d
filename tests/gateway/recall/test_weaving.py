"""Answers of a kind that the scripted provider does not give, joined over two rounds."""

import json

import pytest

from refold._gateway.recall.anthropic import AnthropicMerger
from refold._gateway.recall.gemini import GeminiMerger
from refold._gateway.recall.openai_chat import OpenAIChatMerger
from refold._gateway.recall.openai_responses import OpenAIResponsesMerger
from refold._gateway.recall.response_merger import added, asking, sound
from refold._gateway.recall.tool import NAME, offered
from refold._gateway.wire.body import continued, opened
from refold._gateway.wire.routes import DIALECTS
from refold.formats._streaming.accumulate import response_body
from tests.gateway.scripted_upstream import chat

FORMATS = {
    AnthropicMerger: "anthropic",
    OpenAIChatMerger: "openai-chat",
    GeminiMerger: "gemini",
    OpenAIResponsesMerger: "openai-responses",
}
ASKED = '{"query": "a.py"}'


def body_of(weaver, events):
    """The events of one round as the body of an answer that is not streamed."""
    return response_body(FORMATS[type(weaver)], events)


def rounds(weaver, *streams):
    """Weave streams of events as the gateway does: all that is held goes at once when its round ends."""
    out = []
    for place, events in enumerate(streams):
        said = weaver.read_round(body_of(weaver, events))
        held = next((at for at, event in enumerate(events) if weaver.starts_recall(event)), len(events))
        if isinstance(weaver, OpenAIResponsesMerger):
            while held < len(events) and held and events[held - 1].get("item", {}).get("type") == "reasoning":
                held -= 1
        closing = place == len(streams) - 1
        for at, event in enumerate(events):
            if at == held:
                weaver.dropped = said.dropped
            out += weaver.merge_event(event, closing=closing or at < held)
        if not closing:
            weaver.follows(said)
    return out


def block(index, start, *deltas):
    yield {"type": "content_block_start", "index": index, "content_block": start}
    yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop", "index": index}


def anthropic(*blocks, stop, used=(10, 5)):
    usage = {"input_tokens": used[0], "cache_read_input_tokens": 100, "output_tokens": 1}
    events = [{"type": "message_start", "message": {"id": f"msg_{used[0]}", "role": "assistant", "usage": usage}}]
    for place, (start, *deltas) in enumerate(blocks):
        events += block(place, start, *deltas)
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": used[1]}})
    return [*events, {"type": "message_stop"}]


THOUGHT = (
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Where was "},
    {"type": "thinking_delta", "thinking": "it?"},
    {"type": "signature_delta", "signature": "sealed"},
)
RECALL = (
    {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": {}},
    {"type": "input_json_delta", "partial_json": '{"query": '},
    {"type": "input_json_delta", "partial_json": '"a.py"}'},
)
OWN = (
    {"type": "tool_use", "id": "toolu_2", "name": "edit", "input": {}},
    {"type": "input_json_delta", "partial_json": "{}"},
)


def test_thinking_before_a_recall_stays_before_the_call_that_follows():
    weaver = AnthropicMerger()
    first, second = anthropic(THOUGHT, RECALL, stop="tool_use"), anthropic(OWN, stop="tool_use", used=(30, 7))
    said = weaver.read_round(body_of(weaver, first))
    thought = {"type": "thinking", "thinking": "Where was it?", "signature": "sealed"}
    assert said.only
    assert said.turn[0]["content"] == [thought, {**RECALL[0], "input": {"query": "a.py"}}]
    out = rounds(AnthropicMerger(), first, second)
    whole = body_of(AnthropicMerger(), out)
    assert [each["type"] for each in whole["content"]] == ["thinking", "tool_use"]
    assert whole["content"][0] == thought
    assert whole["content"][1]["id"] == "toolu_2"
    assert [event["index"] for event in out if event["type"] == "content_block_start"] == [0, 1]
    assert whole["usage"] == {"input_tokens": 40, "cache_read_input_tokens": 200, "output_tokens": 12}
    assert whole["id"] == "msg_10"
    assert sum(event["type"] == "message_start" for event in out) == 1
    assert out[-1]["type"] == "message_stop"


def test_whole_and_streamed_answers_of_two_rounds_say_the_same():
    first, second = anthropic(THOUGHT, RECALL, stop="tool_use"), anthropic(OWN, stop="tool_use", used=(30, 7))
    weaver = AnthropicMerger()
    whole = weaver.joined([body_of(weaver, first), body_of(weaver, second)])
    assert whole == body_of(AnthropicMerger(), rounds(AnthropicMerger(), first, second))


def responses(*items, id, used):
    begun = {"id": id, "status": "in_progress", "output": [], "tools": [{"name": "edit"}, {"name": NAME}]}
    events = [{"type": "response.created", "response": begun}]
    for place, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": place, "item": item})
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    ended = {**begun, "status": "completed", "output": list(items), "usage": {"input_tokens": used, "output_tokens": 1}}
    events.append({"type": "response.completed", "response": ended})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def reasoning(name, sealed=None):
    return {"type": "reasoning", "id": f"rs_{name}", "summary": [], "encrypted_content": sealed}


WORDS = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}
ASKS = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": NAME, "arguments": ASKED}
EDITS = {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "edit", "arguments": "{}"}


def test_reasoning_that_leads_to_a_recall_goes_with_it():
    first = responses(reasoning("a"), WORDS, reasoning("b"), ASKS, id="r1", used=10)
    second = responses(reasoning("c"), EDITS, id="r2", used=30)
    out = rounds(OpenAIResponsesMerger(), first, second)
    last = out[-1]["response"]
    assert [item["id"] for item in last["output"]] == ["rs_a", "m1", "rs_c", "fc_2"]
    assert last["id"] == "r2", "whoever goes on after this answer goes on after all its rounds"
    assert last["usage"] == {"input_tokens": 40, "output_tokens": 2}
    assert not any(NAME in json.dumps(event) for event in out)
    assert [event["sequence_number"] for event in out] == list(range(len(out)))
    done = [event for event in out if event["type"] == "response.output_item.done"]
    assert [event["output_index"] for event in done] == [0, 1, 2, 3]
    weaver = OpenAIResponsesMerger()
    joined = weaver.joined([body_of(weaver, first), body_of(weaver, second)])
    assert joined == last


@pytest.mark.parametrize(
    ("output", "left"),
    [
        ([reasoning("a"), ASKS, EDITS], ["rs_a", "fc_2"]),
        ([reasoning("a"), EDITS, ASKS], ["rs_a", "fc_2"]),
        ([reasoning("a"), reasoning("b"), ASKS, ASKS, EDITS], ["rs_a", "rs_b", "fc_2"]),
        ([reasoning("a"), ASKS, reasoning("b"), EDITS], ["rs_b", "fc_2"]),
        ([reasoning("a"), EDITS, reasoning("b"), ASKS], ["rs_a", "fc_2"]),
        ([reasoning("a"), reasoning("b"), ASKS], []),
    ],
)
def test_reasoning_that_leads_to_the_clients_call_as_well_stays_before_it(output, left):
    events = responses(*output, id="r1", used=10)
    weaver = OpenAIResponsesMerger()
    body = body_of(weaver, events)
    assert [call.id for call in weaver.read_round(body).others] == ["c2"] * bool(left)
    joined = weaver.joined([body])["output"]
    assert [item["id"] for item in joined] == (left or ["msg_refold"])
    assert rounds(OpenAIResponsesMerger(), events)[-1]["response"]["output"] == joined


def gemini(*parts, apart):
    """Parts in an event each, or in one; the last event ends the answer."""
    groups = [[part] for part in parts] if apart else [list(parts)]
    events = [{"candidates": [{"content": {"role": "model", "parts": group}, "index": 0}]} for group in groups]
    events[-1]["candidates"][0]["finishReason"] = "STOP"
    return [{**event, "usageMetadata": {"promptTokenCount": 5}} for event in events]


def made(name, signature=None):
    part = {"functionCall": {"name": name, "args": {}, "id": name}}
    return {**part, "thoughtSignature": signature} if signature else part


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("parts", "left"),
    [
        ([made(NAME, "s"), made("a"), made("b")], [made("a", "s"), made("b")]),
        ([made(NAME, "s"), made(NAME), made("a")], [made("a", "s")]),
        ([made("a", "s"), made(NAME), made("b")], [made("a", "s"), made("b")]),
        ([made(NAME, "s"), made("a", "t")], [made("a", "t")]),
        ([{"text": "So."}, made(NAME, "s"), made("a")], [{"text": "So."}, made("a", "s")]),
    ],
)
def test_the_signature_of_calls_made_at_once_stays_with_the_first_one_left(parts, left, apart):
    weaver = GeminiMerger()
    events = gemini(*parts, apart=apart)
    (said,) = weaver.joined([body_of(weaver, events)])["candidates"]
    assert said["content"]["parts"] == left
    assert weaver.read_round(body_of(weaver, events)).turn[0]["parts"] == parts
    assert body_of(GeminiMerger(), rounds(GeminiMerger(), events))["candidates"][0]["content"]["parts"] == left


def test_the_signature_of_a_recall_alone_is_not_the_next_rounds():
    first, second = gemini(made(NAME, "s"), apart=True), gemini(made("a"), apart=True)
    out = body_of(GeminiMerger(), rounds(GeminiMerger(), first, second))
    assert out["candidates"][0]["content"]["parts"] == [made("a")]
    weaver = GeminiMerger()
    joined = weaver.joined([body_of(weaver, first), body_of(weaver, second)])
    assert joined["candidates"][0]["content"]["parts"] == [made("a")]


def test_a_signature_in_a_call_of_chat_stays_with_the_first_one_left():
    seal = {"extra_content": {"google": {"thought_signature": "s"}}}
    calls = [{**ours(), **seal}, *({"id": id, "type": "function", "function": {"name": "a"}} for id in ("c2", "c3"))]
    body = {"choices": [{"message": {"role": "assistant", "tool_calls": calls}, "finish_reason": "tool_calls"}]}
    (choice,) = OpenAIChatMerger().joined([body])["choices"]
    left = [{**calls[1], **seal}, calls[2]]
    assert choice["message"]["tool_calls"] == left

    def chunk(delta, finish=None):
        return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events = [chunk({"tool_calls": [{**call, "index": place}]}) for place, call in enumerate(calls)]
    out = rounds(OpenAIChatMerger(), [chunk({"role": "assistant"}), *events, chunk({}, "tool_calls")])
    (choice,) = body_of(OpenAIChatMerger(), out)["choices"]
    assert choice["message"]["tool_calls"] == left
    first = rounds(OpenAIChatMerger(), [chunk({"role": "assistant"}), events[1], chunk({}, "tool_calls")])
    assert "extra_content" not in json.dumps(first)


@pytest.mark.parametrize("sealed", [None, "sealed"])
def test_what_is_not_kept_upstream_goes_back_without_what_only_the_keeper_knows(sealed):
    body = body_of(OpenAIResponsesMerger(stored=False), responses(reasoning("a", sealed), ASKS, id="r1", used=10))
    turn = OpenAIResponsesMerger(stored=False).read_round(body).turn
    if sealed:
        assert turn == [reasoning("a", sealed), ASKS]
    else:
        assert turn == [{key: value for key, value in ASKS.items() if key != "id"}]
    assert OpenAIResponsesMerger(stored=True).read_round(body).turn == [reasoning("a", sealed), ASKS]


def test_a_call_that_was_cut_is_not_answered():
    events = anthropic(THOUGHT, (*RECALL[:2],), stop="max_tokens")
    weaver = AnthropicMerger()
    said = weaver.read_round(body_of(weaver, events))
    assert said.recalls
    assert not said.only
    body = {"choices": [{"message": {"tool_calls": [ours()]}, "finish_reason": "length"}]}
    assert not OpenAIChatMerger().read_round(body).only
    assert not OpenAIResponsesMerger().read_round({"status": "incomplete", "output": [ASKS]}).only
    part = {"functionCall": {"name": NAME, "args": {}}}
    assert (
        not GeminiMerger()
        .read_round({"candidates": [{"content": {"parts": [part]}, "finishReason": "MAX_TOKENS"}]})
        .only
    )


def ours(arguments=ASKED):
    return {"id": "c1", "type": "function", "function": {"name": NAME, "arguments": arguments}}


def test_pieces_of_a_chat_message_are_put_together():
    def chunk(delta, finish=None):
        return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    head = {"index": 0, "id": "c1", "type": "function", "function": {"name": NAME, "arguments": ""}}
    events = [
        chunk({"role": "assistant", "content": "", "reasoning_content": "Hm"}),
        chunk({"reasoning_content": "m."}),
        chunk({"tool_calls": [head]}),
        *(chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in (ASKED[:5], ASKED[5:])),
        chunk({}, "tool_calls"),
    ]
    weaver = OpenAIChatMerger()
    assert [weaver.starts_recall(event) for event in events] == [False, False, True, False, False, False]
    assert weaver.is_preamble(chunk({"role": "assistant", "content": ""}))
    assert not weaver.is_preamble(events[0])
    said = weaver.read_round(body_of(weaver, events))
    assert said.only
    assert said.turn == [{"role": "assistant", "content": "", "reasoning_content": "Hmm.", "tool_calls": [ours()]}]


def chunk(delta, finish=None):
    return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


OTHER = {"id": "c2", "type": "function", "function": {"name": "edit", "arguments": "{}"}}


@pytest.mark.parametrize("numbers", [(0, 1), (1, 2), (0, 0), (None, None)])
@pytest.mark.parametrize("first", [True, False])
def test_a_recall_is_left_out_however_a_server_numbers_its_calls(numbers, first):
    calls = [ours(), OTHER] if first else [OTHER, ours()]
    numbered = [
        {**call, **({} if number is None else {"index": number})} for call, number in zip(calls, numbers, strict=True)
    ]
    events = [*(chunk({"tool_calls": [call]}) for call in numbered), chunk({}, "tool_calls")]
    said = OpenAIChatMerger().read_round(body_of(OpenAIChatMerger(), events))
    assert [call.id for call in said.recalls] == ["c1"]
    assert [call.name for call in said.others] == ["edit"]
    out = rounds(OpenAIChatMerger(), events)
    assert not any(NAME in json.dumps(event) for event in out)
    (call,) = (call for event in out for call in event["choices"][0]["delta"].get("tool_calls", ()))
    assert call == {**OTHER, "index": 0}


def test_a_name_that_a_server_repeats_is_still_the_tools():
    piece = {"index": 0, "id": "c1", "type": "function", "function": {"name": NAME, "arguments": ASKED[:5]}}
    events = [
        chunk({"role": "assistant", "tool_calls": [piece]}),
        chunk({"role": "assistant", "tool_calls": [{**piece, "function": {"name": NAME, "arguments": ASKED[5:]}}]}),
        chunk({}, "tool_calls"),
    ]
    said = OpenAIChatMerger().read_round(body_of(OpenAIChatMerger(), events))
    assert said.only
    assert said.turn == [{"role": "assistant", "content": None, "tool_calls": [ours()]}]


def test_fragments_of_reasoning_go_back_as_the_details_they_are_of():
    details = [{"type": "reasoning.text", "text": text, "index": 0} for text in ("Let ", "me.")]
    sealed = {"type": "reasoning.text", "signature": "s=", "index": 0}
    events = [chunk({"reasoning_details": [detail]}) for detail in (*details, sealed)]
    events += [chunk({"tool_calls": [{**ours(), "index": 0}]}), chunk({}, "tool_calls")]
    (turn,) = OpenAIChatMerger().read_round(body_of(OpenAIChatMerger(), events)).turn
    assert turn["reasoning_details"] == [{"type": "reasoning.text", "text": "Let me.", "signature": "s=", "index": 0}]


def test_half_an_emoji_is_sent_on_as_half_an_emoji():
    assert OpenAIChatMerger().event(chunk({"content": "A\ud83d"})).count(b'"A\\ud83d"') == 1


def test_reports_are_summed_figure_by_figure():
    first = {"prompt_tokens": 5, "details": {"cached_tokens": 2, "kind": "a"}, "tier": "x", "gone": None}
    second = {"prompt_tokens": 7, "details": {"cached_tokens": 3, "more": 1}, "tier": "y", "list": [1]}
    assert added(first, second) == {
        "prompt_tokens": 12, "details": {"cached_tokens": 5, "kind": "a", "more": 1}, "tier": "y", "gone": None,
        "list": [1],
    }  # fmt: skip


def test_arguments_are_read_whatever_a_model_makes_of_them():
    assert asking(ASKED).query == "a.py"
    assert asking({"query": "a", "from_line": "7"}).from_line == 0
    assert asking({"query": "a", "from_line": 7.0}).from_line == 7
    assert asking("just words").query == "just words"
    assert asking(None).query == asking("[]").query == asking({"query": 5}).query == ""
    assert sound(ASKED) == ASKED
    assert json.loads(sound("{broken")) == {"query": "{broken"}


@pytest.mark.parametrize("place", ["before", "after", "grown", "none", "empty", "null"])
def test_the_tool_is_put_beside_the_clients_own_which_keep_their_bytes(place):
    own = {"type": "function", "function": {"name": "edit", "parameters": {"x": 1.10}}}
    body = chat(2)
    text = json.dumps(body)
    tools = {"empty": "[ ]", "null": "null"}.get(place, "[" + json.dumps(own).replace("1.1", "1.10") + " ]")
    at = {"before": f'{{"tools": {tools}, {text[1:]}', "none": text}.get(place, text[:-1] + f', "tools": {tools}}}')
    raw = at.encode()
    found = opened(raw, "messages")
    if place == "grown":
        longer = json.dumps({**chat(3)})[:-1].encode() + f', "tools": {tools}}}'.encode()
        found = continued(found, longer)
    offer = offered(found, DIALECTS["chat"], b'{"role": "user", "content": "hi"}', "/v1/chat/completions", "")
    held = json.loads(offer.body)
    names = [tool["function"]["name"] for tool in held["tools"]]
    assert names == (["edit", NAME] if place in ("before", "after", "grown") else [NAME])
    assert held["messages"] == [{"role": "user", "content": "hi"}]
    assert held["model"] == "gpt-4o"
    if len(names) > 1:
        assert b"1.10" in offer.body
    longer = offer.followed([{"role": "user", "content": "more"}])
    assert longer.body.startswith(offer.head + offer.messages)
    assert len(json.loads(longer.body)["messages"]) == 2


@pytest.mark.parametrize(
    ("dialect", "more", "query"),
    [
        ("chat", {"n": 2}, ""),
        ("chat", {"functions": [{"name": "f"}]}, ""),
        ("chat", {"tools": [{"type": "function", "function": {"name": NAME}}]}, ""),
        ("responses", {"background": True}, ""),
        ("gemini", {"generationConfig": {"responseMimeType": "application/json"}}, "alt=sse"),
        ("gemini", {"tools": [{"googleSearch": {}}]}, "alt=sse"),
        ("gemini", {}, ""),
    ],
)
def test_where_it_has_no_place_the_tool_is_not_offered(dialect, more, query):
    of = DIALECTS[dialect]
    raw = json.dumps({"model": "m", of.messages: [{"role": "user"}], **more}).encode()
    assert offered(opened(raw, of.messages), of, b"{}", "/v1beta/models/m:streamGenerateContent", query) is None
    plain = json.dumps({"model": "m", of.messages: [{"role": "user"}]}).encode()
    assert offered(opened(plain, of.messages), of, b"{}", "/v1beta/models/m:streamGenerateContent", "alt=sse")
