import json

import pytest
from msgspec.structs import replace

from refold._condense.call_outline import call_line
from refold._condense.digest.outcomes import ended, is_over, outcomes, passed_calls, repeated_failures, solved_checks
from refold._condense.digest.quotes import quotes
from refold._condense.digest.sections import sections
from refold._condense.digest.targets import target_in, target_of
from refold.core.messages import Text, ToolCall, ToolResult
from refold.testing import talk, view_of


def command(text):
    return f"bash({json.dumps({'command': text})})"


def is_open(first, wrong, *later):
    """Whether an error of the first command is open after later ones went well."""
    lines = ["u: go", f"a: x | {command(first)} as c0", f"t: c0 = {wrong}"]
    for n, text in enumerate(later, 1):
        lines += [f"a: x | {command(text)} as c{n}", f"t: c{n} = fine\nexit code 0"]
    transcript = talk(*lines)
    ends = outcomes(view_of(transcript), transcript.messages)
    (found,) = [end for end in ends if end.failed]
    return found.open


@pytest.mark.parametrize(
    "later",
    [
        "pytest tests/test_a.py",
        "cd /repo && pytest -x -q tests/test_a.py 2>&1; echo done",
        "python -m pytest tests/test_a.py -vv",
        "CI=1 uv run pytest tests/",
        "pytest",
        "timeout 60 pytest -q .",
    ],
)
def test_an_error_is_closed_by_the_same_in_another_spelling_or_on_more(later):
    assert not is_open("pytest -q tests/test_a.py", "1 failed\nexit code 1", later)


@pytest.mark.parametrize(
    "later", ["pytest tests/test_b.py", "ls tests", "python -m mypy tests/test_a.py", "git status"]
)
def test_an_error_is_open_where_something_else_went_well(later):
    assert is_open("pytest -q tests/test_a.py", "1 failed\nexit code 1", later)


def test_a_run_of_one_test_is_closed_by_its_file():
    assert not is_open("pytest tests/test_a.py::test_one", "1 failed\nexit code 1", "pytest tests/test_a.py")
    assert not is_open("go test ./pkg/store", "FAIL pkg/store\nexit code 1", "go test ./...")
    assert is_open("npm run build", "exit code 2", "npm test")
    assert not is_open("npm run build", "exit code 2", "npm run build -- --verbose")


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("cd x && npm test", "npm test"),
        ("npm run test", "yarn test --silent"),
        ("npm test", "cd web && pnpm test && git commit -am done"),
        ("npx tsc --noEmit -p tsconfig.json", "cd /repo && npm run build"),
        ("cargo build", "cargo build --release"),
        ("cargo check", "cargo test"),
        ("go build ./pkg", "go test ./..."),
        ("go test ./pkg -run TestA", "go test ./pkg"),
        ("pytest -x test_a.py -k one", "pytest test_a.py"),
        ("make -j8 test", "make test"),
        ("./gradlew test", "gradlew test --info"),
        ("mvn -q test", "mvn package"),
        ("pytest tests/test_a.py", "make test"),
        ("git add --wrong a.py", "git add a.py && git commit -m done"),
        ("pytest /repo/tests/test_a.py", "pytest tests/test_a.py"),
        ("bash -lc 'pytest tests/test_a.py'", "pytest"),
        ("cat > a.py <<'EOF'\nx; y\nEOF\npytest test_a.py", "pytest test_a.py"),
    ],
)
def test_a_run_that_does_the_same_or_more_closes_an_error(first, later):
    assert not is_open(first, "wrong\nexit code 1", later)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("cd packages/a && npm test", "cd packages/b && npm test"),
        ("npm --prefix a test", "npm --prefix b test"),
        ("make test", "make"),
        ("pytest", "pytest tests/test_a.py"),
        ("go test ./pkg", "go test ./pkg -run TestA"),
        ("cargo test", "cargo check"),
        ("npm publish", "npm test"),
        ("go test ./...", "go build ./..."),
    ],
)
def test_a_run_of_less_or_elsewhere_leaves_an_error_open(first, later):
    assert is_open(first, "wrong\nexit code 1", later)


