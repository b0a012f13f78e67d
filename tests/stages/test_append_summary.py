from __future__ import annotations

from refold._rules.pairing import GroupPairing
from refold.core.edits import Hide, Insert, Rewrite
from refold.core.messages import Message, Note, Text, text_of
from refold.core.needs import Provided, Refused, SummaryNeed
from refold.core.transcript import Transcript
from refold.stages.append_summary import AppendSummary
from refold.stages.strip_media import StripImages
from refold.testing import talk, view_of

STAGE = AppendSummary("wolffish_summary", nudge="wolffish_nudge", notice="wolffish_notice")
LINES = [
    "u: the task",
    "a: look | read(a.py) as c1",
    "t: c1 = " + "x" * 3_000 + "[image]",
    "a: plan one",
    "u: more",
    "a: plan two",
]


def shortened_view(*more: str) -> object:
    view = view_of(talk(*LINES, *more), rules=(GroupPairing(),))
    return view.after([Rewrite(view.messages[2].id, ("content", 0, "content", 0), Text("x" * 10))])


def test_where_nothing_was_shortened_nothing_is_asked_and_nothing_appended() -> None:
    view = view_of(talk(*LINES))
    assert STAGE.needs(view) == ()
    assert STAGE.edits(view, ()) == ()


def test_a_picture_that_left_is_no_reason_for_a_summary() -> None:
    view = view_of(talk(*LINES))
    stripped = view.after(StripImages().edits(view, ()))
    assert stripped.edits
    assert STAGE.needs(stripped) == ()


def test_the_summarizer_sees_the_task_the_original_and_the_newest_plans_once_each_in_order() -> None:
    view = shortened_view()
    (need,) = STAGE.needs(view)  # type: ignore[arg-type]
    assert isinstance(need, SummaryNeed)
    order = [need.text.index(piece) for piece in ("the task", "x" * 3_000, "plan one", "plan two")]
    assert order == sorted(order)
    assert need.text.count("the task") == 1
    assert "more" not in need.text


def test_the_summary_stands_before_calls_that_await_their_results() -> None:
    view = shortened_view("a: now | read(b.py) as c2")
    for answer, opening in ((Provided("done so far"), "[Compaction Summary]"), (Refused("no"), "[Compaction Notice")):
        seen = view.after(STAGE.edits(view, (answer,)))  # type: ignore[attr-defined, arg-type]
        assert text_of(seen.messages[-2]).startswith(opening)
        assert seen.messages[-1].calls
        assert GroupPairing().broken(seen.messages) == ()


def test_the_file_lists_of_an_earlier_summary_go_with_the_new_one() -> None:
    said = talk(*LINES).messages
    old = Message("made:1", "user", (Text("old"),), Note("summary", ("a.py",), ("b.py",)))
    view = view_of(Transcript((*said[:4], old, *said[4:])))
    view = view.after([Rewrite(said[2].id, ("content", 0, "content", 0), Text("x" * 10))])
    insert, hide = STAGE.edits(view, (Provided("done"),))
    assert isinstance(insert, Insert)
    assert insert.message.note == Note("summary", ("a.py",), ("b.py",))
    assert hide == Hide((old.id,))
