import json

import pytest

from refold._condense.digest.render import digest_text
from refold._condense.digest.steps import STEPS, earlier_steps, steps
from refold.testing import talk, view_of


def shell(command):
    return f"bash({json.dumps({'command': command})})"


WORK = (
    "u: Address the items.",
    "a: Item 1: the index. | edit(src/index.py) as a",
    "t: a = ok",
    "a: Let me look at the tests. | read(tests/test_index.py) as b",
    "t: b = x",
    f"a: Now the tests: | {shell('cd /w && python -m pytest -q tests/test_index.py; ls')} as c",
    "t: c = 1 failed",
)


def test_a_step_tells_what_was_announced_what_was_changed_and_how_its_check_ended():
    assert steps(view_of(talk(*WORK))) == (
        "turn 1: Now the tests: `python -m pytest -q tests/test_index.py` → failed: 1 failed",
        "turn 1: Item 1: the index: changed index.py",
    )


def test_files_of_one_name_in_two_folders_are_told_with_their_folders():
    edits = ("a: The names now. | edit(api/index.py) as a", "t: a = ok", "a:  | edit(web/index.py) as b", "t: b = ok")
    assert steps(view_of(talk("u: go", *edits))) == ("turn 1: The names now: changed api/index.py, web/index.py",)


def test_an_edit_that_was_refused_without_an_error_flag_is_no_step():
    refused = "t: a = No replacement was performed, old_str did not appear verbatim in src/index.py."
    assert steps(view_of(talk("u: go", "a: Item 1: the index. | edit(src/index.py) as a", refused))) == ()


def test_the_steps_of_a_turn_that_was_answered_are_not_told_and_those_of_one_that_the_user_steered_are():
    assert steps(view_of(talk(*WORK, "a: All items are done.", "u: Now the docs."))) == ()
    steered = talk(*WORK, "a: I'm fixing the test now.", "u: And keep the old name.")
    assert len(steps(view_of(steered))) == 2


def test_steps_that_an_earlier_digest_tells_are_carried_on_while_their_request_is_worked_on():
    view = view_of(talk("u: a", "a: ok", "u: b", "a: Let me see. | read(a.py) as c", "t: c = x"))
    assert earlier_steps(view, ("turn 1: One: changed a.py", "turn 2: Two: changed b.py")) == (
        "turn 2: Two: changed b.py",
    )


def test_a_digest_tells_the_steps_before_the_state_of_the_work():
    transcript = talk(*WORK)
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:5], staying=transcript.messages[5:])
    assert text.index(f"## {STEPS}") < text.index("## State and next step")


def test_an_answer_that_offers_to_go_on_or_shows_a_command_ends_its_turn():
    for answer in ("Say which one, and I'll rebase.", "Folded in.\n```bash\ngit push\n```", "If you agree, I'll push."):
        assert steps(view_of(talk(*WORK, f"a: {answer}", "u: Now the docs."))) == (), answer


def test_a_failure_of_a_step_that_went_well_later_says_so():
    well = ("a: The index is mended. | bash(pytest) as d", "t: d = 3 passed")
    assert steps(view_of(talk(*WORK, *well)))[1] == (
        "turn 1: Now the tests: `python -m pytest -q tests/test_index.py` → failed: 1 failed (went well later); "
        '"The index is mended."'
    )
    before = ("u: go", "a: Now the tests. | bash(pytest) as a", "t: a = 3 passed", "a: x | bash(pytest) as b")
    (line,) = steps(view_of(talk(*before, "t: b = 1 failed")))
    assert line.endswith("`pytest` → failed: 1 failed")
    (line,) = steps(view_of(talk(*before[:2], "t: a = 1 failed", before[3], "t: b = 3 passed")))
    assert "went well later" not in line
    other = ("a: The index is mended. | bash(ruff check .) as d", "t: d = exit code 0")
    assert "went well later" not in steps(view_of(talk(*WORK, *other)))[1]


def test_a_step_tells_in_the_assistants_words_what_came_of_it():
    found = "Only the index of zone 2 is wrong. This is no matter of the clock."
    work = (
        "u: go",
        "a: Let me look at the index. | read(src/index.py) as a",
        "t: a = x",
        f"a: Interesting! {found} Let me list what holds it: | read(src/a.py) as b",
        "t: b = x",
        "a: - It is:\n- this one\n\nNow the tests. | read(src/b.py) as c",
    )
    view = view_of(talk(*work))
    assert steps(view) == (f'turn 1: Let me look at the index: "{found}"',)
    assert steps(view, view.transcript.messages) == steps(view, stated=found) == ()


