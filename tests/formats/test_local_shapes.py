"""Messages of Ollama, Mistral and Cohere keep their own form, also where they are edited or written by us."""

import json

import pytest

import refold
from refold import policies

LONG = "The order was charged twice, since the retry has no key. " * 30
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAADElEQVR4nGNgIAkAAAAmAAEzwzTfAAAAAElFTkSuQmCC"


def ollama(steps=8, named=True):
    messages = [{"role": "user", "content": "Find out why.", "images": [PNG]}]
    for number in range(steps):
        calls = [
            {"function": {"name": "read", "arguments": {"path": f"shop/{number}.py", "lines": [1, 90]}}},
            {"function": {"name": "look", "arguments": {}}},
        ]
        names = [{"tool_name": "read"}, {"tool_name": "look"}] if named else [{}, {}]
        messages += [
            {"role": "assistant", "content": "", "thinking": f"Step {number}.", "tool_calls": calls},
            {"role": "tool", **names[0], "content": f"{number}: {LONG}"},
            {"role": "tool", **names[1], "content": f"look {number}"},
        ]
    return [*messages, {"role": "user", "content": "Go on."}]


def assert_ollamas(messages):
    for message in messages:
        assert message["role"] in ("system", "user", "assistant", "tool")
        assert message["role"] != "tool" or "tool_call_id" not in message
        for call in message.get("tool_calls", ()):
            assert call.keys() == {"function"}
            assert isinstance(call["function"]["arguments"], dict)


@pytest.mark.parametrize("named", [True, False])
def test_what_ollama_sends_is_valid_and_comes_back_as_it_was(named):
    messages = ollama(named=named)
    assert refold.violations(messages) == ()
    repaired = refold.repair(messages)
    assert repaired.plan.empty
    assert all(new is old for new, old in zip(repaired.messages, messages, strict=True))


@pytest.mark.parametrize("policy", policies.names())
def test_ollamas_messages_stay_ollamas_under_every_policy(policy):
    messages = ollama()
    before = json.dumps(messages)
    result = refold.compact(messages, window=2_600, max_output=200, policy=policy, force=True)
    assert result.plan.edits
    assert_ollamas(result.messages)
    assert refold.violations(result.messages) == ()
    assert json.dumps(messages) == before
    assert refold.rewind(result, to=0) == messages


def test_an_interrupted_call_of_ollamas_gets_a_result_that_names_its_tool():
    messages = ollama(1)
    del messages[2]
    repaired = refold.repair(messages)
    assert_ollamas(repaired.messages)
    assert [message.get("tool_name") for message in repaired.messages if message["role"] == "tool"] == ["look", "read"]
    assert refold.violations(repaired.messages) == ()


def test_a_result_without_call_gets_one_in_ollamas_form():
    messages = [{"role": "user", "content": "Go"}, {"role": "tool", "tool_name": "read", "content": "x"}]
    repaired = refold.repair([*messages, {"role": "assistant", "content": "Done."}])
    assert_ollamas(repaired.messages)
    assert repaired.messages[1]["tool_calls"] == [{"function": {"name": "read", "arguments": {}}}]


def test_pictures_and_thinking_of_ollamas_are_counted_as_such():
    plain = [{"role": "user", "content": "What is it?"}, {"role": "assistant", "content": "A cat."}]
    picture = [{**plain[0], "images": [PNG * 400]}, plain[1]]
    thinking = [plain[0], {**plain[1], "thinking": "word " * 200}]
    assert refold.count(picture) - refold.count(plain) < 3_000
    assert 190 < refold.count(thinking) - refold.count(plain) < 260


def cohere(steps=6):
    messages = [{"role": "user", "content": "Find out why."}]
    for number in range(steps):
        call = {"id": f"read_{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        data = {"text": f"{number}: {LONG}"}
        messages += [
            {"role": "assistant", "tool_plan": f"I will read file {number}.", "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": f"read_{number}",
                "content": [{"type": "document", "document": {"data": data}}],
            },
        ]
    return [*messages, {"role": "user", "content": "Go on."}]


def test_documents_of_coheres_tools_are_no_other_providers_blocks():
    messages = cohere()
    assert refold.violations(messages) == ()
    assert refold.repair(messages).plan.empty


def test_documents_of_coheres_tools_are_read_and_shortened_as_words():
    result = refold.compact(cohere(), window=2_000, max_output=200, policy="wolffish", force=True)
    blocks = [block for message in result.messages if message["role"] == "tool" for block in message["content"]]
    assert result.plan.edits
    assert {block["type"] for block in blocks} <= {"document", "text"}
    assert refold.violations(result.messages) == ()


def test_a_plan_of_coheres_is_counted():
    messages = cohere(1)
    plan = {**messages[1], "tool_plan": "word " * 200}
    assert refold.count([messages[0], plan, *messages[2:]]) - refold.count(messages) > 180


def test_thinking_in_chunks_is_read_as_thinking():
    chunk = {"type": "thinking", "thinking": [{"type": "text", "text": "word " * 200}]}
    spoken = {"role": "assistant", "content": [chunk, {"type": "text", "text": "Done."}]}
    messages = [{"role": "user", "content": "Go"}, spoken, {"role": "user", "content": "And?"}]
    kinds = refold.check(messages, window=10_000).breakdown.kinds
    assert 190 < kinds["reasoning"] < 260
    assert refold.repair(messages).plan.empty