def test_runs_of_all_tests_that_failed_close_the_run_of_more():
    wrong = "FAILED tests/a.py::test_one - ValueError: x\nFAILED tests/b.py::test_two\n2 failed\nexit code 1"
    assert not is_open("pytest", wrong, "pytest tests/a.py", "pytest tests/b.py")
    assert is_open("pytest", wrong, "pytest tests/a.py")
    assert not is_open("go test ./...", "--- FAIL: TestA (0.0s)\nexit code 1", "go test ./pkg -run TestA")


def outcomes_of(*lines):
    transcript = talk("u: go", *lines)
    return outcomes(view_of(transcript), transcript.messages)


@pytest.mark.parametrize(
    ("words", "text", "after"),
    [
        ("This should fail without the fix.", "pytest a.py", "Good."),
        ("I expect it to fail now.", "pytest a.py", "Good."),
        ("x", "echo '--- negative check ---'; pytest a.py", "Good."),
        ("x", "! pytest a.py", "Good."),
        ("x", "pytest a.py", "It fails as expected: the guard works."),
        ("x", "pytest a.py", "The parser correctly rejects it."),
    ],
)
def test_a_run_that_was_to_fail_is_no_error(words, text, after):
    (end,) = outcomes_of(f"a: {words} | {command(text)} as c", "t: c = 1 failed\nexit code 1", f"a: {after}")
    assert (end.failed, end.ended.endswith("(this was expected)")) == (False, True)


def test_a_run_that_should_not_fail_is_an_error():
    (end,) = outcomes_of(f"a: It should not fail. | {command('pytest a.py')} as c", "t: c = 1 failed\nexit code 1")
    assert end.open


def test_a_busy_server_is_no_error_once_a_later_call_got_through_and_a_search_never_is():
    first = ('a: x | deploy({"to": "a"}) as c1', "t! c1 = 503 Service Unavailable")
    (end,) = outcomes_of(*first)
    assert end.open
    (end,) = outcomes_of(*first, 'a: x | deploy({"to": "b"}) as c2', "t: c2 = done")
    assert not end.open
    (end,) = outcomes_of('a: x | websearch({"query": "b"}) as c2', "t! c2 = 429 rate limit")
    assert end.target.looks


def test_a_command_of_its_own_is_open_only_until_the_work_went_on():
    wrong = "Error: ENOENT: no such file, open 'x'\nexit code 1"
    assert is_open("node tools/once.js", wrong, *(f"ls {n}" for n in range(7)))
    assert not is_open("node tools/once.js", wrong, *(f"ls {n}" for n in range(8)))
    assert is_open("npm run build", wrong, *(f"ls {n}" for n in range(20)))


def test_a_file_that_a_command_wrote_closes_the_edit_that_failed():
    (edit, *_) = (
        end
        for end in outcomes_of(
            "a: x | edit(/r/a.py) as c1",
            "t! c1 = old text not found",
            f"a: x | {command('cat > a.py <<EOF')} as c2",
            "t: c2 = ok",
        )
        if end.failed
    )
    assert (edit.open, edit.passed_later) == (False, True)


def test_a_check_that_says_it_failed_has_failed_whatever_ended_the_pipe():
    assert is_open("pytest 2>&1; true", "=== 2 failed, 3 passed in 1s ===")
    script = "node scripts/lint-posts.mjs -p a.mdx 2>&1; true"
    assert is_open(script, "a.mdx: too long\nFiles with errors: 1")
    assert is_open(script, "a.mdx: too long\nSome checks failed.")
    well = talk("u: go", f"a: x | {command(script)} as c", "t: c = Files with errors: 0\n0 checks failed")
    assert not [end for end in outcomes(view_of(well), well.messages) if end.failed]
    well = talk("u: go", f"a: x | {command('pytest')} as c", "t: c = it goes on when checks failed: ok\n5 passed")
    assert not [end for end in outcomes(view_of(well), well.messages) if end.failed]


