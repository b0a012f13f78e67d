import json
import os
import threading
import time
from pathlib import Path

import pytest

from refold.agent._shell import DECLINED, run, shell
from refold.agent._tools import ToolOutcome, perform
from refold.core.messages import ToolCall

pytestmark = pytest.mark.skipif(os.name == "nt", reason="commands of a Unix shell")


def done(place: Path, allowed: bool = True, **arguments: object) -> tuple[ToolOutcome, list[str]]:
    asked: list[str] = []

    def allow(command: str) -> bool:
        asked.append(command)
        return allowed

    tool = shell(place, allow, max_bytes=2_000, max_lines=50)
    return perform({tool.name: tool}, ToolCall("c1", tool.name, json.dumps(arguments))), asked


def test_a_command_runs_in_the_folder_once_it_is_allowed(tmp_path: Path) -> None:
    outcome, asked = done(tmp_path, command="pwd; echo err >&2")
    assert outcome == ToolOutcome(f"{tmp_path}\nerr")
    assert asked == ["pwd; echo err >&2"]


def test_a_command_that_is_not_allowed_does_not_run(tmp_path: Path) -> None:
    outcome, _ = done(tmp_path, allowed=False, command="touch made")
    assert outcome == ToolOutcome(DECLINED, True)
    assert not (tmp_path / "made").exists()


def test_an_exit_code_is_told(tmp_path: Path) -> None:
    assert done(tmp_path, command="echo no; exit 3")[0] == ToolOutcome("no\n[Exit code 3]", True)


def test_the_end_of_a_long_output_is_kept(tmp_path: Path) -> None:
    text = done(tmp_path, command="seq 1 5000")[0].text
    assert "5000" in text
    assert "truncated from" in text
    assert len(text) <= 2_000


def test_an_empty_command_is_refused_unasked(tmp_path: Path) -> None:
    outcome, asked = done(tmp_path, command="  ")
    assert outcome.is_error
    assert not asked


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    start = time.monotonic()
    output, code = run("echo begun; sleep 60 & echo $! > pid; wait", tmp_path, 1.0)
    assert (output, code) == ("begun\n", None)
    assert time.monotonic() - start < 20
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_command_left_in_the_background_does_not_hold_the_answer(tmp_path: Path) -> None:
    start = time.monotonic()
    output, code = run("sleep 30 & echo $!", tmp_path, 20.0)
    assert code == 0
    assert time.monotonic() - start < 15
    os.kill(int(output), 9)


def test_input_is_empty_so_that_no_command_waits_for_it(tmp_path: Path) -> None:
    assert run("cat; echo end", tmp_path, 20.0) == ("end\n", 0)


def test_several_commands_may_run_at_once(tmp_path: Path) -> None:
    found: list[tuple[str, int | None]] = []
    workers = [threading.Thread(target=lambda n=n: found.append(run(f"echo {n}", tmp_path, 20.0))) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(found) == [(f"{number}\n", 0) for number in range(4)]


def gone(process: int) -> bool:
    """Whether a process ends within some seconds; one that nobody has collected yet has ended."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{process}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False
