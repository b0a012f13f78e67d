from refold._condense.recaps import OF_ITS_TIME, SENT_BACK
from refold.core.messages import texts
from refold.stages.fit import Fit
from refold.testing import talk, view_of

BEGINS = "This session is being continued from a previous conversation that ran out of context."
BODY = "value_of_part " * 120


def compacted(*lines):
    transcript = talk(*lines)
    view = view_of(transcript, window=10**6, goal=1_500)
    return "\n".join(text for message in view.after(Fit().edits(view)).messages for text in texts(message))


WORK = ("u: Mend it.", "a: x | read(a.py) as c", f"t: c = {BODY}", "a: It is mended.", "u: on")


def test_a_summary_that_a_later_one_replaces_leaves():
    left = compacted(f"u: {BEGINS} First tasks.", *WORK, f"u: {BEGINS} Second tasks.", "a: ok", "u: more")
    assert "First tasks." not in left
    assert "Second tasks." in left


def test_what_a_summary_calls_pending_is_marked_once_a_turn_has_ended_after_it():
    assert OF_ITS_TIME in compacted(f"u: {BEGINS} Tasks.", *WORK)
    assert OF_ITS_TIME not in compacted(f"u: {BEGINS} Tasks.", "a: x | read(a.py) as c", f"t: c = {BODY * 9}")


def test_headings_of_what_was_so_when_a_summary_was_written_say_so_too():
    text = compacted(f"u: {BEGINS} Summary:\n7. **Pending Tasks:**\n- two\n9. Optional Next Step:\nGo.", *WORK)
    assert "7. **Pending Tasks:** [as it was then]" in text
    assert "9. Optional Next Step: [as it was then]" in text


def test_a_plan_leaves_that_a_later_one_replaces_and_one_that_the_user_sent_back_stands_once():
    first, second = (f"# Plan {name}\n\nStep of {name}." for name in ("one", "two"))
    shown = [f"<proposed_plan>\n{plan}\n</proposed_plan>" for plan in (first, second)]
    begun = ("u: plan it", f"a: {shown[0]}", "u: another", f"a: {shown[1]}")
    left = compacted(*begun, "u: and now?", "a: x | read(a.py) as c", f"t: c = {BODY * 9}")
    assert "Step of one." not in left
    assert left.count("Step of two.") == 1
    sent = compacted(*begun, f"u: IMPLEMENT THIS:\n{second}", "a: x | read(a.py) as c", f"t: c = {BODY * 9}")
    assert sent.count(second) == 1
    assert SENT_BACK in sent
