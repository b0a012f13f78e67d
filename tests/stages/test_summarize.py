from __future__ import annotations

from msgspec.structs import replace

from refold.core.edits import Hide, Insert
from refold.core.messages import Message, Note, Text, text_of
from refold.core.needs import Provided, Refused
from refold.core.transcript import Transcript
from refold.stages.selectors import KeepRatio, KeepTokens
from refold.stages.summarize import Summarize
from refold.testing import talk, view_of

STAGE = Summarize(KeepRatio(), "neurolink_summary", "neurolink_merge")


def many(count: int = 10) -> Transcript:
    return talk(*[f"{'ua'[n % 2]}: message {n} " + "x" * 80 for n in range(count)])


def test_a_summary_is_anchored_at_a_message_that_was_said_and_not_at_one_of_ours() -> None:
    old = Message("made:1", "user", (Text("old"),), Note("summary"))
    view = view_of(Transcript((old, *many().messages)))
    insert, hide = STAGE.edits(view, (Provided("new"),))
    assert isinstance(insert, Insert)
    assert insert.before == view.messages[1].id
    assert isinstance(hide, Hide)
    assert old.id in hide.messages


def test_a_range_of_nothing_but_an_earlier_summary_is_not_summarized_again() -> None:
    old = Message("made:1", "user", (Text("old " * 99),), Note("summary"))
    view = view_of(Transcript((old, *many(4).messages)))
    assert STAGE.needs(view) == ()
    assert STAGE.edits(view, ()) == ()


def test_a_summary_request_made_twice_is_the_same_and_holds_no_thought_of_ours() -> None:
    marker = Message("made:2", "user", (Text("[marker]"),), Note("marker"))
    messages = many().messages
    view = view_of(Transcript((*messages[:2], marker, *messages[2:])))
    (need,) = STAGE.needs(view)
    assert STAGE.needs(view) == (need,)
    assert "[marker]" not in need.text
    assert all(message.note is None for message in need.messages)


def test_the_last_request_stays_a_message_or_is_quoted_where_the_range_holds_it() -> None:
    lines = ["u: the wish", *[f"a: step {n} " + "x" * 90 for n in range(12)]]
    view = view_of(talk(*lines))
    quoted = view.after(STAGE.edits(view, (Provided("short"),)))
    assert "the wish" in text_of(quoted.messages[0])
    stage = replace(STAGE, keeps_request=True)
    kept = view.after(stage.edits(view, (Provided("short"),)))
    assert kept.messages[1] is view.messages[0]
    assert "the wish" not in text_of(kept.messages[0])


def test_a_very_long_request_is_quoted_in_part() -> None:
    lines = ["u: " + "w" * 20_000, *[f"a: step {n} " + "x" * 90 for n in range(12)]]
    view = view_of(talk(*lines))
    text = text_of(view.after(STAGE.edits(view, (Provided("short"),))).messages[0])
    assert "[16,000 characters left out]" in text


def test_an_outline_keeps_what_an_earlier_summary_said() -> None:
    old = Message("made:1", "user", (Text("[Conversation summary — older messages were compacted]\n\nold facts"),))
    old = replace(old, note=Note("summary", ("a.py",)))
    view = view_of(Transcript((old, *many().messages)))
    stage = replace(STAGE, otherwise="outline", files=True)
    text = text_of(view.after(stage.edits(view, (Refused("no", "absent"),))).messages[0])
    assert "old facts" in text
    assert "[Compacted 6 messages: 3 assistant, 3 user]" in text
    assert "a.py" in text


def test_a_split_turn_after_nothing_but_a_summary_keeps_that_summary_as_history() -> None:
    old = Message("made:1", "user", (Text("old facts"),), Note("summary"))
    turn = talk("u: the wish", *[f"a: step {n} " + "x" * 90 for n in range(12)])
    view = view_of(Transcript((old, *turn.messages)))
    stage = Summarize(KeepTokens(300), "opal_summary", "opal_update", split="opal_prefix", split_from=5)
    (need,) = stage.needs(view)
    assert need.label == "turn prefix"  # type: ignore[union-attr]
    text = text_of(view.after(stage.edits(view, (Provided("tried this"),))).messages[0])
    assert text.index("old facts") < text.index("tried this")
