import json

import pytest

from refold._condense.digest.conclusions import decisions, tried
from refold._condense.digest.narration import no_work
from refold._condense.digest.render import digest_text
from refold._condense.digest.state import state
from refold.testing import talk, view_of


def told(*lines):
    return state(view_of(talk(*lines)))


def test_the_last_intent_is_told_where_work_was_going_on():
    lines = told("u: go", "a: I found the bug. Now I'll change load_items. | read(a.py) as c1", "t: c1 = x")
    assert lines == (
        "the assistant's last words (turn 1, before the last call): I found the bug. Now I'll change load_items.",
        "last call: read a.py",
    )


def test_a_call_at_the_end_that_nothing_has_answered_says_so():
    lines = told("u: go", "a: Now the two. | edit(a.py) as c1", "t: c1 = ok", "a: x | edit(b.py) as c2")
    assert lines[1] == "last calls: edit a.py (done); edit b.py (no result yet)"


def test_the_end_of_a_turn_is_told_as_such_and_a_limit_of_the_provider_is_no_state():
    lines = told("u: go", "a: I read it. | read(a.py) as c", "t: c = x", "a: All is mended.")
    assert lines == (
        "answered; waiting for the user: the assistant's last words (turn 1, which they end): All is mended.",
    )
    lines = told("u: go", "a: I read it. | read(a.py) as c", "t: c = x", "a: Now I'll change it.")
    assert lines == ("the assistant's last words (turn 1): Now I'll change it.",)
    acting_by_words = told("u: go", "a: I look.\n```bash\nls; let me = all.it\n```")
    assert acting_by_words == ("the assistant's last words (turn 1): I look.",)
    lines = told("u: go", "a: Next I run it. | read(a.py) as c", "t: c = x", "a: You've hit your monthly spend limit")
    assert lines[0] == "the assistant's last words (turn 1, before the last call): Next I run it."


def shell(command):
    return f"bash({json.dumps({'command': command})})"


def test_what_was_called_after_the_last_words_is_told_with_its_end():
    lines = told("u: go", f"a: Next I test. | {shell('go test ./...')} as c1", "t: c1 = ok  pkg/store 0.1s")
    assert lines[1:] == ("last call: bash `go test ./...` → passed",)
    wrong = "FAILED tests/a.py::test_it - ValueError: x\n1 failed\nexit code 1"
    lines = told(
        "u: go",
        "a: Now I change it. | edit(a.py) as c1 | read(b.py) as c2",
        "t: c1 = ok",
        "t: c2 = x",
        f"a: x | edit(c.py) as c3 | {shell('pytest')} as c4",
        "t: c3 = ok",
        f"t: c4 = {wrong}",
    )
    assert lines[0].startswith("the assistant's last words (turn 1, before the last 4 calls): ")
    assert lines[1:] == (
        "last calls: read b.py; edit c.py (done); bash `pytest` → exit code 1: tests/a.py::test_it: ValueError: x",
    )


def test_the_last_check_of_each_sort_is_told_with_its_end():
    lines = told(
        "u: go",
        f"a: x | {shell('npm run build')} as c1 | {shell('pytest -q')} as c2 | {shell('pytest')} as c3",
        "t: c1 = error TS2322: wrong\nexit code 2",
        "t: c2 = 1 failed",
        "t: c3 = 2 passed",
        "a: All done.",
    )
    assert lines[1:] == (
        "last check (turn 1): bash `pytest` → passed: 2 passed",
        "last check (turn 1): bash `npm run build` → exit code 2: error TS2322: wrong",
    )


