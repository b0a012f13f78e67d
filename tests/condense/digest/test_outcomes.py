import json

import pytest

from refold._condense.digest.outcomes import outcomes, target_in, target_of
from refold.core.messages import ToolCall
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


def test_a_check_that_says_it_failed_has_failed_whatever_ended_the_pipe():
    assert is_open("pytest 2>&1; true", "=== 2 failed, 3 passed in 1s ===")


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
