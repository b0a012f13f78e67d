from __future__ import annotations

from refold.core.messages import Message, Text, ToolResult
from refold.core.transcript import Transcript
from refold.stages.clear import Clear
from refold.testing import talk, view_of


def cleared(view: object, stage: Clear) -> list[str]:
    seen = view.after(stage.edits(view, ()))  # type: ignore[attr-defined]
    return [result.call_id for message in seen.messages for result in message.results if result.text == "[gone]"]


def test_results_that_no_model_has_seen_yet_are_never_cleared() -> None:
    view = view_of(talk("u: go", "a: l | bash(x) as c1 | bash(y) as c2", "t: c1 = " + "x" * 99 + " | c2 = " + "y" * 99))
    assert cleared(view, Clear("[gone]")) == []


def test_a_result_of_an_unknown_call_is_cleared_only_where_no_tools_are_named() -> None:
    lone = Message("m", "tool", (ToolResult("lost", (Text("x" * 99),), at=("content", 0)),))
    view = view_of(Transcript((lone, *talk("a: ok").messages)))
    assert cleared(view, Clear("[gone]")) == ["lost"]
    assert cleared(view, Clear("[gone]", frozenset({"bash"}))) == []


def test_what_is_cleared_already_is_not_cleared_again_and_saves_nothing() -> None:
    view = view_of(talk("u: go", "a: l | bash(x) as c1", "t: c1 = [gone]", "a: ok"))
    assert Clear("[gone]").edits(view, ()) == ()


def test_a_result_shorter_than_the_placeholder_stays() -> None:
    view = view_of(talk("u: go", "a: l | bash(x) as c1", "t: c1 = ok", "a: ok"))
    assert Clear("[gone]").edits(view, ()) == ()


def test_an_error_keeps_its_flag() -> None:
    view = view_of(talk("u: go", "a: l | bash(x) as c1", "t! c1 = " + "x" * 99, "a: ok"))
    (result,) = view.after(Clear("[gone]").edits(view, ())).messages[2].results
    assert result.is_error
    assert result.text == "[gone]"


def test_pictures_of_a_cleared_result_count_and_go() -> None:
    view = view_of(talk("u: go", "a: l | shot() as c1", "t: c1 = [image]", "a: ok"))
    stage = Clear("[gone]", saving=900)
    assert cleared(view, stage) == ["c1"]