@pytest.mark.parametrize(
    ("run", "begins"),
    [
        (
            "pnpm test 2>&1 |grep -A12 Failed |head -60",
            "⎯⎯⎯⎯ Failed Tests 5 ⎯⎯⎯⎯\n\n FAIL  test/a.test.tsx > link > renders it",
        ),
        ("python -m pytest tests -q |tail -40", "/venv/bin/python: No module named pytest"),
        ("cd app && npm test |head -5", "bash: cd: app: No such file or directory"),
        ("npx vitest run |cat", "sh: vitest: command not found"),
    ],
)
def test_a_check_behind_a_filter_has_failed_where_its_output_begins_so(run, begins):
    text = f"{begins}\n{'a line of what was received ' * 120}"
    assert is_open(run, text)


def test_an_error_that_only_introduces_is_told_with_the_line_below_it():
    wrong = "Error: a.mdx:\n  - Title: too long\nexit code 1"
    transcript = talk("u: go", f"a: x | {command('node scripts/lint.mjs; true')} as c", f"t: c = {wrong}")
    (end,) = outcomes(view_of(transcript), transcript.messages)
    assert end.ended == "exit code 1: Error: a.mdx: Title: too long"


def test_an_edit_that_failed_is_closed_by_the_next_of_the_same_file():
    transcript = talk(
        "u: go",
        "a: x | edit(a.py) as c1",
        "t! c1 = old text not found",
        "a: x | edit(b.py) as c2",
        "t! c2 = old text not found",
        "a: x | edit(a.py) as c3",
        "t: c3 = ok",
    )
    ends = outcomes(view_of(transcript), transcript.messages)
    assert {end.call: end.open for end in ends} == {"edit b.py": True, "edit a.py": False}


def test_an_edit_that_found_no_place_is_open_only_until_the_turn_ended():
    lines = ["u: go", "a: x | edit(a.py) as c1", "t: c1 = ok", "a: x | edit(a.py) as c2", "t! c2 = text not found"]
    for more, still in (([], True), (["a: All is mended.", "u: thanks"], False)):
        transcript = talk(*lines, *more)
        (end,) = outcomes(view_of(transcript), transcript.messages)
        assert end.open is still


def test_what_the_user_or_the_harness_refused_is_no_error_of_the_work():
    transcript = talk(
        "u: go", "a: x | edit(a.py) as c1", "t! c1 = The user doesn't want to proceed with this tool use."
    )
    assert outcomes(view_of(transcript), transcript.messages) == ()


def test_a_search_that_finds_nothing_is_looking_and_a_line_of_a_digest_is_read_back_as_the_same_target():
    call = ToolCall("c", "bash", '{"command": "cd x && grep -n foo src/a.py"}')
    assert target_of(call).looks
    run = ToolCall("c", "bash", '{"command": "cd x && pytest tests/a.py"}')
    assert target_of(run).covers(target_in("bash `pytest -q tests/a.py`"))
    assert target_of(ToolCall("c", "Edit", '{"path": "a.py"}')).covers(target_in("Edit a.py"))


def test_an_edit_that_never_worked_did_not_go_well_since_a_command_wrote_the_file():
    refused = [
        line
        for n in range(3)
        for line in (
            f'a: x | edit({{"path": "a.py", "old_string": "{n}", "new_string": ""}}) as c{n}',
            f"t! c{n} = none",
        )
    ]
    by_command = [f"a: x | {command('sed -i s/1/2/ a.py')} as c8", "t: c8 = exit code 0"]
    by_edit = ['a: x | edit({"path": "a.py", "old_string": "2", "new_string": ""}) as c9', "t: c9 = done"]
    another = " (the file was changed in another way later: by bash `sed -i s/1/2/ a.py`)"
    for later, mark in (([], ""), (by_command, another), (by_edit, " (went well later)")):
        transcript = talk("u: go", *refused, *later)
        (line,) = repeated_failures(view_of(transcript), transcript.messages)
        assert line == f"edit a.py failed 3 times: error: none{mark} (turn 1)"


