"""Text that was cut inside an emoji, as JavaScript cuts it, stops no policy in any format."""

import copy
import json

import pytest

import refold
from refold import policies
from refold.core._plan_json import dump_plan, load_plan
from tests.laws.strategies import FORMATS

HALF = "\ud83d"
LONG = f"a.py: class Foo failed {HALF}\nin /src/x{HALF}y.py\n" * 60


def _said(format):
    asked, path = f"Look at it {HALF}", f"a{HALF}.py"
    match format:
        case "anthropic":
            call = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": path}}
            result = {"type": "tool_result", "tool_use_id": "c1", "content": LONG}
            return _turns("content", [call], [result], {"type": "text", "text": asked})
        case "bedrock":
            call = {"toolUse": {"toolUseId": "c1", "name": "read", "input": {"path": path}}}
            result = {"toolResult": {"toolUseId": "c1", "content": [{"text": LONG}]}}
            return _turns("content", [call], [result], {"text": asked})
        case "gemini":
            call = {"functionCall": {"name": "read", "args": {"path": path}}}
            result = {"functionResponse": {"name": "read", "response": {"output": LONG}}}
            return _turns("parts", [call], [result], {"text": asked}, "model")
        case "openai-chat":
            called = {
                "id": "c1",
                "type": "function",
                "function": {"name": "read", "arguments": json.dumps({"path": path})},
            }
            return [
                {"role": "user", "content": asked},
                {"role": "assistant", "content": None, "tool_calls": [called]},
                {"role": "tool", "tool_call_id": "c1", "content": LONG},
                {"role": "assistant", "content": LONG},
                {"role": "user", "content": asked},
            ]
        case _:
            return [
                {"role": "user", "content": asked},
                {"type": "function_call", "call_id": "c1", "name": "read", "arguments": json.dumps({"path": path})},
                {"type": "function_call_output", "call_id": "c1", "output": LONG},
                {"role": "assistant", "content": LONG},
                {"role": "user", "content": asked},
            ]


def _turns(key, calls, results, asked, assistant="assistant"):
    said = {**asked, "text": LONG}
    return [
        {"role": "user", key: [asked]},
        {"role": assistant, key: calls},
        {"role": "user", key: results},
        {"role": assistant, key: [said]},
        {"role": "user", key: [asked]},
    ]


@pytest.mark.parametrize("policy", policies.names())
@pytest.mark.parametrize("format", FORMATS)
def test_half_an_emoji_anywhere_stops_no_policy_and_its_plan_is_json(format, policy):
    messages = _said(format)
    before = copy.deepcopy(messages)
    plan = refold.plan(
        messages, format=format, policy=policy, window=2_000, max_output=100, force=True,
        summarize=lambda asked: f"They looked at a.py {HALF}",
    )  # fmt: skip
    assert not plan.empty
    assert load_plan(dump_plan(plan)) == plan
    assert messages == before
    refold.apply(plan, messages, format=format)


@pytest.mark.parametrize("format", FORMATS)
def test_what_no_edit_touches_keeps_its_halves(format):
    messages = _said(format)
    result = refold.compact(messages, format=format, window=1_000_000)
    assert all(out is said for out, said in zip(result.messages, messages, strict=True))
