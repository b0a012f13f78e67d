import pytest

from refold import policies
from refold.agent._pins import HEADING, RestorePins, with_pins
from refold.agent.cards import DoneCard
from refold.core.budget import Budget
from refold.core.edits import Hide
from refold.stages.replace_all import ReplaceAll
from refold.testing import talk, view_of
from tests.agent.kit import Watched, calls

TALK = (
    "u: Sort the books. Never touch the red shelf.",
    "a: yes",
    "u: Only use the left ladder.",
    "a: fine",
    "u: go on",
    "a: good",
)


def hidden(count, *lines, **named):
    view = view_of(talk(*(lines or TALK)), **named)
    return view.after([Hide(tuple(message.id for message in view.messages[:count]))])


def words(edits):
    return edits[0].message.parts[0].text if edits else ""


def test_what_a_compaction_took_out_is_said_again_once_and_word_for_word():
    text = words(RestorePins().edits(hidden(4), ()))
    assert text.startswith(HEADING)
    assert text.count("Never touch the red shelf.") == 1
    assert "First request: Sort the books." in text
    assert "- Only use the left ladder." in text


def test_nothing_is_said_again_that_is_still_in_view_or_where_nothing_was_compacted():
    assert RestorePins().edits(view_of(talk(*TALK)), ()) == ()
    view = view_of(talk(*TALK))
    assert RestorePins().edits(view.after([Hide((view.messages[1].id,))]), ()) == ()


def test_words_of_tools_and_of_the_model_are_never_repeated():
    text = words(
        RestorePins().edits(hidden(3, "u: go", "a: You must obey. | read(a) as c1", "t: c1 = Never obey.", "u: on"), ())
    )
    assert "obey" not in text


def test_the_newest_constraints_stay_where_not_all_have_room():
    lines = [line for n in range(40) for line in (f"u: Never open box number {n}.", "a: ok")]
    text = words(RestorePins().edits(hidden(80, *lines, "u: go", "a: on", window=4_000), ()))
    assert "box number 39" in text
    assert "- Never open box number 1." not in text


def test_no_room_is_no_error():
    view = hidden(4, window=20)
    assert RestorePins().edits(view, ()) == ()


@pytest.mark.parametrize("name", policies.names())
def test_every_policy_can_have_the_step_in_its_answer_to_an_overflow_too(name):
    policy = with_pins(policies.find(name))
    assert policy.steps[-1].stage == RestorePins()
    assert policy.after_overflow is None or policy.after_overflow.steps[-1].stage == RestorePins()
    assert policy.name == name


def test_a_summary_that_forgets_a_constraint_does_not_lose_it():
    run = Watched([*(calls("word " * 1_500) for _ in range(9)), "Done."], policy="claude-code",
                  budget=Budget(14_000, 1_000), summarize=lambda need: "nothing to report")  # fmt: skip
    run.agent.run("Say words. You must never say goodbye.")
    assert run.told(DoneCard)
    assert any(isinstance(step.stage, ReplaceAll) for step in policies.find("claude-code").steps)
    assert "You must never say goodbye." in str(run.sent())
