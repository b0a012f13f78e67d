"""Vibe, also called OpenClaw (seed 004): one test a row of its behaviour, with the document's own numbers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from refold.core.budget import Budget, Exactly, Never, Usage
from refold.core.engine import due
from refold.core.gauge import LastTotal
from refold.core.messages import Image, Message, Note, Text, text_of
from refold.core.needs import CountExactly, Summarize
from refold.core.transcript import Transcript
from refold.core.view import Cause
from refold.errors import SummaryRefused
from refold.policies import find, threshold
from refold.rules.pairing import Pairing
from refold.testing import talk, view_of
from tests.conformance.drive import Asked, absent, after, drive, shown

POLICY = find("vibe")
CLEAN = POLICY.steps[0].stage


def work(*more):
    return talk(
        "s: be brief",
        "u: first wish",
        "a: l | bash(x) as c1",
        "t: c1 = " + "x" * 3_000,
        "a: done",
        "u: second wish",
        *more,
    )


@pytest.mark.parametrize(("prompt", "completion", "expected"), [(190_000, 9_999, False), (190_000, 10_000, True)])
def test_v01_the_threshold_is_200_000_on_prompt_and_completion_of_the_last_call(prompt, completion, expected):
    assert POLICY.gauge == LastTotal()
    assert POLICY.trigger == Exactly(200_000, inclusive=True)
    tokens = POLICY.gauge.measure(1, 1, Usage(prompt, completion))
    assert POLICY.trigger.reached(tokens, Budget(10**6)) is expected
    view = replace(view_of(work(), cause=Cause.THRESHOLD, window=10**6), measured=tokens)
    assert due(POLICY, view) is expected


@pytest.mark.parametrize("tokens", [0, -1])
def test_v01_a_threshold_of_zero_or_less_disables(tokens):
    assert threshold(tokens) == Never()
    assert not threshold(tokens).reached(10**9, Budget(1_000))
    assert threshold(1).reached(1, Budget(1_000))


def test_v05_all_but_the_system_message_becomes_a_summary_with_the_last_request():
    view = view_of(work("a: l | bash(y) as c2", "t: c2 = y"), goal=POLICY.goal)
    seen = after(POLICY, view, Asked("what happened"))
    assert seen.messages[0] is view.messages[0]
    assert [message.role for message in seen.messages] == ["system", "user"]
    assert shown(seen)[1] == "what happened\n\nLast request from user was: second wish"


def test_v05_the_steps_run_in_order_clean_summarize_replace_recount():
    assert [step.name for step in POLICY.steps] == ["clean", "compact", "truncate to goal", "mend", "recount"]
    assert POLICY.renews_session
    asked = Asked("what happened")
    drive(POLICY, view_of(work(), goal=POLICY.goal), asked)
    assert [type(need) for need in asked.needs] == [Summarize, CountExactly]


def test_v05_an_earlier_summary_is_never_the_last_request_and_is_updated_instead():
    old = Message("made:1", "user", (Text("old facts\n\nLast request from user was: first"),), Note("summary"))
    transcript = Transcript((*work().messages[:2], old, *talk("a: went on " + "x" * 900).messages))
    asked = Asked("new facts")
    seen = after(POLICY, view_of(transcript, goal=POLICY.goal), asked)
    assert shown(seen)[1] == "new facts\n\nLast request from user was: first wish"
    assert asked.summaries[0].previous == "old facts"
    assert "old facts" not in asked.summaries[0].text


def test_v05_on_an_error_nothing_is_changed_and_it_is_raised():
    view = view_of(work(), goal=POLICY.goal)
    with pytest.raises(SummaryRefused, match="nothing was changed: scripted refusal"):
        drive(POLICY, view, Asked(None))


def test_v05_without_anybody_to_ask_a_digest_takes_the_summary_s_place():
    view = view_of(work(*["a: " + "y" * 20_000]), window=200_000, goal=POLICY.goal)
    last = after(POLICY, view, absent).messages[-1]
    assert last.note is not None
    assert last.note.kind == "digest"
    assert text_of(last).endswith("Last request from user was: second wish")


def test_v05_a_last_request_with_a_picture_stays_a_message():
    picture = Message("m9", "user", (Text("what is this?", ("content", 0)), Image(at=("content", 1))))
    transcript = Transcript((*work().messages, picture))
    seen = after(POLICY, view_of(transcript, goal=POLICY.goal), Asked("short"))
    assert seen.messages[-1] is picture
    assert len(seen.messages) == 3


def test_v05_a_last_request_larger_than_the_goal_is_fitted():
    view = view_of(work("a: ok", "u: " + "z" * 50_000), window=20_000, goal=POLICY.goal)
    assert after(POLICY, view, Asked("short")).tokens <= 10_000


def test_v06_the_prompt_has_seven_sections():
    asked = Asked("short")
    drive(POLICY, view_of(work(), goal=POLICY.goal), asked)
    for section in (
        "1. User's Primary Goals and Intent",
        "2. Conversation Timeline and Progress",
        "3. Technical Context and Decisions",
        "4. Files and Code Changes",
        "5. Active Work and Last Actions (CRITICAL)",
        "6. Unresolved Issues and Pending Tasks",
        "7. Immediate Next Step",
    ):
        assert section in asked.summaries[0].instructions


def test_v07_every_tool_call_gets_a_response():
    view = view_of(talk("u: go", "a: l | bash(x) as c1 | bash(y) as c2", "t: c1 = x", "u: and?"), rules=(Pairing(),))
    seen = view.after(CLEAN.edits(view, ()))
    assert Pairing().broken(seen.messages) == ()
    assert "Tool no response" in shown(seen)


def test_v07_an_assistant_message_follows_tool_results():
    view = view_of(talk("u: go", "a: l | bash(x) as c1", "t: c1 = x"), rules=(Pairing(),))
    seen = view.after(CLEAN.edits(view, ()))
    assert (seen.messages[-1].role, text_of(seen.messages[-1])) == ("assistant", "Understood.")


def test_v07_nothing_is_cleaned_under_2_messages():
    view = view_of(talk("u: go"), rules=(Pairing(),))
    assert CLEAN.edits(view, ()) == ()


def test_v08_the_view_is_recounted_by_a_call_of_16_output_tokens():
    asked = Asked("what happened")
    view = view_of(work(), goal=POLICY.goal)
    plan = drive(POLICY, view, asked)
    count = asked.needs[-1]
    assert isinstance(count, CountExactly)
    assert count.max_tokens == 16
    assert count.messages == view.after(plan.edits).messages
