import json
import time

import pytest

from refold._condense.digest.render import digest_text
from refold._condense.digest.reports import report_of, reports
from refold.testing import talk, view_of

REPORT = "I read the store. It locks before it reads. The cache is never cleared, so old rows come back."
NOTICE = (
    '<task-notification>\n<task-id>a1</task-id>\n<summary>Agent "Review the store" finished</summary>\n'
    f"<result>{REPORT}</result>\n</task-notification>"
)


def agent(description):
    return f"task({json.dumps({'description': description, 'prompt': 'Look at it in full.'})})"


def told(*lines, staying=()):
    return reports(view_of(talk(*lines)), staying)


def test_a_sub_agent_is_told_with_what_it_reported():
    lines = told("u: go", f"a: I hand it on. | {agent('Review the store')} as c", f"t: c = {REPORT}")
    assert lines == (f"task Review the store (turn 1) → {REPORT}",)


def test_a_report_that_a_harness_brings_later_is_told_in_place_of_the_beginning():
    began = "Async agent launched successfully.\nagentId: a1\nThe agent is working in the background."
    work = ("u: go", f"a: I hand it on. | {agent('Review the store')} as c", f"t: c = {began}")
    assert told(*work) == ("task Review the store (turn 1, no report yet)",)
    assert told(*work, f"u: {NOTICE}") == (f"Review the store (turn 1) → {REPORT}",)
    assert told(*work, "a: I wait.", "u: stop waiting", "a: Done.") == ()


def test_an_id_before_a_report_says_nothing_of_one_that_is_missing():
    output = f"task_id: t1 (for resuming it later)\n\n<task_result>\n{REPORT}\n</task_result>"
    lines = told("u: go", f"a: I hand it on. | {agent('Review the store')} as c", f"t: c = {output}")
    assert lines == (f"task Review the store (turn 1) → {REPORT}",)
    assert report_of(output).strip() == REPORT


def test_a_report_that_stands_in_the_view_is_not_told_again():
    transcript = talk("u: go", f"a: I hand it on. | {agent('Review the store')} as c", f"t: c = {REPORT}", "a: ok")
    view = view_of(transcript)
    assert reports(view, transcript.messages[2:]) == ()
    digest = digest_text(view, transcript.messages[:3], staying=transcript.messages[3:])
    assert f"- task Review the store (turn 1) → {REPORT}" in digest
    assert "## Other calls" not in digest


def test_of_a_long_report_the_items_are_told_whole_without_bare_headings():
    items = [
        f"- `part{number}.py` holds rule {number}, which nothing tests, and it is used in two places"
        for number in range(9)
    ]
    report = report_of("## Summary\n\n" + "\n".join(items))
    assert report.startswith("`part0.py` holds rule 0, which nothing tests, and it is used in two places; `part1.py`")
    assert report.endswith("in two places")


def test_an_item_of_a_report_stands_behind_what_it_is_an_item_of():
    filler = "It was read in full, and each of its parts was compared with the last release. " * 6
    text = (
        f"# Review\n\n> Verdict: REQUEST CHANGES\n\n## Coverage of the store\n\n{filler}Missing tests for:\n\n"
        "- two writers at once\n- a full disk\n"
    )
    assert report_of(text) == (
        "Verdict: REQUEST CHANGES; Coverage of the store, Missing tests for: two writers at once; a full disk"
    )


def test_a_report_with_numbered_headings_is_told_by_them():
    findings = "\n".join(
        f"### {number}. Part {number} has no test\n\n- it may fail{' or be slow' * 20}\n" for number in (1, 2, 3)
    )
    assert report_of(f"## Critical\n\n{findings}") == (
        "1. Part 1 has no test; 2. Part 2 has no test; 3. Part 3 has no test"
    )


def test_a_review_that_asks_for_changes_comes_before_newer_ones_that_approve_and_those_are_told_in_short():
    findings = "\n".join(f"- The lock of file number {n} is taken before it is read" for n in range(12))
    reviews = (("code", "REQUEST CHANGES"), ("design", "APPROVE with minor suggestions"), ("safety", "No concerns"))
    calls = [
        line
        for number, (what, verdict) in enumerate(reviews)
        for line in (
            f"a: x | {agent(f'Review the {what}')} as c{number}",
            f"t: c{number} = {findings}\n\n**Verdict: {verdict}**",
        )
    ]
    changes, safety, design = told("u: go", *calls)
    assert changes.startswith("task Review the code (turn 1) → Verdict: REQUEST CHANGES; The lock of file number 0")
    assert safety.startswith("task Review the safety (turn 1) → Verdict: No concerns; The lock")
    assert design.startswith("task Review the design (turn 1) → Verdict: APPROVE with minor suggestions; The lock")
    assert len(changes) > len(design) + 100


