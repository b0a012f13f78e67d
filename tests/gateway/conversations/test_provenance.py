import pytest

from refold import formats
from refold._gateway.conversations.provenance import SentHistory, SentRange, StaleThinking, StoredRange
from refold.core.edits import Hide, Rewrite
from refold.core.plan import Base, Plan, Sizes
from refold.core.transcript import ROOT
from refold.core.view import Cause

NOTHING = ((), False, True)


def history(turns):
    messages = [{"role": "user", "content": "Begin."}]
    for turn in range(turns):
        thought = {"type": "thinking", "thinking": f"Thought {turn}", "signature": f"s{turn}"}
        messages.append({"role": "assistant", "content": [thought, {"type": "text", "text": f"Answer {turn}."}]})
        messages.append({"role": "user", "content": f"Go on, {turn}."})
    return formats.read(formats.find("anthropic"), messages).messages


MESSAGES = history(6)


def plan(count, hidden):
    base = Base(count, MESSAGES[count - 1].id)
    edits = (Hide((MESSAGES[hidden].id,)),)
    return Plan("opal", "", Cause.THRESHOLD, base, Sizes(2, 1, 2, 2), edits, id=f"plan:{count}")


def base(count):
    return Base(count, MESSAGES[count - 1].id if count else ROOT)


def stale(production, plans=(), tool=False, messages=MESSAGES):
    edits = production.stale(messages, plans, tool)
    assert all(isinstance(edit, Rewrite) for edit in edits)
    places = {message.id: place for place, message in enumerate(messages)}
    return [places[edit.message] for edit in edits]


def test_what_was_never_sent_under_a_plan_is_whole():
    production = SentHistory()
    assert production.constant(NOTHING)
    assert production.covers(3, NOTHING)
    assert stale(production) == []


def test_a_plan_makes_thinking_stale_that_was_produced_behind_what_it_changed():
    production, made = SentHistory(), plan(7, 2)
    assert stale(production, (made,), messages=MESSAGES[:9]) == [3, 5, 7], "also what came after it, sent without it"
    production.sent(base(9), (made,), False, True)
    assert stale(production, (made,)) == [3, 5, 7]
    assert stale(production) == [9, 11], "taken off again, it is the other way round"


def test_a_second_request_with_the_same_messages_takes_the_place_of_the_first():
    production, made = SentHistory(), plan(7, 2)
    production.sent(base(9), (made,), False, True)
    production.saved = 1
    production.sent(base(9), (), False, True)
    assert stale(production) == []
    assert production.saved == 0
    assert len(production.ranges) == 1


def test_a_request_like_the_one_before_begins_no_range():
    production, made = SentHistory(), plan(7, 2)
    for count in (7, 9, 11):
        production.sent(base(count), (made,), False, True)
    assert [each.base.length for each in production.ranges] == [7]


def test_another_list_of_tools_makes_all_thinking_stale():
    production = SentHistory()
    assert stale(production, tool=True) == [1, 3, 5, 7, 9, 11]
    production.offer(True, first=True)
    assert production.tool
    assert stale(production, tool=True) == []


def test_the_tool_is_decided_once_and_as_it_was_before():
    production = SentHistory((SentRange(base(0), (), True),))
    production.offer(False, first=False)
    production.offer(False, first=True)
    assert production.tool
    late = SentHistory()
    late.offer(True, first=False)
    assert late.tool
    assert not late.ranges, "what was sent before had no such tool"


def test_a_model_that_binds_nothing_was_sent_all_thinking():
    production, made = SentHistory(), plan(7, 2)
    production.sent(base(7), (made,), False, False)
    assert stale(production, (made,)) == [3, 5, 7, 9, 11], "what it answered stood behind thinking that goes now"


def test_ranges_of_the_store_are_taken_where_the_history_is_theirs():
    made = plan(7, 2)
    other = StoredRange(Base(5, "b2:another"), (), True)
    production = SentHistory()
    assert production.take([other, StoredRange(base(9), (made.id,))], {made.id: made}, MESSAGES)
    assert [each.base.length for each in production.ranges] == [9]
    assert not production.unsaved
    assert not production.take([StoredRange(base(9), (made.id,))], {made.id: made}, MESSAGES)


def test_thinking_of_a_plan_that_nobody_has_any_more_is_stale():
    production = SentHistory()
    production.take([StoredRange(base(7), ("plan:gone",)), StoredRange(base(9))], {}, MESSAGES)
    assert stale(production) == [7]


def test_a_branch_knows_what_was_before_it():
    production, made = SentHistory(), plan(5, 2)
    production.sent(base(5), (made,), False, True)
    production.sent(base(9), (), False, True)
    assert [each.base.length for each in production.forked(9).ranges] == [5]
    assert stale(production.forked(9), (made,)) == [3]


@pytest.mark.parametrize(("back", "lost"), [(13, [5, 7]), (7, [5])])
def test_a_conversation_that_was_forgotten_with_its_plans_comes_again(back, lost):
    known, made = StaleThinking(), plan(5, 2)
    production = SentHistory()
    production.sent(base(5), (made,), False, True)
    known.add("conv", production, 7)
    again = SentHistory()
    known.restore("conv", again, MESSAGES[:back])
    assert stale(again, messages=MESSAGES[:back]) == lost
    assert "conv" not in known
