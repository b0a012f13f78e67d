from refold._condense.digest.outcomes import outcomes
from refold._condense.digest.state import state
from refold.core.messages import Message, ToolCall
from refold.core.transcript import Transcript
from refold.testing import talk, view_of

BEGUN = "Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 71\nOutput:\n"
ENDED = "Chunk ID: 2\nWall time: 9 seconds\nProcess exited with code {}\nOutput:\n"
START = 'a: x | exec_command({"cmd": "pytest"}) as c1'
ASK = 'a: y | write_stdin({"session_id": 71, "chars": ""}) as c2'


def ends_of(*lines):
    transcript = talk("u: go", *lines)
    return [(end.ended, end.failed) for end in outcomes(view_of(transcript), transcript.messages)]


def test_a_check_that_still_runs_has_neither_passed_nor_failed():
    begun = f"t: c1 = {BEGUN}ERROR while reading the cache: 1 failed"
    assert ends_of(START, begun) == [("still running when it was last seen", False)]
    again = f"t: c2 = {BEGUN}2 tests done"
    assert ends_of(START, begun, ASK, again) == [("still running when it was last seen", False)]


def test_a_command_of_the_background_ends_as_the_answer_says_that_asks_for_it():
    begun = f"t: c1 = {BEGUN}FAILED tests/test_a.py::test_one - ValueError: no row"
    assert ends_of(START, begun, ASK, f"t: c2 = {ENDED.format(0)}12 passed") == [("passed: 12 passed", False)]
    failed = f"t: c2 = {ENDED.format(1)}1 failed"
    (end,) = ends_of(START, begun, ASK, failed)
    assert end == ("exit code 1: tests/test_a.py::test_one: ValueError: no row", True)


def test_a_notice_that_a_command_of_the_background_has_ended_says_how():
    start = ('a: x | Bash({"command": "make test"}) as c1', "t: c1 = Command running in background with ID: b7f")
    notice = 'u: <task-notification><task-id>b7f</task-id>\n<summary>Background command "Test" failed with exit code 2'
    assert ends_of(*start) == [("still running when it was last seen", False)]
    assert ends_of(*start, f"{notice}</summary></task-notification>")[0][1]


def test_a_command_that_was_stopped_has_not_passed():
    begun = f"t: c1 = {BEGUN}2 tests done"
    stopped = ('a: y | KillShell({"shell_id": "71"}) as c2', "t: c2 = Successfully killed shell: 71")
    assert ends_of(START, begun, *stopped) == [("still running when it was last seen", False)]


def test_a_check_of_an_earlier_turn_is_not_told_to_run_still():
    lines = ("u: go", START, f"t: c1 = {BEGUN}2 tests done", "a: It runs.")
    assert "no end shown" in "".join(state(view_of(talk(*lines))))
    assert "no end shown" not in "".join(state(view_of(talk(*lines, "u: on", "a: ok", "u: more"))))


def test_what_shows_the_end_of_an_output_that_was_too_long_tells_how_its_command_ended():
    whole = "/tmp/results/b4.txt"
    build = 'a: x | Bash({"command": "swift build"}) as c1'
    begun = f"t: c1 = Output too large (50KB). Full output saved to: {whole}\n\nPreview:\nUpdating the packages"
    shown = (f'a: y | Bash({{"command": "tail -3 {whole}"}}) as c2', "t: c2 = [840/840] Linking\nBuild complete! (43s)")
    assert ("passed", False) in ends_of(build, begun, *shown)
    assert ("passed", False) not in ends_of(build, begun)


def test_a_check_of_which_nothing_says_how_it_ended_is_told_with_what_it_printed_last():
    check = 'a: x | Bash({"command": "pnpm build"}) as c1'
    assert ends_of(check, "t: c1 = 12:01 reading\n12:02 all pages are written") == [
        ("printed last: 12:02 all pages are written", False)
    ]


def test_a_report_of_a_command_that_is_json_tells_its_exit_code_and_what_it_printed():
    run = 'a: x | exec({"cmd": "pytest"}) as c1'
    report = '{"exit_code":1,"output":"FAILED tests/test_a.py::test_one - ValueError: no row\\n1 failed\\n"}'
    assert ends_of(run, f"t: c1 = Script completed\nOutput:\n\n{report}") == [
        ("exit code 1: tests/test_a.py::test_one: ValueError: no row", True)
    ]


def test_several_commands_of_a_script_end_each_on_its_own():
    script = (
        "const r = await Promise.all([tools.exec_command({cmd: 'pytest'}), tools.exec_command({cmd: 'npm run build'})])"
    )
    answers = '{"exit_code":1,"output":"1 failed"}\n{"exit_code":0,"output":"Compiled successfully"}'
    transcript = talk("u: go", "a: x | exec(run) as c1", f"t: c1 = Script completed\nOutput:\n\n{answers}")
    first, message, last = transcript.messages
    call = ToolCall("c1", "exec", script, kind="custom")
    transcript = Transcript((first, Message(message.id, "assistant", (call,)), last))
    ends = {end.call: end.ended for end in outcomes(view_of(transcript), transcript.messages)}
    assert ends == {"exec `pytest`": "exit code 1: 1 failed", "exec `npm run build`": "passed"}
