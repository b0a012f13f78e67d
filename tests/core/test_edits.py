import pytest

from refold.core.edits import Hide, Insert, Rewrite, fold
from refold.core.messages import Message, MessageId, Note, Reasoning, Text, ToolResult
from refold.errors import BadValue
from refold.testing import talk

LIST = talk("u: one", "a: two | read(x.py) as c", "t: c = body [image]", "a: three").messages
FIRST, SECOND, THIRD, FOURTH = (message.id for message in LIST)


def note(name, text="note"):
    return Message(MessageId(name), "user", (Text(text),), Note("marker"))


def folded(*edits, tip=None):
    return fold(LIST, [edits], [tip])


def test_no_edits_give_the_very_same_messages():
    assert all(new is old for new, old in zip(folded(), LIST, strict=True))


def test_a_hidden_message_leaves_and_the_others_are_the_same_objects():
    out = folded(Hide((SECOND, THIRD)))
    assert [message.id for message in out] == [FIRST, FOURTH]
    assert out[0] is LIST[0]
    assert out[1] is LIST[3]


def test_an_insert_stands_before_its_anchor_even_when_the_anchor_is_hidden():
    out = folded(Hide((SECOND,)), Insert(note("n"), before=SECOND))
    assert [message.id for message in out] == [FIRST, "n", THIRD, FOURTH]


def test_inserts_before_one_anchor_keep_their_order():
    out = folded(Insert(note("n1"), before=SECOND), Insert(note("n2"), before=SECOND))
    assert [message.id for message in out][1:3] == ["n1", "n2"]


def test_an_insert_may_stand_before_another_insert():
    out = folded(Insert(note("n1"), before=SECOND), Insert(note("n0"), before=MessageId("n1")))
    assert [message.id for message in out][1:3] == ["n0", "n1"]


def test_an_end_insert_stays_where_the_end_was_when_the_list_grows():
    edits = (Insert(note("end")),)
    grown = (*LIST, *talk("u: later").messages)
    assert [message.id for message in fold(grown, [edits], [FOURTH])][-2] == "end"


def test_an_insert_at_an_unknown_anchor_is_void():
    assert folded(Insert(note("n"), before=MessageId("gone"))) == LIST


def test_a_rewrite_changes_the_part_at_its_path_and_records_a_patch():
    path = LIST[1].parts[0].at
    out = folded(Rewrite(SECOND, path, Text("shorter")))
    assert out[1].parts[0] == Text("shorter", at=path)
    assert out[1].parts[1] is LIST[1].parts[1]
    assert out[1].native is LIST[1].native
    assert len(out[1].patches) == 1


def test_a_rewrite_reaches_into_the_content_of_a_result():
    result = LIST[2].parts[0]
    picture = result.content[1].at
    out = folded(Rewrite(THIRD, picture, Text("[picture]")))
    changed = out[2].parts[0]
    assert isinstance(changed, ToolResult)
    assert changed.content == (result.content[0], Text("[picture]", at=picture))


def test_a_rewrite_to_nothing_drops_the_part_and_moves_no_other_address():
    out = folded(Rewrite(SECOND, LIST[1].parts[0].at, None))
    assert out[1].parts == (LIST[1].parts[1],)
    assert out[1].parts[0].at == ("content", 1)


def test_a_rewrite_one_past_the_end_appends_a_part():
    out = folded(Rewrite(FIRST, ("content", 1), Text("more")))
    assert out[0].parts[-1] == Text("more", at=("content", 1))


def test_later_plans_may_hide_what_earlier_plans_inserted():
    out = fold(LIST, [(Insert(note("n"), before=SECOND),), (Hide((MessageId("n"),)),)], [FOURTH, FOURTH])
    assert out == LIST


def test_edits_that_cannot_be_are_refused_where_they_are_made():
    with pytest.raises(BadValue, match="at least one message"):
        Hide(())
    with pytest.raises(ValueError, match="not a value of type str"):
        Rewrite(SECOND, (), "text")
    with pytest.raises(BadValue, match="not 'developer'"):
        Message(MessageId("m"), "developer")


def test_a_result_takes_no_part_that_it_cannot_hold():
    result = ToolResult("c1", (Text("out", at=("content", 0)),), at=("content",))
    message = Message(MessageId("m"), "tool", (result,))
    with pytest.raises(BadValue, match="not a Reasoning"):
        fold([message], [(Rewrite(message.id, ("content", 0), Reasoning("thinking")),)])
