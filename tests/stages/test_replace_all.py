from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

import refold
from refold._rules.pairing import GroupPairing
from refold.core.needs import Provided
from refold.core.transcript import Transcript
from refold.core.view import Cause
from refold.errors import SummaryRefused
from refold.stages.replace_all import ReplaceAll
from refold.stages.selectors import KeepRatio, KeepTokens
from refold.stages.summarize import Summarize
from refold.testing import talk, view_of

STAGE = Summarize(KeepRatio(), "neurolink_summary", "neurolink_merge")


def many(count: int = 10) -> Transcript:
    return talk(*[f"{'ua'[n % 2]}: message {n} " + "x" * 80 for n in range(count)])


def test_an_open_call_is_never_summarized_away() -> None:
    lines = [f"u: message {n} " + "x" * 80 for n in range(6)]
    view = view_of(talk(*lines, "a: l | bash(x) as c1"), rules=(GroupPairing(),), cause=Cause.OVERFLOW)
    for stage in (ReplaceAll("vibe_summary"), replace(STAGE, cut=KeepTokens(1))):
        answers = tuple(Provided("short") for _ in stage.needs(view))
        assert view.after(stage.edits(view, answers)).messages[-1] is view.messages[-1]


def test_a_blank_summary_is_refused() -> None:
    view = view_of(many())
    with pytest.raises(SummaryRefused, match="the summary was empty"):
        ReplaceAll("vibe_summary").edits(view, (Provided("  \n"),))
    assert STAGE.edits(view, (Provided(" "),)) == ()


def test_instructions_and_tool_changes_that_a_summary_brings_to_the_front_stay_valid() -> None:
    change = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "find"}}
    instruction = {"role": "system", "content": [change, {"type": "text", "text": "Answer in JSON."}]}
    removal = {"role": "system", "content": [{**change, "type": "tool_removal"}]}
    turn = [
        {"role": "user", "content": "Read the log. " * 60},
        instruction,
        {"role": "assistant", "content": "It is read."},
        {"role": "user", "content": "And now?"},
        removal,
        {"role": "assistant", "content": "Done."},
    ]
    messages = [*turn, *turn, {"role": "user", "content": "Go on."}]
    result = refold.compact(messages, format="anthropic", policy="claude-code", budget=400, force=True)
    assert refold.violations(result.messages, format="anthropic") == ()
    again = refold.compact(
        messages, format="anthropic", policy="claude-code", budget=400, force=True, plans=result.plans
    )
    assert json.dumps(again.messages).count("Answer in JSON.") <= 2
