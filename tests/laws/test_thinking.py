"""Thinking of the model goes back to its provider or nowhere: no summarizer, note of ours, event or log line has it."""

import json
import logging

import msgspec
import pytest

import refold
from refold import formats, policies
from refold.core.messages import Reasoning
from refold.errors import RefoldError

THOUGHT = "pondering-quietly-{}"
FILLER = "The nightly build compiles every package and then runs the full test suite. "


def _chat(step):
    call = {"id": f"c{step}", "type": "function", "function": {"name": "read", "arguments": f'{{"path": "{step}.py"}}'}}
    return [
        {"role": "user", "content": f"Step {step}, please. {FILLER * 3}"},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": THOUGHT.format(step),
            "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT.format(step), "format": "unknown"}],
            "tool_calls": [call],
        },
        {"role": "tool", "tool_call_id": f"c{step}", "content": FILLER * 8},
        {"role": "assistant", "content": f"Step {step} is done."},
    ]


def _anthropic(step):
    return [
        {"role": "user", "content": f"Step {step}, please. {FILLER * 3}"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": THOUGHT.format(step), "signature": "c2ln"},
                {"type": "redacted_thinking", "data": THOUGHT.format(step)},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": f"toolu_{step}", "name": "read", "input": {"path": f"{step}.py"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_{step}", "content": FILLER * 8}]},
        {"role": "assistant", "content": [{"type": "text", "text": f"Step {step} is done."}]},
    ]


def _responses(step):
    return [
        {"type": "message", "role": "user", "content": f"Step {step}, please. {FILLER * 3}"},
        {
            "type": "reasoning",
            "id": f"rs_{step}",
            "summary": [{"type": "summary_text", "text": THOUGHT.format(step)}],
            "content": [{"type": "reasoning_text", "text": THOUGHT.format(step)}],
            "encrypted_content": THOUGHT.format(step),
        },
        {"type": "function_call", "call_id": f"call_{step}", "name": "read", "arguments": f'{{"path": "{step}.py"}}'},
        {"type": "function_call_output", "call_id": f"call_{step}", "output": FILLER * 8},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"Step {step} is done."}]},
    ]


def _gemini(step):
    call = {"functionCall": {"name": "read", "args": {"path": f"{step}.py"}}, "thoughtSignature": THOUGHT.format(step)}
    answer = {"functionResponse": {"name": "read", "response": {"output": FILLER * 8}}}
    return [
        {"role": "user", "parts": [{"text": f"Step {step}, please. {FILLER * 3}"}]},
        {"role": "model", "parts": [{"text": THOUGHT.format(step), "thought": True}, {"text": "I look."}, call]},
        {"role": "user", "parts": [answer]},
        {"role": "model", "parts": [{"text": f"Step {step} is done."}]},
    ]


def _bedrock(step):
    thought = {"reasoningContent": {"reasoningText": {"text": THOUGHT.format(step), "signature": "c2ln"}}}
    use = {"toolUse": {"toolUseId": f"tooluse_{step}", "name": "read", "input": {"path": f"{step}.py"}}}
    result = {"toolResult": {"toolUseId": f"tooluse_{step}", "content": [{"text": FILLER * 8}], "status": "success"}}
    return [
        {"role": "user", "content": [{"text": f"Step {step}, please. {FILLER * 3}"}]},
        {"role": "assistant", "content": [thought, {"text": "I look."}, use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"text": f"Step {step} is done."}]},
    ]


MAKERS = {
    "openai-chat": _chat,
    "anthropic": _anthropic,
    "openai-responses": _responses,
    "gemini": _gemini,
    "bedrock": _bedrock,
}
PAIRS = [(format, policy) for format in formats.names() for policy in policies.names()]


class Watcher:
    """A summarizer and observer that writes down all that it is given."""

    def __init__(self):
        self.seen = []

    def summarize(self, need):
        self.seen.append(repr(need))
        return "GOAL: go on. Files were read, step after step, and each step is done. " * 3

    def observe(self, event):
        plan = getattr(event, "plan", None)
        self.seen.append(repr(event) if plan is None else refold.dump_plan(plan).decode())


def test_every_format_has_a_conversation_here():
    assert set(MAKERS) == set(formats.names())
    for format, make in MAKERS.items():
        read = formats.read(formats.find(format), make(1))
        assert any(isinstance(part, Reasoning) for message in read.messages for part in message.parts), format


@pytest.mark.parametrize(("format", "policy"), PAIRS, ids=map("-".join, PAIRS))
def test_no_thinking_reaches_a_summarizer_a_plan_an_event_or_a_log(format, policy, caplog):
    caplog.set_level(logging.DEBUG)
    messages = [message for step in range(12) for message in MAKERS[format](step)]
    watcher = Watcher()
    plans = ()
    for share in (0.6, 0.35):
        try:
            result = refold.compact(
                messages, format=format, policy=policy, budget=int(refold.count(messages, format=format) * share),
                summarize=watcher.summarize, observers=[watcher.observe], force=True, plans=plans,
            )  # fmt: skip
        except RefoldError as error:
            watcher.seen.append(str(error))
            continue
        plans = result.plans
        given = {id(message) for message in messages}
        ours = [message for message in result.messages if id(message) not in given]
        for message in formats.read(formats.find(format), ours).messages:
            said = [part for part in message.parts if not isinstance(part, Reasoning)]
            assert "pondering" not in msgspec.json.encode(said).decode()
        watcher.seen += [record.getMessage() for record in caplog.records]
    assert watcher.seen
    assert not [text for text in watcher.seen if "pondering" in text]


@pytest.mark.parametrize("format", sorted(MAKERS))
def test_thinking_is_not_found_by_a_search_of_the_originals(format):
    with refold.open_store("memory") as store:
        session = refold.Session(store, format=format)
        session.append(MAKERS[format](1))
        assert session.search("nightly")
        assert session.search("pondering") == ()
        assert "pondering" in json.dumps(session.messages)
