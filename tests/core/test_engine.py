from typing import ClassVar

import pytest
from msgspec.structs import replace

from refold.core._engine import due, planning
from refold.core._plan_json import VERSION, dump_plan, load_plan
from refold.core.budget import Exactly, Never
from refold.core.edits import Hide, Insert
from refold.core.messages import Note
from refold.core.needs import Provided, Refused, SummaryNeed
from refold.core.plan import checked, tags
from refold.core.policy import Policy, Pure, Step, When
from refold.core.view import Cause
from refold.errors import StalePlan, UnreadablePlan
from refold.testing import talk, view_of

TALK = talk("u: first request", "a: a long answer", "u: second", "a: short")


class DropSecond(Pure, frozen=True):
    def edits(self, view, answers):
        return (Hide((view.messages[1].id,)),)


class DropAll(Pure, frozen=True):
    def edits(self, view, answers):
        return (Hide(tuple(message.id for message in view.messages)),)


class Grow(Pure, frozen=True):
    def edits(self, view, answers):
        return (view.insert("user", "x" * 50, Note("marker")),)


class Ask(Pure, frozen=True):
    grows: ClassVar[bool] = True

    def needs(self, view):
        return (SummaryNeed(view.messages[:1], "text"),)

    def edits(self, view, answers):
        match answers:
            case (Provided(text=text),):
                return (view.insert("user", text, Note("summary")),)
            case _:
                return ()


def run(policy, view, *answers):
    planner = planning(policy, view)
    try:
        next(planner)
        planner.send(answers)
    except StopIteration as done:
        return done.value.plan
    raise AssertionError("asked twice")


AT_TEN = Exactly(10)


def policy(*steps, trigger=AT_TEN):
    return Policy("test", steps, trigger=trigger, goal=Exactly(40))


def test_nothing_runs_while_nothing_is_due():
    view = view_of(TALK, cause=Cause.THRESHOLD)
    assert run(policy(Step(DropSecond()), trigger=Exactly(1_000)), view).empty


def test_a_step_for_every_call_runs_although_nothing_is_due():
    view = view_of(TALK, cause=Cause.THRESHOLD)
    plan = run(policy(Step(DropSecond(), When.EVERY_CALL), trigger=Exactly(1_000)), view)
    assert plan.stages_used == ("dropsecond",)


def test_a_step_that_runs_first_runs_where_something_is_due_and_may_make_the_rest_unnecessary():
    view = view_of(TALK, cause=Cause.THRESHOLD)
    steps = (Step(DropSecond(), When.FIRST), Step(DropSecond(), When.DUE, "due"))
    assert run(policy(*steps, trigger=Exactly(1_000)), view).empty
    assert run(policy(*steps, trigger=Exactly(view.tokens - 5)), view).stages_used == ("dropsecond",)
    assert run(policy(*steps, trigger=Exactly(10)), view).stages_used == ("dropsecond", "due")


def test_a_step_for_every_call_may_make_the_rest_unnecessary():
    view = view_of(TALK, cause=Cause.THRESHOLD)
    steps = (Step(DropSecond(), When.EVERY_CALL), Step(DropSecond(), When.DUE, "due"))
    assert run(policy(*steps, trigger=Exactly(view.tokens - 5)), view).stages_used == ("dropsecond",)
    assert run(policy(*steps, trigger=Exactly(10)), view).stages_used == ("dropsecond", "due")


def test_a_step_over_the_goal_is_skipped_once_the_goal_is_met():
    view = view_of(TALK, goal=39)
    plan = run(policy(Step(DropSecond(), label="one"), Step(DropSecond(), When.OVER_GOAL, "two")), view)
    assert plan.stages_used == ("one",)


def test_a_step_over_the_budget_runs_only_when_the_request_could_not_be_sent():
    last = Step(DropSecond(), When.OVER_BUDGET)
    assert run(policy(last), view_of(TALK, goal=10)).empty
    assert run(policy(last), view_of(TALK, window=20)).stages_used == ("dropsecond",)


def test_a_step_that_would_make_the_view_larger_is_not_done_and_says_so():
    plan = run(policy(Step(Grow())), view_of(TALK))
    assert plan.empty
    assert "smaller" in plan.steps[0].refused