@pytest.mark.parametrize(
    "said",
    [
        "Resource temporarily unavailable", "The user doesn't want to proceed with this tool use.",
        "User cancelled the prompt", "[Request interrupted by user]", "The tool use was rejected.",
        "interrupted by the user", "The command was aborted", "Operation aborted", "Cancelled: parallel tool call",
        "Operation Cancelled", "Tool execution aborted", "Sibling tool call errored",
    ],
)  # fmt: skip
def test_a_call_that_a_user_or_a_harness_stopped_has_no_outcome(said):
    transcript = talk("u: go", f"a: x | {command('make check')} as c", f"t! c = {said}")
    assert not outcomes(view_of(transcript), transcript.messages)


@pytest.mark.parametrize("said", ["Missing required argument: path", "error: unrecognized arguments: --fast"])
def test_a_check_that_was_called_wrongly_has_failed(said):
    transcript = talk("u: go", f"a: x | {command('node scripts/lint-posts.mjs; ls')} as c", f"t: c = {said}\na.md")
    (end,) = outcomes(view_of(transcript), transcript.messages)
    assert end.failed


@pytest.mark.parametrize(
    ("between", "how"),
    [
        (
            ["a: The rate is missing. I'll add the rate of zone 2. | edit(src/rates.py) as e", "t: e = ok"],
            ': rates.py changed, "I\'ll add the rate of zone 2."',
        ),
        (["a: x | edit(a.py) as e", "t: e = ok", "a: x | edit(/tmp/probe.py) as f", "t: f = ok"], ": a.py changed"),
        (["a: x | edit(a.py) as e", "t! e = no such text"], ""),
        ([], ""),
    ],
)
def test_a_check_that_went_well_later_says_what_was_done_about_it(between, how):
    run = command("make check")
    lines = ["u: go", f"a: x | {run} as c", "t: c = 1 failed\nexit code 1", *between, f"a: y | {run} as d", "t: d = ok"]
    transcript = talk(*lines)
    assert solved_checks(view_of(transcript)) == (
        f"bash `make check` → exit code 1: 1 failed (turn 1) (went well later{how})",
    )


def test_a_check_that_went_well_when_it_was_called_in_another_way_says_how():
    transcript = talk(
        "u: go", f"a: x | {command('pytest -q')} as c", "t: c = pytest failed to start\nexit code 127",
        f"a: y | {command('uv run pytest -q')} as d", "t: d = 3 passed\nexit code 0",
    )  # fmt: skip
    (line,) = solved_checks(view_of(transcript))
    assert line.endswith("(went well later: as bash `uv run pytest -q`)")


def test_a_check_that_went_well_after_what_it_needs_says_that_and_no_file_that_was_changed_meanwhile():
    transcript = talk(
        "u: go", f"a: x | {command('pnpm test')} as c", "t: c = Expected version: >=20\nexit code 1",
        "a: x | edit(a.py) as e", "t: e = ok",
        f"a: y | {command('nvm use >/dev/null && node -v && pnpm test')} as d", "t: d = 3 passed\nexit code 0",
    )  # fmt: skip
    (line,) = solved_checks(view_of(transcript))
    assert line.endswith("(went well later: after `nvm use`)")


def test_a_call_that_failed_in_several_ways_says_how_mostly_and_how_the_last_time():
    errors = ("no such table", "no such table", "no such column", "disk full")
    lines = ["u: go"]
    for n, wrong in enumerate(errors):
        lines += [f"a: x | {command('make data')} as c{n}", f"t: c{n} = {wrong}\nexit code 1"]
    transcript = talk(*lines)
    (line,) = repeated_failures(view_of(transcript), transcript.messages)
    how = "exit code 1: no such table (2 times); the last time: exit code 1: disk full"
    assert line == f"bash `make data` failed 4 times, in 3 ways: {how} (turn 1)"


