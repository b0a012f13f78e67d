from __future__ import annotations

from refold.core.messages import Message, Note, Text, text_of
from refold.core.transcript import Transcript
from refold.stages.slide import Slide
from refold.testing import talk, view_of


def many(count: int = 10) -> Transcript:
    return talk(*[f"{'ua'[n % 2]}: message {n} " + "x" * 80 for n in range(count)])


def test_slide_goes_on_to_the_goal_where_it_is_told_to() -> None:
    view = view_of(many(40), goal=1_000)
    seen = view.after(Slide("[left out]", share=0, to_goal=True).edits(view, ()))
    assert seen.over_goal <= 0
    assert seen.messages[:2] == view.messages[:2]
    assert seen.messages[-1] is view.messages[-1]


def test_slide_keeps_a_summary_at_the_head_and_the_last_request() -> None:
    old = Message("made:1", "user", (Text("old"),), Note("summary"))
    turn = talk("u: wish", *[f"a: step {n} " + "x" * 90 for n in range(20)])
    view = view_of(Transcript((old, *talk("u: before", "a: ok").messages, *turn.messages)), goal=500)
    seen = view.after(Slide("[left out]", share=0.9).edits(view, ()))
    shown = [text_of(message) for message in seen.messages[:5]]
    assert shown[:4] == ["old", "before", "ok", "[left out]"]
    assert shown[4] == "wish"
