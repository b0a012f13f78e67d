from __future__ import annotations

import pytest
from msgspec.structs import replace

from refold.core.budget import Exactly
from refold.core.counting import CharCounter
from refold.stages.truncate_to_goal import TruncateToGoal
from refold.testing import talk, view_of


def sizes(view: object) -> list[int]:
    return [len(next(iter(m.parts)).text) for m in view.messages]  # type: ignore[attr-defined]


def test_the_longest_texts_come_down_to_one_length_that_meets_the_goal() -> None:
    view = view_of(talk("u: go", "a: " + "x" * 9_000, "a: " + "y" * 6_000, "a: " + "z" * 1_000, "u: now"), goal=8_000)
    seen = view.after(TruncateToGoal().edits(view, ()))
    assert seen.tokens <= 8_000
    assert seen.tokens > 7_700
    one, two, three = sizes(seen)[1:4]
    assert abs(one - two) < 10
    assert three == 1_000


def test_old_tool_output_goes_before_new_output_and_before_requests() -> None:
    view = view_of(
        talk(
            "u: " + "q" * 3_000,
            "a: l | bash(x) as c1",
            "t: c1 = " + "x" * 3_000,
            "a: l | bash(y) as c2",
            "t: c2 = " + "y" * 3_000,
        ),
        goal=7_000,
    )
    seen = view.after(TruncateToGoal().edits(view, ()))
    assert seen.tokens <= 7_000
    assert [index for index, message in enumerate(seen.messages) if message.patches] == [2]


def test_arguments_and_leading_system_messages_are_never_cut() -> None:
    view = view_of(
        talk("s: " + "s" * 3_000, "u: go", 'a: l | write({"path": "' + "p" * 3_000 + '"}) as c1'), goal=1_000
    )
    assert TruncateToGoal().edits(view, ()) == ()


def test_under_the_goal_nothing_is_done() -> None:
    assert TruncateToGoal().edits(view_of(talk("u: " + "x" * 900), goal=903), ()) == ()


@pytest.mark.parametrize("per_token", [1.0, 1.5, 4.0])
def test_a_goal_is_met_on_the_counter_s_own_scale(per_token: float) -> None:
    transcript = talk(*[f"u: {n} " + "🙂é\u0301 " * 900 for n in range(9)])
    view = view_of(transcript, goal=5_000, window=10**6, counter=CharCounter(per_token))
    assert view.after(TruncateToGoal().edits(view, ())).tokens <= 5_000


def test_a_second_cut_is_made_from_the_whole_text() -> None:
    view = view_of(talk("u: go", "a: " + "a" * 5_000 + "b" * 5_000, "u: now"), goal=4_000)
    once = view.after(TruncateToGoal().edits(view, ()))
    tight = replace(once, goal=Exactly(1_000))
    text = tight.after(TruncateToGoal().edits(tight, ())).messages[1].parts[0].text  # type: ignore[union-attr]
    assert text.count("[Shortened") == 1
    assert "of 10,000 characters" in text