def test_the_last_commit_is_told_and_a_branch_that_was_seen_later():
    commit = "[main 1a2b3c4] Add the store\n 1 file changed"
    lines = told("u: go", f"a: x | {shell('git commit -am x')} as c1", f"t: c1 = {commit}", "a: Done.")
    assert lines[1:] == (
        "last commit (turn 1): [main 1a2b3c4] Add the store",
        "changed since the last commit: nothing seen",
    )
    lines = told(
        "u: go",
        f"a: x | {shell('git commit -am x')} as c1",
        f"t: c1 = {commit}",
        f"a: x | {shell('git switch -c next')} as c2",
        "t: c2 = Switched to a new branch 'next'",
        "a: x | edit(a.py) as c3 | edit(/tmp/b.py) as c4",
        "t: c3 = ok",
        "t: c4 = ok",
        "a: Done.",
    )
    assert lines[1:] == (
        "last commit (turn 1): [main 1a2b3c4] Add the store",
        "changed since the last commit: a.py",
        "branch (turn 1): next",
    )


def test_the_last_commit_is_the_command_that_commits_and_none_where_there_was_nothing_to():
    line = shell("git branch -f old HEAD && git add a.py && git commit -q -m 'Keep a & b' && git push")
    lines = told("u: go", f"a: x | {line} as c1", "t: c1 = done", "a: ok", "u: on")
    assert "last commit (turn 1): `git commit -q -m 'Keep a & b'`" in lines
    lines = told("u: go", f"a: x | {line} as c1", "t: c1 = nothing to commit, working tree clean", "a: ok", "u: on")
    assert not any(each.startswith("last commit (") for each in lines)


def test_commands_in_the_background_are_told_until_something_says_that_they_ended():
    started = (
        "u: go",
        f"a: x | {shell('npm run dev')} as c1",
        "t: c1 = Command running in background with ID: b1a",
    )
    lines = told(*started, "a: It runs.")
    assert lines[-1] == (
        "started in the background, no end shown (turn 1): bash `npm run dev` → background with ID: b1a"
    )
    ended = ("a: x | BashOutput(b1a) as c2", "t: c2 = status: completed")
    killed = ("a: x | KillShell(b1a) as c2", "t: c2 = ok")
    noticed = ("u: <task-notification><task-id>b1a</task-id><status>failed</status></task-notification>",)
    for end in (ended, killed, noticed):
        assert "background" not in "".join(told(*started, *end, "a: It runs."))
    by_itself = ("u: go", f"a: x | {shell('python app.py > log.txt 2>&1 & sleep 1')} as c1", "t: c1 = ok")
    assert told(*by_itself, "a: It runs.")[-1].endswith("bash `python app.py > log.txt 2>&1`")
    stopped = (f"a: x | {shell('pkill -f app.py')} as c2", "t: c2 = ok")
    assert "background" not in "".join(told(*by_itself, *stopped, "a: Off."))


def test_of_a_line_of_commands_the_one_in_the_background_is_told_with_its_process():
    line = shell("cd /w && (python app.py --port 80 2>&1) & sleep 2; curl -s 'http://host/?a=1&b=2'")
    started = ("u: go", f"a: x | {line} as c1", "t: c1 = [1] 11909\nLoading")
    assert told(*started, "a: It runs.")[-1].endswith("bash `python app.py --port 80 2>&1` → process 11909")
    ended = shell("python app.py & PID=$!; sleep 6; kill $PID")
    assert "background" not in "".join(told("u: go", f"a: x | {ended} as c1", "t: c1 = ok", "a: Off."))


def test_a_watch_on_a_command_is_told_until_it_is_stopped():
    watch = 'a: x | Monitor({"command": "cd /w && python -u fetch.py"}) as c1'
    started = ("u: go", watch, "t: c1 = Monitor started (task b7k, timeout 900000ms). You will be notified.")
    assert told(*started, "a: It runs.")[-1].endswith("Monitor `cd /w && python -u fetch.py` → started task b7k")
    stopped = ("a: x | TaskStop(b7k) as c2", "t: c2 = Successfully stopped task: b7k")
    assert "background" not in "".join(told(*started, *stopped, "a: Off."))