def ended_as(command_line, output):
    (end,) = outcomes_of(f"a: x | {command(command_line)} as c1", f"t: c1 = {output}")
    return end.ended, end.failed


NOISE = "tool ERROR cannot write its cache\n1 failed download\nok pkg/store\nexit code 0"


def test_a_check_that_ends_with_code_0_has_passed_whatever_it_printed():
    for line in ("mise run test", "cd app && mise run test 2>&1", "mise run test && echo done"):
        assert ended_as(line, NOISE) == ("exit code 0", False), line


def test_code_0_says_nothing_of_a_check_where_it_is_that_of_another_command():
    for line in ("make test |tail -5", "make test || true", "make test; echo done", "make test\necho done"):
        how, bad = ended_as(line, NOISE)
        assert bad, line
        assert how.startswith("failed: "), line


def test_warnings_of_a_check_are_told_with_the_first_one():
    text = "warning: unused import: `fs`\n --> a.rs:1\n\nwarning: `app` (lib) generated 1 warning\n    Finished"
    assert ended_as("cargo clippy", text) == ("no failure shown, 1 warning: unused import: `fs`", False)
    assert ended_as("npx eslint .", "3 problems (0 errors, 3 warnings)")[0] == "passed, 3 warnings"
    assert ended_as("pytest", "5 passed, 1 warning in 0.1s")[0] == "passed: 5 passed"


def test_the_error_of_a_tool_that_repeats_its_arguments_is_what_stands_behind_them():
    code = "if (!found) { throw new Error(`not found`) } // failed before"
    arguments = json.dumps({"files": [{"path": "src/pages/a.tsx", "content": code * 9}]})
    answer = json.dumps({"text": "failed to read the branch: 409 the repository is empty"})
    text = f"tool error for call: {arguments} with response: [{answer}]"
    transcript = talk("u: go", f"a: x | push_files({arguments}) as c1", f"t! c1 = {text}")
    (end,) = outcomes(view_of(transcript), transcript.messages)
    assert end.ended == "error: failed to read the branch: 409 the repository is empty"


def test_an_answer_whose_status_is_an_error_has_failed_and_the_words_of_a_file_have_not():
    text = '{"status":"error","error":"Service error: 402 payment required"}'
    (end,) = outcomes_of('a: x | send_mail({"to": "ann"}) as c1', f"t: c1 = {text}")
    assert end.open
    assert "402 payment required" in end.ended
    assert outcomes_of('a: x | read_file({"path": "a.json"}) as c1', f"t: c1 = {text}") == ()
    assert outcomes_of('a: x | send_mail({"to": "ann"}) as c1', 't: c1 = {"status":"success","error":""}') == ()


def test_a_failed_call_of_another_tool_is_open_until_the_work_went_on():
    lines = ['a: x | load_skill({"name": "b"}) as c0', "t! c0 = not found"]
    for n in range(1, 9):
        (end,) = [end for end in outcomes_of(*lines) if end.failed]
        assert end.open
        lines += [f"a: x | {command(f'./step{n}.sh')} as c{n}", f"t: c{n} = exit code 0"]
    assert not next(end for end in outcomes_of(*lines) if end.failed).open


def test_what_outputs_of_commands_that_went_well_end_with_is_no_error():
    lines = []
    for n in range(3):
        lines += [f"a: x | {command(f'ssh box ./step{n}')} as c{n}", f"t: c{n} = fine\nexit code 0\nWelcome to Box 7"]
    lines += [f"a: x | {command('ssh box ./last')} as c9", "t: c9 = exit code 1\nWelcome to Box 7"]
    assert outcomes_of(*lines)[0].ended == "exit code 1"


def test_a_warning_is_no_cause_where_a_line_says_more_and_no_line_is_cut_at_its_beginning():
    noise = "tool WARN cannot find the version list: no such file: not found\n" * 30
    assert ended_as("./deploy", f"exit code 1\n{noise}the upload was denied")[0] == "exit code 1: the upload was denied"
    assert ended_as("./deploy", f"exit code 1\n{noise}bye")[0].startswith("exit code 1: tool WARN cannot find")


