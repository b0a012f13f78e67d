"""Parts that carry a provider's state outlive every compaction, and nothing before an anchor is read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import refold
from refold.errors import CannotFit, SummaryRefused
from refold.policies import names
from tests.depth import deep
from tests.laws.strategies import natives

SUMMARY = "The parser was ported; port 8443 was chosen."
UPLOAD = {"type": "container_upload", "file_id": "file_011CNha8iCJcU1wXNR6q4V8w"}
COMPACTION = {"type": "compaction", "content": SUMMARY, "encrypted_content": "EqUBCkYIBxgC"}


def blocks(messages: list[Any]) -> list[Any]:
    contents = (message["content"] for message in messages)
    return [block for content in contents if isinstance(content, list) for block in content]


@st.composite
def with_state(draw: st.DrawFn) -> list[Any]:
    """Return an Anthropic conversation with long outputs, uploads in users' messages and perhaps a compaction."""
    messages = draw(natives("anthropic", 2, 4))
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "tool_result" and isinstance(block.get("content"), str):
                block["content"] *= 40
    users = [place for place, message in enumerate(messages) if message["role"] == "user"]
    for place in draw(st.lists(st.sampled_from(users), max_size=2, unique=True)):
        content = messages[place]["content"]
        held = [{"type": "text", "text": content}] if isinstance(content, str) else content
        messages[place] = {"role": "user", "content": [*held, dict(UPLOAD)]}
    answers = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    if answers and draw(st.booleans()):
        place = draw(st.sampled_from(answers))
        messages[place] = {"role": "assistant", "content": [dict(COMPACTION), *messages[place]["content"]]}
    return messages


def read_from(messages: list[Any]) -> int:
    return next(
        (place for place, message in enumerate(messages) if {"type": "compaction"}.items() <= _first(message).items()),
        0,
    )


def _first(message: Any) -> dict[str, Any]:
    content = message["content"]
    return content[0] if isinstance(content, list) and content else {}


@pytest.mark.parametrize("policy", names())
@given(messages=with_state(), summary=st.sampled_from([None, "A short summary."]), share=st.sampled_from([2, 4]))
@settings(max_examples=deep(12, 100), deadline=None)
def test_no_policy_takes_state_away_or_writes_before_an_anchor(policy, messages, summary, share):
    size, start = refold.count(messages, format="anthropic"), read_from(messages)
    try:
        result = refold.compact(
            messages,
            format="anthropic",
            policy=policy,
            budget=max(size // share, 1),
            summarize=(lambda request: summary) if summary else None,
            force=True,
        )
    except (CannotFit, SummaryRefused):
        return
    state = [block for block in blocks(messages[start:]) if block.get("type") in ("container_upload", "compaction")]
    left = [block for block in blocks(result.messages) if block.get("type") in ("container_upload", "compaction")]
    if result.plan.empty:
        assert all(new is old for new, old in zip(result.messages, messages, strict=True))
    else:
        assert all(new is old for new, old in zip(left, state, strict=True))
        assert not start or _first(result.messages[0]) is _first(messages[start])
    assert not refold.violations(result.messages, format="anthropic")
    assert refold.rewind(result) == messages


@given(messages=with_state())
@settings(max_examples=deep(20, 200), deadline=None)
def test_what_stands_before_an_anchor_is_not_counted(messages):
    start = read_from(messages)
    assert refold.count(messages, format="anthropic") == refold.count(messages[start:], format="anthropic")
    whole = refold.check(messages, format="anthropic", window=100_000)
    assert whole == refold.check(messages[start:], format="anthropic", window=100_000)
    meter = refold.Meter(format="anthropic", window=100_000)
    for stop in range(1, len(messages) + 1):
        check = refold.check(messages[:stop], format="anthropic", window=100_000)
        assert meter.check(messages[:stop]).tokens == check.tokens