def test_junk_is_nothing_that_was_done_and_a_try_that_failed_is_told():
    assert no_work("API Error: 529 overloaded")
    assert not no_work("Error handling is in place now.")
    transcript = talk(
        "u: go",
        "a: You've hit your session limit · resets 7:20pm",
        "u: on",
        "a: The cache did not help, so it is still broken.",
        "u: and",
    )
    assert tried(transcript, transcript.messages) == ("The cache did not help, so it is still broken. (turn 2)",)
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert "session limit" not in text


def test_a_decision_is_told_and_what_only_speaks_of_skills_or_is_supposed_is_none():
    transcript = talk(
        "u: go",
        "a: I’m using the store skill because this is about the store. Maybe the cause is the cache. "
        "The cause is the lock. I'll keep the cache, because all of it reads there.\n```sh\necho instead of that, we use this\n```",
    )
    assert decisions(transcript, transcript.messages) == ("I'll keep the cache, because all of it reads there.",)


def test_a_list_of_tasks_from_before_the_current_request_is_told_with_its_turn():
    lines = ("u: go", 'a: x | TodoWrite({"todos": [{"content": "mend it", "status": "pending"}]}) as c1', "t: c1 = ok")
    assert "to do: mend it" in told(*lines)
    assert "to do: mend it (list of turn 1)" in told(*lines, "a: Half done.", "u: Now write the notes.")


def test_a_task_that_was_in_progress_when_its_turn_was_answered_is_told_as_not_marked():
    todos = {
        "todos": [{"content": text, "status": how} for text, how in (("read", "completed"), ("mend", "in_progress"))]
    }
    lines = told("u: go", f"a: x | TodoWrite({json.dumps(todos)}) as c1", "t: c1 = ok", "a: Done.", "u: Now the notes.")
    assert "to-do list: 1 of 2 done (list of turn 1): read; not marked when its turn was answered: mend" in lines
    assert not any(each.startswith("to do: ") for each in lines)


def test_a_task_left_in_progress_that_tasks_which_are_done_passed_is_told_as_done():
    states = (("read", "completed"), ("mend", "in_progress"), ("test", "completed"))
    todos = {"todos": [{"content": text, "status": how} for text, how in states]}
    lines = told("u: go", f"a: x | TodoWrite({json.dumps(todos)}) as c1", "t: c1 = ok", "a: Done.", "u: Now the notes.")
    assert lines[-1] == (
        "to-do list: 2 of 3 done (list of turn 1): read; test; "
        "done, too, it seems, though not marked: tasks behind it are done and its turn was answered: mend"
    )


def test_the_whole_list_of_tasks_is_told_with_what_is_done():
    todos = {"todos": [{"content": text, "status": how} for text, how in (("read", "completed"), ("mend", "pending"))]}
    lines = told("u: go", f"a: x | TodoWrite({json.dumps(todos)}) as c1", "t: c1 = ok")
    assert lines[-2:] == ("to-do list: 1 of 2 done: read", "to do: mend")


@pytest.mark.parametrize(
    ("answer", "became"),
    [
        ((), "waits for the user's approval"),
        (("t: c1 = User has approved your plan.",), "approved by the user"),
        (("t! c1 = No, smaller.",), "not approved: No, smaller."),
        (("t: c1 = The tool use was rejected.",), "not approved: The tool use was rejected."),
    ],
)
def test_a_plan_that_was_put_before_the_user_is_told_with_what_became_of_it(answer, became):
    plan = json.dumps({"plan": "# Mend the store\n\n1. Read it"})
    lines = told("u: go", f"a: x | ExitPlanMode({plan}) as c1", *answer)
    assert f"plan (turn 1), {became}: Mend the store" in lines


def test_a_command_in_a_block_of_text_that_a_harness_answers_is_a_call():
    lines = told(
        "u: go",
        "a: I run the tests.\n```bash\npytest -q\n```",
        "u: <returncode>1</returncode>\n<output>\n1 failed\n</output>",
    )
    assert lines == (
        "the assistant's last words (turn 1, before the last call): I run the tests.",
        "last call: shell `pytest -q` → exit code 1: 1 failed",
    )