def test_an_output_that_was_cleared_is_told_with_the_error_that_it_had():
    transcript = talk("u: go", f"a: x | {command('./deploy')} as c1", "t: c1 = exit code 1\nthe upload was denied")
    answer = transcript.messages[-1]
    (result,) = answer.results
    pointer = Text("[output cleared] bash ./deploy, 2 lines: exit code 1")
    cleared = replace(answer, parts=(replace(result, content=(pointer,)),))
    (end,) = outcomes(view_of(transcript), [cleared])
    assert end.ended == "exit code 1: the upload was denied"


def test_a_test_run_by_the_python_of_an_environment_is_closed_by_a_run_of_more():
    assert not is_open(
        ".venv/bin/python -m pytest a.py::test_one", "1 failed\nexit code 1", "venv/bin/python -m pytest"
    )


def test_a_check_of_an_earlier_turn_is_open_no_more_once_its_task_was_defined_anew():
    lines = [f"a: x | {command('mise run test-all')} as c1", "t: c1 = exit code 1\n1 failed", "a: It fails.", "u: on"]
    assert outcomes_of(*lines)[0].open
    lines += ['a: y | edit({"path": "mise.toml", "new": "[tasks.test-all]"}) as c2', "t: c2 = done"]
    assert not outcomes_of(*lines)[0].open


def test_what_was_said_of_a_command_is_over_once_that_went_well_or_does_another_thing():
    def over(*later):
        transcript = talk("u: go", "a: `mise run test:all` still fails here.", *later)
        view = view_of(transcript)
        return is_over(
            view, passed_calls(view, transcript.messages), transcript.messages[1], "`mise run test:all` fails"
        )

    run = f"a: x | {command('mise run test:all')} as c1"
    assert not over(run, "t: c1 = exit code 1")
    assert over(run, "t: c1 = fine\nexit code 0")
    edit = 'a: x | edit({"path": "mise.toml", "new": "[tasks.test:all]"}) as c1'
    assert over(edit, "t: c1 = done")
    assert not over(edit, "t! c1 = no match")


def test_what_failed_is_listed_once_the_work_went_on_with_the_assistants_words_and_not_without_any():
    def listed(output, words):
        lines = ["u: go", f"a: x | {command('./deploy')} as c0", f"t: c0 = exit code 1\n{output}"]
        for n in range(1, 9):
            lines += [f"a: {words if n == 1 else 'x'} | {command(f'./step{n}.sh')} as c{n}", f"t: c{n} = exit code 0"]
        transcript = talk(*lines)
        view = view_of(transcript)
        texts = quotes(view, transcript.messages, (), 2_000)
        some = sections(view, transcript.messages, (), texts)
        return next(section.lines for section in some if section.title == "Tried and failed")

    said = "The host takes no uploads today."
    (line,) = listed("the upload was denied", said)
    assert line.endswith(f': the upload was denied (turn 1): "{said}"')
    assert listed("", said) == listed("the upload was denied", "x") == ()


@pytest.mark.parametrize(
    ("printed", "ended", "wrong"),
    [
        ("error: Item 3 failed\n(pass) it goes on\n 1290 pass\n 0 fail", "passed: 1290 pass", False),
        ("error: Item 3 failed\n 1289 pass\n 1 fail", "failed: error: Item 3 failed", True),
        ("TOTAL 900 500 45%\n78 passed in 1.2s", "passed: 78 passed, coverage 45 %", False),
        ("78 passed in 1.2s\nerror: 2 files are not formatted", "failed: error: 2 files are not formatted", True),
    ],
)
def test_a_count_of_tests_without_a_failure_outranks_words_for_errors_before_it(printed, ended, wrong):
    (end,) = outcomes_of(f"a: x | {command('bun run test 2>&1')} as c", f"t: c = {printed}")
    assert (end.ended, end.failed) == (ended, wrong)


