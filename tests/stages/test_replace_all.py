from __future__ import annotations

import pytest
from msgspec.structs import replace

from refold.core.needs import Given
from refold.core.transcript import Transcript
from refold.core.view import Cause
from refold.errors import SummaryRefused
from refold.rules.pairing import Pairing
from refold.stages.choose import KeepRatio, KeepTokens
from refold.stages.replace_all import ReplaceAll
from refold.stages.summarize import Summarize
from refold.testing import talk, view_of

STAGE = Summarize(KeepRatio(), "neurolink_summary", "neurolink_merge")


def many(count: int = 10) -> Transcript:
    return talk(*[f"{'ua'[n % 2]}: message {n} " + "x" * 80 for n in range(count)])


def test_an_open_call_is_never_summarized_away() -> None:
    lines = [f"u: message {n} " + "x" * 80 for n in range(6)]
    view = view_of(talk(*lines, "a: l | bash(x) as c1"), rules=(Pairing(),), cause=Cause.OVERFLOW)
    for stage in (ReplaceAll("vibe_summary"), replace(STAGE, cut=KeepTokens(1))):
        answers = tuple(Given("short") for _ in stage.needs(view))
        assert view.after(stage.edits(view, answers)).messages[-1] is view.messages[-1]


def test_a_blank_summary_is_refused() -> None:
    view = view_of(many())
    with pytest.raises(SummaryRefused, match="the summary was empty"):
        ReplaceAll("vibe_summary").edits(view, (Given("  \n"),))
    assert STAGE.edits(view, (Given(" "),)) == ()