def test_a_commit_that_was_announced_and_went_well_leaves_the_report():
    lines = told(
        "u: go",
        f"a: x | edit(a.py) as c1 | {shell('pytest')} as c2",
        "t: c1 = ok",
        "t: c2 = 3 passed",
        f"a: All clean. Let me commit: | {shell('git add -A && git commit -m x')} as c3",
        "t: c3 = [main abc1234] x",
    )
    assert lines[0] == "last call: bash `git add -A && git commit -m x` → [main abc1234], which went well"
    assert lines[-1] == "nothing open: report to the user"
    failed = told("u: go", f"a: Let me commit: | {shell('git commit -m x')} as c1", "t: c1 = fatal: no\nexit code 128")
    assert failed[0].endswith("Let me commit:")


def test_a_check_that_is_older_than_the_last_edits_says_so():
    checked = ("u: go", f"a: x | {shell('pytest')} as c1", "t: c1 = 3 passed")
    looking = ("a: And now? | read(a.py) as c3", "t: c3 = x", "a: And now? | read(b.py) as c4", "t: c4 = x")
    for path, mark in (("a.py", " (before the last edits)"), ("a.md", "")):
        lines = told(*checked, f"a: x | edit({path}) as c2", "t: c2 = ok", *looking)
        assert f"last check (turn 1): bash `pytest` → passed: 3 passed{mark}" in lines


def test_after_a_rebase_the_commit_is_the_one_that_the_log_or_the_answer_names():
    committed = ("u: go", f"a: x | {shell('git commit -m x --fixup 1234567')} as c1", "t: c1 = [main abc1234] x")
    rebased = (f"a: x | {shell('git rebase --autosquash main')} as c2", "t: c2 = Successfully rebased.")
    stale = told(*committed, *rebased)
    assert "last commit (turn 1): [main abc1234] x (rewritten later)" in stale
    logged = told(*committed, *rebased, f"a: x | {shell('git log --oneline')} as c3", "t: c3 = 765432a x\n89abcde y")
    assert "last commit (turn 1): 765432a x" in logged
    answer = told(*committed, *rebased, "a: It is one now:\n```\n765432a x\n89abcde y\n```")
    assert "last commit (turn 1): 765432a x" in answer
    counted = told(*committed, *rebased, "a: It is one now:\n```\n1234567 rows\n```")
    assert "last commit (turn 1): [main abc1234] x (rewritten later)" in counted
    undone = told(*committed, f"a: x | {shell('git reset HEAD~1')} as c2", "t: c2 = exit code 0")
    assert "last commit (turn 1): [main abc1234] x (rewritten later)" in undone
    before = told(*committed, f"a: x | {shell('git log --oneline')} as c3", "t: c3 = abc1234 x", *rebased)
    assert "last commit (turn 1): [main abc1234] x (rewritten later)" in before


def test_what_blocks_the_current_request_stands_behind_the_list_of_tasks_until_it_went_well():
    lines = (
        "u: compare the scores",
        f"a: x | {shell('python evals/run.py')} as c1",
        "t: c1 = exit code 1\nError: token expired",
        "a: The fix is in, but the run is blocked by the expired login. I look at the page. | read(page.py) as c2",
        "t: c2 = x",
    )
    told_of = "blocked, as the assistant wrote in turn 1: The fix is in, but the run is blocked by the expired login."
    assert told(*lines)[-1] == told_of
    again = (f"a: Again. | {shell('python evals/run.py')} as c3", "t: c3 = exit code 0\nall ran")
    assert told_of not in told(*lines, *again)
    assert told_of not in told(*lines, "a: The login is expired.", "u: then tell me of the page")


@pytest.mark.parametrize(
    "words",
    [
        "Nothing is blocked any more.",
        "Le certificat est là, rien n'est plus bloqué par lui.",
        "You ask why the pipeline is still blocked.",
        "The main thread is blocked by a read in load().",
        "The IP 10.0.0.1 is blocked by the firewall, as wanted.",
    ],
)
def test_what_blocks_no_more_or_is_only_named_does_not_block_the_request(words):
    assert not any("blocked, as" in line for line in told("u: go", f"a: {words} | read(page.py) as c2", "t: c2 = x"))


