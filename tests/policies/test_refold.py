import ast
import inspect

import pytest
from msgspec.structs import replace

import refold
from refold.core._engine import due, planning, waiting
from refold.core.budget import Budget, Exactly, Share
from refold.core.messages import ToolResult
from refold.core.token_units import ReportedTokens
from refold.core.view import Cause
from refold.policies import refold as module
from refold.policies.refold import POLICY
from refold.testing import talk, view_of

BODY = "def work(value): return value\n" * 40


def session(batches=30):
    lines = ["u: Mend it. Never push."]
    for n in range(batches):
        lines += [f"a: step {n} | read(src/{n}.py) as c{n}", f"t: c{n} = {n} {BODY}"]
    return talk(*lines)


def plan(view, policy=POLICY):
    steps = planning(policy, view)
    try:
        next(steps)
    except StopIteration as stop:
        return stop.value.plan
    raise AssertionError("it asked for something from outside")


def test_it_starts_at_four_fifths_of_the_input_budget_once_it_pays_and_not_before():
    transcript = session()
    size = view_of(transcript).tokens
    view = view_of(transcript, window=10**6, goal=Share(0.5), cause=Cause.THRESHOLD)
    pays = replace(view, expected_calls=1_000)
    assert due(POLICY, replace(pays, budget=Budget(size * 5 // 4)))
    assert not due(POLICY, replace(pays, budget=Budget(size * 5 // 4 + 5)))
    assert waiting(POLICY, replace(view, budget=Budget(size * 5 // 4)))
    assert waiting(POLICY, replace(view, budget=Budget(size)))
    assert due(POLICY, replace(view, budget=Budget(size - 1)))


def test_it_ends_within_a_tenth_below_two_fifths_of_the_input_budget():
    view = view_of(session(), window=40_000, goal=POLICY.goal)
    made = plan(view)
    assert 14_400 <= made.sizes.after <= 16_000
    assert made.stages_used == ("fit",)


def test_repeated_reads_go_before_anything_else():
    transcript = talk(
        "u: go", "a: x | read(a.py) as c1", f"t: c1 = {BODY}", "a: y | read(a.py) as c2", f"t: c2 = {BODY}!", "u: on"
    )
    view = view_of(transcript, window=10**5, goal=2_000)
    made = plan(view)
    assert made.stages_used == ("supersede",)
    outputs = [
        part.text
        for message in view.after(made.edits).messages
        for part in message.parts
        if isinstance(part, ToolResult)
    ]
    assert outputs[1] == f"{BODY}!"


def test_nothing_happens_under_the_goal_and_nothing_more_on_a_compacted_view():
    transcript = session()
    assert plan(view_of(transcript, window=10**6)).empty
    view = view_of(transcript, window=10**6, goal=Exactly(12_000))
    after = view.after(plan(view).edits)
    again = replace(view, start=after.messages, measured=ReportedTokens(after.estimated))
    assert plan(again).empty


@pytest.mark.parametrize("budget", [5_000, 9_000, 12_000])
@pytest.mark.parametrize("stop", [23, 44, 93])
def test_a_budget_is_met_where_a_tokenizer_counts_more_for_a_whole_than_for_its_lines(budget, stop):
    messages = [message for number in range(30) for message in looked_at(number)][:stop]
    made = refold.plan(messages, budget=budget, model="claude-opus-4-5", format="anthropic")
    assert budget * 0.9 <= made.sizes.after <= budget


def test_system_prompt_and_tools_leave_messages_their_share_of_the_rest():
    view = view_of(session(), window=100_000, goal=POLICY.goal, system=50_000)
    assert view.goal_tokens == 50_000 + 17_500
    assert view_of(session(), window=100_000, goal=POLICY.goal).goal_tokens == 40_000
    assert view_of(session(), window=100_000, goal=POLICY.goal, system=90_000).goal_tokens == 72_000


def test_after_an_overflow_it_goes_deeper():
    view = view_of(session(), window=40_000)
    assert POLICY.after_overflow is not None
    deeper = replace(view, goal=POLICY.after_overflow.goal, cause=Cause.OVERFLOW)
    assert plan(deeper, POLICY.after_overflow).sizes.after <= 14_000


def test_what_stood_before_a_compaction_stays_the_same_bytes_until_the_next():
    transcript = session()
    view = view_of(transcript, window=10**6, goal=Exactly(12_000))
    made = plan(view)
    grown = talk(*["u: Mend it. Never push."], *_lines(30), "a: done", "u: thanks")
    before = view.after(made.edits).messages
    later = replace(view_of(grown, window=10**6), edits=made.edits).messages
    assert later[: len(before)] == before


def test_a_conversation_that_ends_on_an_open_call_keeps_it():
    transcript = talk("u: go", *_lines(20), "a: more | read(z.py) as z")
    view = view_of(transcript, window=10**6, goal=6_000)
    last = view.after(plan(view).edits).messages[-1]
    assert [call.call_id for call in last.calls] == ["z"]


def test_its_file_holds_no_control_flow():
    tree = ast.parse(inspect.getsource(module))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.If | ast.For | ast.While | ast.FunctionDef)]


def looked_at(number):
    used = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": f"src/part_{number}.py"}}
    shown = "\n".join(f"line {line} of part_{number} calls helper_{number}_{line}(value)" for line in range(150))
    return [
        {"role": "user", "content": f"Look at part {number}."},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": shown}]},
        {"role": "assistant", "content": f"Part {number} is fine."},
    ]


def _lines(batches):
    lines = []
    for n in range(batches):
        lines += [f"a: step {n} | read(src/{n}.py) as c{n}", f"t: c{n} = {n} {BODY}"]
    return lines
