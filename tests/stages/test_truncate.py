from __future__ import annotations

from msgspec.structs import replace

from refold._condense.view_positions import with_text
from refold.core.edits import Rewrite
from refold.core.messages import Image, Message, Reasoning, Text, ToolResult
from refold.core.transcript import Transcript
from refold.stages.selectors import LargestThenOldest
from refold.stages.truncate import Truncate
from refold.testing import talk, view_of

EAGER = Truncate(LargestThenOldest(recent=0))


def test_pictures_and_further_texts_of_a_user_message_stay() -> None:
    parts = (Text("x" * 3_000, ("content", 0)), Image(at=("content", 1)), Text("and this?", ("content", 2)))
    view = view_of(Transcript((*talk("u: go").messages, Message("m", "user", parts))), goal=1)
    seen = view.after(EAGER.edits(view, ())).messages[1]
    assert len(seen.parts) == 3
    assert seen.parts[1:] == parts[1:]
    assert "TRUNCATED" in seen.parts[0].text  # type: ignore[union-attr]


def test_sealed_reasoning_of_the_running_turn_stays_whole_and_that_of_earlier_turns_goes_whole() -> None:
    def answer(id: str) -> Message:
        thoughts = (Reasoning("a", sealed=True, at=("content", 0)), Reasoning("b", sealed=True, at=("content", 1)))
        return Message(id, "assistant", (*thoughts, Text("x" * 3_000, ("content", 2))))  # type: ignore[arg-type]

    view = view_of(Transcript((*talk("u: go").messages, answer("m1"), *talk("u: on").messages, answer("m2"))), goal=1)
    seen = view.after(EAGER.edits(view, ()))
    assert [len(message.parts) for message in seen.messages] == [1, 1, 1, 3]


def test_a_result_that_was_rewritten_whole_is_cut_whole() -> None:
    view = view_of(talk("u: go", "a: l | bash(x) as c1", "t: c1 = short"), goal=1)
    (result,) = view.messages[2].results
    long = view.after([Rewrite(view.messages[2].id, result.at, with_text(result, "y" * 5_000))])
    (seen,) = long.after(EAGER.edits(long, ())).messages[2].results
    assert "TRUNCATED" in seen.text
    assert seen.call_id == "c1"


def test_a_text_that_would_hardly_shrink_stays() -> None:
    view = view_of(talk("u: go", "a: " + "x" * 520), goal=1)
    stage = replace(EAGER, slack=500)
    assert stage.edits(view, ()) == ()


def test_an_error_result_stays_whole_even_when_it_is_the_largest() -> None:
    result = ToolResult("c1", (Text("e" * 9_000, ("content", 0, "content", 0)),), is_error=True, at=("content", 0))
    view = view_of(
        Transcript((*talk("u: go", "a: l | bash(x) as c1").messages, Message("m", "tool", (result,)))), goal=1
    )
    assert EAGER.edits(view, ()) == ()