def test_what_blocked_is_told_until_the_assistant_says_that_it_does_no_more():
    lines = ("u: go", "a: The deploy is blocked by the certificate. | read(page.py) as c1", "t: c1 = x")
    assert told(*lines)[-1].startswith("blocked, as")
    needed = ("a: I need the key to unblock it. I could not push, since that is blocked by a hook. | read(c.py) as c3",)
    assert told(*lines, *needed)[-1].endswith("I could not push, since that is blocked by a hook.")
    solved = ("a: Solved: the blocker is gone. | read(b.py) as c2", "t: c2 = x")
    assert not any("blocked, as" in line for line in told(*lines, *solved))


def test_a_plan_that_was_written_for_what_the_request_names_is_told():
    plans = [json.dumps({"file_path": f"specs/{n}.md", "content": f"# Phase {n}: the store\n\nx"}) for n in (1, 2)]
    written = [line for n, plan in enumerate(plans) for line in (f"a: x | write({plan}) as c{n}", f"t: c{n} = ok")]
    before = ("u: write the plans", *written, "a: Both plans are written.")
    line = "written for it in turn 1: specs/1.md (Phase 1: the store)"
    assert told(*before, "u: begin with phase 1", "a: x | read(a.py) as d", "t: d = x")[-1] == line
    assert not [each for each in told(*before, "u: begin", "a: x | read(a.py) as d", "t: d = x") if "written" in each]


def test_the_parts_of_an_approved_plan_are_told_while_it_is_worked_on_and_no_list_of_tasks_tells_them():
    plan = json.dumps({"plan": "# Mend the store\n\n## Read it\n\n## Write it\n\n## Test it\n\n#### Cases"})
    approved = ("u: go", f"a: x | ExitPlanMode({plan}) as c1", "t: c1 = User has approved your plan.")
    line = "parts of that plan, in order: Read it; Write it; Test it"
    assert line in told(*approved)
    todos = 'TodoWrite({"todos": [{"content": "Read it", "status": "pending"}]})'
    assert line not in told(*approved, f"a: x | {todos} as c2", "t: c2 = ok")
    assert line not in told(*approved, "a: All is done.", "u: Now the notes.")


@pytest.mark.parametrize(
    "steps", ["### 1. Read it\n#### Rows\n### 2. Write it\n### 3. Test it", "1. Read it\n2. Write it\n3. Test it"]
)
def test_of_a_plan_that_numbers_its_steps_these_are_its_parts(steps):
    plan = json.dumps({"plan": f"# Mend it\n\n## Context\n## Why\n## Steps\n{steps}\n## Files"})
    lines = told("u: go", f"a: x | ExitPlanMode({plan}) as c1", "t: c1 = User has approved your plan.")
    assert "parts of that plan, in order: 1. Read it; 2. Write it; 3. Test it" in lines


def test_a_list_of_tasks_stands_before_what_calls_show_unless_it_is_of_an_earlier_request():
    todo = ('a: x | TodoWrite({"todos": [{"content": "mend it", "status": "pending"}]}) as c1', "t: c1 = ok")
    check = (f"a: x | {shell('pytest')} as c2", "t: c2 = 3 passed", "a: Now the rest. | read(a.py) as c3", "t: c3 = x")
    again = (f"a: x | {shell('pytest')} as c4", "t: c4 = 3 passed", "a: Next. | read(b.py) as c5", "t: c5 = x")
    lines = told("u: go", *todo, *check)
    assert lines.index("to do: mend it") < lines.index("last check (turn 1): bash `pytest` → passed: 3 passed")
    lines = told("u: go", *todo, "a: Half of it.", "u: and now", *check, *again)
    assert lines[-1] == "to do: mend it (list of turn 1)"