@pytest.mark.parametrize("run", ["\n", "# a #", "verdict -", "## 1. a #", "- "])
def test_a_report_with_long_runs_of_signs_takes_no_time_that_grows_with_its_square(run):
    began = time.process_time()
    report_of(f"- a\n{run}{run[-1] * 50_000}x\n")
    assert time.process_time() - began < 1


def test_what_a_sub_agent_that_asks_is_told_and_how_each_is_stands_with_the_reports():
    ask = "Subagent needs a supervisor decision.\nRun: 1f\nAgent: worker\n\nMay I commit on main?"
    ruling = "Do not commit on main. Each writer has a worktree of its own."
    reply = json.dumps({"action": "reply", "replyTo": "q1", "message": ruling})
    seen = json.dumps({"action": "status", "id": "run7"})
    lines = told(
        "u: go",
        f"a: I hand it on. | {agent('Review the store')} as c",
        "t: c = Async workflow [run7]. The run is detached and runs in the background.",
        f"u: {ask}",
        f"a: No. | subagent_supervisor({reply}) as r",
        "t: r = Replied to supervisor request q1.",
        f"a: I look. | subagent({seen}) as s",
        "t: s = State: running\nWorkflow child store: store (worker) running, active\nWorkflow child ui: ui (worker) completed",
        "u: Background task completed: **worker**\n\nI left the cache as it was.",
    )
    assert lines == (
        "worker completed (turn 1) → I left the cache as it was.",
        "task Review the store (turn 1, no report yet)",
        "as seen last (turn 1): store (worker) running",
        f'a sub-agent was told in turn 1: "{ruling}"',
    )


def test_a_long_report_is_told_by_its_conclusions_before_its_outline():
    body = "".join(f"### {n}. PART {n}\n\n- reads `rows_{n}` from the file {'again ' * 20}\n\n" for n in range(1, 6))
    said = "The worker stopped before the test. No commit created."
    last = "Open: the gate remains unimplemented."
    told_of = report_of(f"{said}\n\n**Root cause: the ref of `target` is stale after a reload**\n\n{body}{last}\n")
    assert told_of.startswith(
        f"{said[:-1]}; Root cause: the ref of `target` is stale after a reload; {last[:-1]}; 1. PART"
    )
    found = report_of(f"# Review\n\n{body}## Key findings\n\n- `load` reads twice\n- `save` has no lock\n")
    assert found.startswith("`load` reads twice; `save` has no lock; 1. PART 1: reads `rows_1`")


def test_a_look_at_sub_agents_is_no_report_and_the_outputs_of_several_are():
    fleet = json.dumps({"action": "status", "view": "fleet"})
    assert (
        told("u: go", f"a: I look. | subagent({fleet}) as s", f"t: s = {'Foreground runs: none so far. ' * 60}") == ()
    )
    several = json.dumps({"task": "Map the store and the rows of it"})
    result = json.dumps(
        {"key": "a", "output": "The store has two readers, and neither of them takes the lock."}, indent=1
    )
    (line,) = told("u: go", f"a: x | subagent({several}) as s", f"t: s = Workflow completed.\n{result}")
    assert line.endswith("→ The store has two readers, and neither of them takes the lock.")


def test_what_a_sub_agent_said_before_a_plan_was_approved_is_marked():
    plan = json.dumps({"plan": "# An index of names\n\nSteps."})
    work = ("u: go", f"a: I hand it on. | {agent('Review the store')} as c", f"t: c = {REPORT}")
    approved = told(*work, f"a: x | ExitPlanMode({plan}) as d", "t: d = User has approved your plan.")
    assert approved == (f"task Review the store (turn 1, before the plan was approved) → {REPORT}",)
    refused = told(*work, f"a: x | ExitPlanMode({plan}) as d", "t! d = The tool use was rejected.")
    assert refused == (f"task Review the store (turn 1) → {REPORT}",)