def test_a_call_without_words_is_not_told_as_what_was_announced_before_another():
    work = (
        "u: go",
        "a: Let me look at the loader: | read(load.py) as a",
        "t: a = x",
        f"a: . | {shell('python serve.py --once')} as b",
        "t: b = served 3 rows",
    )
    assert steps(view_of(talk(*work))) == (
        "turn 1: Let me look at the loader: then `python serve.py --once` → served 3 rows",
    )


def test_commands_that_tell_nothing_are_no_step():
    for text, printed in (("reset", ""), ("C-c", ""), ("sleep 5", ""), ("python report.py", "row\n" * 200)):
        assert steps(view_of(talk("u: go", f"a: . | {shell(text)} as a", f"t: a = {printed}"))) == (), text


def test_a_command_that_only_looks_is_told_with_its_line_where_a_step_holds_nothing_else():
    look = (f"a: Let me count them. | {shell('jq length ids.json')} as a", "t: a = 2")
    assert steps(view_of(talk("u: go", *look))) == ("turn 1: Let me count them: `jq length ids.json` → 2",)
    edit = ("a: . | edit(a.py) as b", "t: b = ok")
    assert steps(view_of(talk("u: go", *look, *edit))) == ("turn 1: Let me count them: changed a.py",)


def test_a_step_that_only_waited_is_none_and_a_command_that_ran_again_is_told_once():
    begun = "Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 71\nOutput:\n"
    wait = 'write_stdin({"session_id": 71, "chars": ""})'
    work = (
        "u: go",
        'a: I run it. | exec_command({"cmd": "node load.js --all"}) as a',
        f"t: a = {begun}",
        f"a: I keep polling. | {wait} as b",
        f"t: b = {begun}",
        f"a: It is still at work there. Now I wait on. | {wait} as c",
        f"t: c = {begun}",
    )
    assert not any("still at work" in each for each in steps(view_of(talk(*work))))
    look = "gh run view 7 --json status"
    asked = [
        line
        for n, how in enumerate(("in_progress", "in_progress", "completed"))
        for line in (f"a: Let me check the run. | {shell(look)} as d{n}", f"t: d{n} = {how}")
    ]
    assert steps(view_of(talk("u: go", *asked))) == (f"turn 1: Let me check the run: `{look}` → completed",)


def test_a_commit_is_told_with_its_id_and_an_act_behind_the_first_call_with_its_command():
    work = (
        "u: go",
        f"a: Now I provision it. | {shell('npx vercel login')} as a",
        "t: a = ok",
        f"a: . | {shell('npx vercel integration add neon --plan free')} as b",
        "t: b = " + "row\n" * 200,
        f"a: Let me commit it. | {shell('git add . && git commit -m x -m y')} as c",
        "t: c = [main 1a2b3c4d] Add the store",
    )
    newest, before = steps(view_of(talk(*work)))
    assert newest == "turn 1: Let me commit it: `git commit -m x -m y` → [main 1a2b3c4d] Add the store"
    assert before.endswith("then `npx vercel integration add neon --plan free`")


def test_a_command_of_which_the_beginning_is_known_only_names_no_word_of_a_text_in_it():
    program = 'python3 -c "import json\n' + "for e in rows: print(e)\n" * 60 + "done = 'a; b | c'\""
    for text in (f"cat x.json; {program}", "[[ ${#d} -eq 32 ]] && python3 -c 'val = read(a); b'", "out=$(ls)"):
        told = steps(view_of(talk("u: go", f"a: Let me look. | {shell(text)} as a", "t: a = x\ny\nz")))
        assert not any("done" in line or "[[ " in line or "out=" in line for line in told), told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "Now I set up the two clones of the work, which both need the same tools: one without hooks, one with them",
            ": ",
        ),
        (
            "Now I change the loader so that it reads all rows of each of the pages, and then I also look at the tests",
            ", for",
        ),
    ],
)
def test_of_a_long_announcement_whole_clauses_are_told(words, told):
    work = ("u: go", f"a: {words}, for as long as it takes to do so in the end. | edit(a.py) as a", "t: a = ok")
    (line,) = steps(view_of(talk(*work)))
    assert line == f"turn 1: {words.partition(told)[0]}: changed a.py"