def test_a_step_that_would_leave_no_message_is_not_done_and_says_so():
    plan = run(policy(Step(DropAll())), view_of(TALK))
    assert plan.empty
    assert plan.steps[0].refused == "it would have left no message"


def test_a_refusal_is_recorded_with_its_reason():
    plan = run(policy(Step(Ask())), view_of(TALK), Refused("no model", "absent"))
    assert plan.steps[0].refused == "no model"


def test_an_answer_becomes_an_edit():
    plan = run(policy(Step(Ask())), view_of(TALK), Provided(text="summary"))
    assert plan.edits[0].message.parts[0].text == "summary"


def test_a_demand_starts_a_run_and_a_switched_off_trigger_does_not():
    assert due(policy(trigger=Never()), view_of(TALK, cause=Cause.MANUAL))
    assert not due(policy(trigger=Never()), view_of(TALK, window=5, cause=Cause.THRESHOLD))


def test_a_view_above_the_input_budget_is_due_whatever_the_trigger():
    assert due(policy(trigger=Exactly(10**9)), view_of(TALK, window=20, cause=Cause.THRESHOLD))


def test_planning_twice_gives_equal_plans():
    view = view_of(TALK)
    assert run(policy(Step(DropSecond())), view) == run(policy(Step(DropSecond())), view)


def test_a_plan_survives_the_way_through_json():
    plan = run(policy(Step(DropSecond()), Step(Ask())), view_of(TALK), Provided(text="\u2026 summary"))
    assert load_plan(dump_plan(plan)) == plan
    assert load_plan(dump_plan(plan, indent=2).decode()) == plan


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "not json", '{"refold_plan": 1}', '{"refold_plan": 1, "plan": {"policy": 3}}']
)
def test_what_is_not_a_plan_is_refused(text):
    with pytest.raises(UnreadablePlan):
        load_plan(text)


def test_a_plan_of_a_later_version_is_refused_with_the_remedy():
    data = dump_plan(run(policy(Step(DropSecond())), view_of(TALK))).replace(
        b'"refold_plan":1', f'"refold_plan":{VERSION + 1}'.encode()
    )
    with pytest.raises(UnreadablePlan, match="newer refold"):
        load_plan(data)


def test_a_plan_that_was_changed_by_hand_is_refused():
    data = dump_plan(run(policy(Step(DropSecond())), view_of(TALK))).replace(b'"policy":"test"', b'"policy":"other"')
    with pytest.raises(UnreadablePlan, match="changed"):
        load_plan(data)


def test_a_plan_is_refused_on_another_transcript_and_taken_on_a_longer_one():
    plan = run(policy(Step(DropSecond())), view_of(TALK))
    longer = talk("u: first request", "a: a long answer", "u: second", "a: short", "u: third")
    assert checked(plan, longer) is plan
    with pytest.raises(StalePlan):
        checked(plan, talk("u: other", "a: a long answer", "u: second", "a: short"))
    with pytest.raises(StalePlan):
        checked(plan, talk("u: first request"))


def test_a_plan_that_names_an_unknown_message_is_refused():
    plan = run(policy(Step(DropSecond())), view_of(TALK))
    with pytest.raises(StalePlan, match="not here"):
        checked(replace(plan, edits=(Hide(("b2:unknown",)),)), TALK)


def test_tags_are_read_off_a_plan():
    class Condense(Pure, frozen=True):
        def edits(self, view, answers):
            hidden = tuple(message.id for message in view.messages[:2])
            return (Hide(hidden), view.insert("user", "s", Note("summary"), before=view.messages[2].id))

    plan = run(policy(Step(Condense())), view_of(TALK))
    summary = next(edit.message.id for edit in plan.edits if isinstance(edit, Insert))
    found = tags(plan)
    assert found[summary].condense_id == summary
    assert {found[message.id].condense_parent for message in TALK.messages[:2]} == {summary}


def test_a_fingerprint_is_the_same_in_every_process():
    import subprocess
    import sys

    program = "import refold.policies as p; print(*(p.find(n).fingerprint for n in p.names()))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, env={"PYTHONHASHSEED": seed}, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
    assert len(set(seen.pop().split())) == 6