def test_a_command_that_failed_behind_another_is_closed_once_it_was_run_without_that():
    tried = (f"a: x | {command('rtk bun run test')} as c1", "t: c1 = unknown command\nexit code 2")
    wrong = (f"a: x | {command('bun run test')} as c2", "t: c2 = 1 failed\nexit code 1")
    assert [end.open for end in outcomes_of(*tried)] == [True]
    assert [end.open for end in outcomes_of(*tried, *wrong)] == [True, False]


def test_a_question_to_a_service_is_the_same_with_other_fields():
    assert not is_open("gh pr checks 5 --json a,b --jq '.[].b // 1'", "Unknown field\nexit code 1", "gh pr checks 5")


def test_a_script_of_an_agents_skill_is_no_check_of_the_work():
    assert target_in("shell `python scripts/check_links.py`").checks
    assert not target_in("shell `python .gemini/skills/figma/scripts/check_manifest.py`").checks
    assert target_in("shell `if [ -x a ]; then a; elif [ -x b/python ]; then b/python -m pytest -q; fi`").written == (
        "b/python -m pytest -q"
    )


@pytest.mark.parametrize(
    ("text", "printed", "told"),
    [
        ("gh auth status", "github.com\n  ✓ Logged in as ada", "github.com / Logged in as ada"),
        ("systemctl status web; date", f"web\n   Active: active (running)\n{'log ' * 150}", ""),
        (
            "ssh host 'systemctl status web'",
            f"web\n   Active: active (running)\n{'log ' * 150}",
            "Active: active (running)",
        ),
        ("git add -A && git status --short", " M a.py", ""),
        ("gh auth token", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", ""),
        ("mkdir out", "(Bash completed with no output)", ""),
    ],
)
def test_a_command_that_went_well_is_told_with_what_it_printed_where_that_is_short_and_its_own(text, printed, told):
    (end,) = outcomes_of(f"a: x | {command(text)} as c", f"t: c = {printed}")
    assert end.ended == told


def test_a_command_that_was_only_mistyped_is_closed_by_the_next_one():
    wrong = (f"a: x | {command('cp -r src/main/app out/app && ls out')} as c1", "t: c1 = cp: no\nexit code 1")
    right = (f"a: x | {command('cp -r src/main/app ./out/app && ls out')} as c2", "t: c2 = app")
    other = (f"a: x | {command('cp other.txt out')} as c2", "t: c2 = ok")
    assert not outcomes_of(*wrong, *right)[1].open
    assert outcomes_of(*wrong, *other)[1].open


def sections_of(*lines):
    transcript = talk(*lines)
    view = view_of(transcript)
    some = sections(view, transcript.messages, (), quotes(view, transcript.messages, (), 2_000))
    return {section.title: section.lines for section in some}


def test_a_merge_with_conflicts_is_closed_by_the_commit_behind_it():
    assert is_open("git merge side", "CONFLICT\nexit code 1")
    assert not is_open("git merge side", "CONFLICT\nexit code 1", "git add a.py && git commit --no-edit")


def test_runners_of_other_versions_run_the_same():
    assert not is_open(
        "fnm exec --using=24 -- corepack pnpm exec vitest run a.test.ts",
        "Error: listen EPERM\nexit code 1",
        "pnpm exec vitest run a.test.ts",
    )
    (target,) = [target_in("bash `fnm exec --using=24 -- corepack pnpm node --run check`")]
    assert (target.task, target.checks) == ("npm check", True)


def test_a_check_in_another_folder_closes_nothing():
    calls = [ToolCall(f"c{n}", "exec", json.dumps({"cmd": "npm test", "workdir": f"/w/{n}"})) for n in (1, 2, 1)]
    first, second, again = map(target_of, calls)
    assert again.covers(first)
    assert not second.covers(first)


def test_what_is_said_behind_a_failure_stands_with_it_only_where_it_speaks_of_it():
    def commented(words):
        lines = ("u: go", f"a: x | {command('./deploy')} as c1", "t: c1 = exit code 1\nthe quota is used up")
        transcript = talk(*lines, f"a: {words} | read(a.py) as c2", "t: c2 = x")
        (end,) = outcomes(view_of(transcript), transcript.messages)
        return end.comment[1]

    assert commented("The quota of the host is too small.") == "The quota of the host is too small."
    assert commented("The worker process is alive and well.") == ""


def test_advice_of_a_turn_that_only_looked_is_no_try_that_failed():
    words = "The semantic search does not work in your harness. Fix that before you draw conclusions."
    looked = ("u: Review it.", "a: I look. | read(a.py) as c1", "t: c1 = x", f"a: {words}", "u: and now?")
    assert sections_of(*looked)["Tried and failed"] == ()
    worked = ("u: Mend it.", "a: I mend it. | edit(a.py) as c1", "t: c1 = x", f"a: {words}", "u: and now?")
    assert sections_of(*worked)["Tried and failed"] != ()


def test_a_look_that_the_harness_did_not_run_is_an_open_error():
    blocked = ("u: go", f"a: I search. | {command('rg -n route src')} as c1", "t! c1 = Guard blocked the command.")
    assert sections_of(*blocked)["Open errors"] == (
        "bash `rg -n route src` → error: Guard blocked the command. (turn 1)",
    )
    nothing = ("u: go", f"a: I search. | {command('rg -n route src')} as c1", "t! c1 = exit code 1")
    assert sections_of(*nothing)["Open errors"] == ()


def test_what_a_command_showed_is_told_until_the_same_program_changed_it_or_its_turn_ended():
    look = (f"a: x | {command('npx vercel integration list')} as c1", "t: c1 = No resources found.")
    assert sections_of("u: go", *look)["Commands"] != ()
    act = (f"a: x | {command('npx vercel integration add neon')} as c2", "t: c2 = Added.")
    assert sections_of("u: go", *look, *act)["Commands"] == ("bash `npx vercel integration add neon` → Added.",)
    assert sections_of("u: go", *look, "a: There is none.", "u: Add one.")["Commands"] == ()


@pytest.mark.parametrize(
    ("run", "printed", "how"),
    [
        ("bun run lint", 'Found 8 errors.\nerror: script "lint" exited with code 1\nexit code 1', "Found 8 errors."),
        ("cargo check", "    Finished `dev` profile [unoptimized] target(s) in 0.20s", "passed"),
    ],
)
def test_what_a_tool_says_of_its_own_run_tells_how_it_ended(run, printed, how):
    (end,) = outcomes_of(f"a: x | {command(run)} as c", f"t: c = {printed}")
    assert end.ended.endswith(how)


def test_a_command_elsewhere_is_told_with_its_folder():
    def at(folder, text, number):
        arguments = json.dumps({"cmd": text, "workdir": folder})
        return (f"a: x | exec_command({arguments}) as c{number}", f"t: c{number} = done")

    work = (
        *at("/w/app", "npm run deploy", 1),
        *at("/w/app", "npx vercel env pull", 2),
        *at("/w/base", "entire enable", 3),
    )
    told = sections_of("u: go", *work)["Commands"]
    assert told[0] == "exec_command `entire enable` → done (in /w/base)"
    assert told[1:] == ("exec_command `npx vercel env pull` → done", "exec_command `npm run deploy` → done")


def test_a_line_names_what_is_looked_for_and_no_filter_or_comment():
    search = f"# where is the usage told?\nrg 'usage|token' /w/{'runs/' * 16}log.jsonl | sort | uniq -c"
    assert call_line(ToolCall("c", "bash", json.dumps({"command": search}))).startswith(
        "bash `rg 'usage|token' /w/runs/"
    )
    hashed = f"# is it the hash of the path?\n{'echo -n a; ' * 12}echo -n /w | md5"
    transcript = talk("u: go")
    call, result = ToolCall("c", "bash", json.dumps({"command": hashed})), ToolResult("c", (Text("7ee51f98"),))
    assert ended(view_of(transcript), call, result) == ""
