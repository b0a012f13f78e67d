"""Anthropic's own compaction, asked for by its SDK and answered by the gateway."""

import gzip
import json

import anthropic
import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from tests.gateway.native.upstream import anthropic_turns, ignorant
from tests.gateway.scripted_upstream import call, upstream, whole
from tests.gateway.talking import opened

TOOLS = [{"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}]
BETAS = ["context-management-2025-06-27", "compact-2026-01-12"]
CLEAR = {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 5_000}}
COMPACT = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 20_000}}
GO = {"role": "user", "content": "Go through the modules. Never touch setup.py."}


@pytest.fixture
def ask(gateway):
    serving, provider = gateway(behave=ignorant, window=200_000, limit=200_000)
    client = opened(anthropic.Anthropic(base_url=serving.url, api_key="k", max_retries=0))

    def make(messages, *edits, streaming=False, **more):
        given = {"model": "claude-opus-4-6", "max_tokens": 500, "tools": TOOLS, "betas": BETAS, "messages": messages}
        given |= {"context_management": {"edits": list(edits)}} if edits else {}
        if streaming:
            with client.beta.messages.stream(**given, **more) as stream:
                return stream.get_final_message()
        return client.beta.messages.create(**given, **more)

    make.provider, make.serving, make.client = provider, serving, client
    return make


def sent(ask):
    return str(ask.provider.received[-1].body)


def echoed(message):
    return {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]}


both = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])


@both
def test_what_claude_code_sends_unasked_is_answered(ask, streaming):
    message = ask([GO], {"type": "clear_thinking_20251015", "keep": "all"}, streaming=streaming)
    assert message.content[0].text == "Answer 1."
    assert message.context_management.applied_edits == []


@both
def test_old_tool_results_are_cleared_and_the_answer_says_so(ask, streaming):
    message = ask([GO, *anthropic_turns(0, 10)], CLEAR, streaming=streaming)
    (applied,) = message.context_management.applied_edits
    assert (applied.type, applied.cleared_tool_uses) == ("clear_tool_uses_20250919", 7)
    assert applied.cleared_input_tokens > 5_000
    assert "number 6030" not in sent(ask)
    assert "number 7030" in sent(ask)
    assert "src/m6.py" in sent(ask)


@both
def test_a_compaction_begins_the_answer_and_stands_for_what_was_before(ask, streaming):
    history = [GO, *anthropic_turns(0, 30)]
    message = ask(history, COMPACT, streaming=streaming)
    block, text = message.content
    assert (block.type, text.text) == ("compaction", "Answer 1.")
    assert "setup.py" in block.content
    assert block.signature is None
    assert [each.type for each in message.usage.iterations] == ["compaction", "message"]
    assert message.usage.iterations[1].input_tokens == message.usage.input_tokens > 0
    first = ask.provider.received[-1]
    # the client sends the block and what came after alone, and the same bytes go upstream
    answer = ask([echoed(message), {"role": "user", "content": "Which module was first?"}], COMPACT)
    assert [block.type for block in answer.content] == ["text"]
    second = ask.provider.received[-1]
    assert second.body["messages"][: len(first.body["messages"])] == first.body["messages"]
    # or all of it, as the documentation has it
    ask([*history, echoed(message), {"role": "user", "content": "Which module was first?"}], COMPACT)
    assert ask.provider.received[-1].body == second.body


@both
def test_an_answer_may_pause_after_the_compaction(ask, streaming):
    pausing = {**COMPACT, "pause_after_compaction": True}
    message = ask([GO, *anthropic_turns(0, 30)], pausing, streaming=streaming)
    assert [block.type for block in message.content] == ["compaction"]
    assert message.stop_reason == "compaction"
    assert not ask.provider.received
    answer = ask([GO, *anthropic_turns(0, 30), echoed(message)], pausing, streaming=streaming)
    assert answer.content[-1].text == "Answer 1."
    assert len(sent(ask)) < 80_000


@both
def test_a_compaction_on_demand_is_answered_without_the_model_and_loses_nothing(ask, streaming):
    message = ask([GO, *anthropic_turns(0, 8)], compaction={"type": "summarize"}, streaming=streaming)
    assert [block.type for block in message.content] == ["compaction"]
    assert message.stop_reason == "compaction"
    assert not ask.provider.received
    ask([echoed(message), {"role": "user", "content": "Go on."}])
    first, last = ask.provider.received[-1].messages[0], ask.provider.received[-1].messages[-1]
    assert "setup.py" in str(first)
    assert "Go on." in str(last)


def test_a_block_whose_history_is_gone_is_sent_as_the_words_it_holds(ask):
    message = ask([GO, *anthropic_turns(0, 8)], compaction={"type": "summarize"})
    (session,) = json.loads(call(ask.serving.url, "GET", "/v1/sessions")[2])["sessions"]
    assert call(ask.serving.url, "DELETE", f"/v1/sessions/{session['id']}")[0] == 200
    ask([echoed(message), {"role": "user", "content": "Go on."}])
    (first, *_) = ask.provider.received[-1].body["messages"]
    assert "setup.py" in first["content"][0]["text"]


def test_a_block_of_the_provider_is_sent_as_the_words_it_holds(ask):
    block = {"type": "compaction", "content": "The parser was ported.", "signature": "of the provider"}
    answer = ask([{"role": "assistant", "content": [block]}, {"role": "user", "content": "Go on."}])
    assert answer.content[0].text == "Answer 1."
    assert "The parser was ported." in sent(ask)


