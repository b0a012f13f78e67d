from __future__ import annotations

from msgspec.structs import replace

from refold._condense.view_positions import (
    first_unseen,
    last_request,
    last_settled_cut,
    leading,
    open_request,
    preserved_request,
)
from refold._rules.pairing import GroupPairing
from refold.core.messages import Message, Note, Text, ToolResult
from refold.core.transcript import Transcript
from refold.testing import talk, view_of

SUMMARY = Message("made:1", "user", (Text("what was"),), Note("summary"))


def test_leading_system_messages_are_those_that_were_said() -> None:
    ours = replace(SUMMARY, role="system")
    view = view_of(Transcript((*talk("s: one", "s: two").messages, ours, *talk("u: go").messages)))
    assert leading(view) == 2
    assert leading(view_of(talk("s: one"))) == 1


def test_a_summary_of_ours_is_no_request_but_a_copied_request_is() -> None:
    said = talk("u: first", "a: ok").messages
    assert last_request(view_of(Transcript((*said, SUMMARY)))) is said[0]
    copy = replace(SUMMARY, note=Note("request"))
    assert last_request(view_of(Transcript((*said, copy)))) is copy


def test_a_request_is_open_until_the_assistant_has_answered_without_calls() -> None:
    assert open_request(view_of(talk("u: go", "a: done"))) is None
    view = view_of(talk("u: go", "a: l | bash(x) as c1", "t: c1 = y"))
    assert open_request(view) is view.messages[0]


def test_what_stands_after_the_newest_assistant_message_is_unseen() -> None:
    assert first_unseen(view_of(talk("u: go", "a: l | bash(x) as c1", "t: c1 = y", "u: and"))) == 2
    assert first_unseen(view_of(talk("u: go"))) == 0


def test_a_batch_that_waits_for_a_result_is_not_settled() -> None:
    lines = ["u: go", "a: l | bash(x) as c1 | bash(y) as c2", "t: c1 = y"]
    assert last_settled_cut(view_of(talk(*lines), rules=(GroupPairing(),))) == 1
    assert last_settled_cut(view_of(talk(*lines, "t: c2 = z"), rules=(GroupPairing(),))) == 4
    assert last_settled_cut(view_of(talk("u: go", "a: done"))) == 2


def test_a_request_that_shares_its_message_with_results_is_carried_on_as_a_copy() -> None:
    mixed = Message("m", "user", (ToolResult("c1", (Text("y"),), at=("content", 0)), Text("and now?", ("content", 1))))
    view = view_of(Transcript((*talk("u: go", "a: l | bash(x) as c1").messages, mixed)))
    request = last_request(view)
    assert request is mixed
    stays, copies = preserved_request(view, view.messages, request, None)
    assert stays is None
    assert [edit.message.parts for edit in copies] == [(Text("and now?"),)]  # type: ignore[union-attr]
    plain = view_of(talk("u: go", "a: done"))
    assert preserved_request(plain, plain.messages, last_request(plain), None) == (plain.messages[0].id, ())
    assert preserved_request(plain, plain.messages[1:], last_request(plain), None) == (None, ())