def test_tokens_are_counted_without_what_upstream_does_not_know(ask):
    counted = ask.client.beta.messages.count_tokens(
        model="claude-opus-4-6", messages=[GO], betas=BETAS, context_management={"edits": [CLEAR]}
    )
    assert counted.input_tokens > 0


@both
def test_thinking_of_older_turns_is_cleared_and_the_answer_says_so(ask, streaming):
    messages = [GO]
    for number in range(3):
        thought = {"type": "thinking", "thinking": f"thought {number}", "signature": f"sig{number:060}"}
        messages.append({"role": "assistant", "content": [thought, {"type": "text", "text": f"Said {number}."}]})
        messages.append({"role": "user", "content": f"And {number}?"})
    keep = {"type": "thinking_turns", "value": 2}
    message = ask(messages, {"type": "clear_thinking_20251015", "keep": keep}, streaming=streaming)
    (applied,) = message.context_management.applied_edits
    assert (applied.type, applied.cleared_thinking_turns) == ("clear_thinking_20251015", 2)
    assert [number for number in range(3) if f"thought {number}" in sent(ask)] == [2]


@pytest.mark.parametrize(("edit", "cleared"), [
    ({"exclude_tools": ["read"]}, 0), ({"keep": {"type": "tool_uses", "value": 9}}, 1),
    ({"clear_at_least": {"type": "input_tokens", "value": 500_000}}, 0),
    ({"trigger": {"type": "tool_uses", "value": 11}}, 0), ({"trigger": {"type": "tool_uses", "value": 10}}, 7),
])  # fmt: skip
def test_an_edit_clears_what_it_names(ask, edit, cleared):
    message = ask([GO, *anthropic_turns(0, 10)], {**CLEAR, **edit})
    assert sum(each.cleared_tool_uses for each in message.context_management.applied_edits) == cleared


def test_an_edit_is_carried_out_although_a_compaction_has_to_follow(gateway):
    serving, provider = gateway(behave=ignorant, window=32_000, limit=32_000, background=False)
    client = opened(anthropic.Anthropic(base_url=serving.url, api_key="k", max_retries=0))
    keep = {"type": "tool_uses", "value": 32}
    message = client.beta.messages.create(
        model="claude-opus-4-6", max_tokens=500, tools=TOOLS, betas=BETAS, messages=[GO, *anthropic_turns(0, 40)],
        context_management={"edits": [{**CLEAR, "keep": keep}]},
    )  # fmt: skip
    (applied,) = message.context_management.applied_edits
    assert (applied.type, applied.cleared_tool_uses) == ("clear_tool_uses_20250919", 8)
    (conversation,) = serving.gateway.tracker.all()
    assert [plan.policy for plan in conversation.plans] == ["clear_tool_uses_20250919", "refold"]
    assert provider.received[-1].tokens < 32_000


def test_arguments_of_named_tools_are_cleared_with_their_results(ask):
    ask([GO, *anthropic_turns(0, 10)], {**CLEAR, "clear_tool_inputs": True})
    inputs = [block.get("input") for message in ask.provider.received[-1].body["messages"]
              for block in message["content"] if isinstance(block, dict) and block["type"] == "tool_use"]  # fmt: skip
    assert inputs[:7] == [{}] * 7
    assert inputs[7:] == [{"path": f"src/m{number}.py"} for number in range(7, 10)]


def test_marks_for_the_cache_in_the_originals_do_not_add_up(ask):
    marked = [GO, *anthropic_turns(0, 30)]
    for message in marked[2::2][-4:]:
        message["content"][-1]["cache_control"] = {"type": "ephemeral"}
    message = ask(marked, COMPACT)
    last = {"role": "user", "content": [{"type": "text", "text": "On.", "cache_control": {"type": "ephemeral"}}]}
    ask([echoed(message), last], COMPACT)
    assert sent(ask).count("cache_control") == 1


DEEP = "[" * 5_000 + "]" * 5_000


@pytest.mark.parametrize(
    ("edits", "content"),
    [
        ([{**CLEAR, "exclude_tools": 5, "clear_tool_inputs": 7}], '"Go."'),
        ([CLEAR], '[{"type": ["compaction"], "text": "Go."}]'),
        ([CLEAR], f'[{{"type": "compaction", "content": {DEEP}}}]'),
    ],
    ids=["no-lists", "no-kind", "deep"],
)
def test_what_cannot_be_read_of_a_request_is_the_providers_business(edits, content):
    with upstream(lambda head, body: whole(b"{}")) as (url, _):
        serving = Serving(GatewaySettings(upstreams={"anthropic": url}, port=0))
        managed = json.dumps({"edits": edits})
        messages = f'[{{"role": "user", "content": {content}}}]'
        body = f'{{"model": "m", "messages": {messages}, "context_management": {managed}}}'
        with serving:
            assert call(serving.url, path="/v1/messages", body=body.encode())[0] == 200


def test_an_answer_that_upstream_compresses_unasked_passes_as_it_is():
    packed = gzip.compress(b'{"type": "message", "content": []}')
    answer = whole(packed).replace(b"content-type", b"content-encoding: gzip\r\ncontent-type", 1)
    body = {"model": "m", "messages": [GO], "context_management": {"edits": [CLEAR]}}
    with upstream(lambda head, body: answer) as (url, _):
        serving = Serving(GatewaySettings(upstreams={"anthropic": url}, port=0))
        with serving:
            _, headers, data = call(serving.url, path="/v1/messages", body=body)
    assert (headers.get("content-encoding"), data) == ("gzip", packed)
