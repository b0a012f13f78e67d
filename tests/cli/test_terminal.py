import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from refold._cli import show

Run = Callable[..., Result]
REFOLD = (sys.executable, "-c", "from refold._cli.main import main; main()")


def refold(*args: object, input: str = "") -> "subprocess.CompletedProcess[str]":
    command = [*REFOLD, *map(str, args)]
    return subprocess.run(command, input=input, capture_output=True, text=True, timeout=60, check=False)


def test_piped_output_has_no_colour_and_no_frame(run: Run, chat: Path) -> None:
    shown = run("stats", chat).stdout
    assert "\x1b" not in shown
    assert "─" not in shown


def test_a_terminal_gets_colour_unless_it_is_declined(run: Run, chat: Path) -> None:
    forced = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "100"}
    shown = run("plan", chat, "--window", "8k", "--policy", "neurolink", env=forced).stdout
    assert "\x1b[3" in shown
    assert "─" in shown
    plain = run("plan", chat, "--window", "8k", "--policy", "neurolink", env=forced | {"NO_COLOR": "1"}).stdout
    assert "\x1b[3" not in plain


@pytest.mark.skipif(os.name == "nt", reason="the shell of a Unix system")
@pytest.mark.parametrize("command", ["stats -", "plan - --window 8k", "sessions import -"])
def test_a_closed_standard_input_is_told_in_one_line(tmp_path: Path, command: str) -> None:
    script = f"{sys.executable} -m refold {command} <&-"
    env = os.environ | {"REFOLD_STORE": str(tmp_path / "s.db")}
    done = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("refold: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="the shell of a Unix system")
def test_a_closed_standard_output_is_told_in_one_line_by_what_writes_there(chat: Path) -> None:
    script = f"{sys.executable} -m refold compact {chat} --window 8k --force >&-"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "refold: standard output is closed: name a file with -o"


@pytest.mark.parametrize("columns", ["40", "60", "80", "140"])
def test_no_line_is_wider_than_the_terminal(run: Run, chat: Path, columns: str) -> None:
    env = {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": columns}
    for command in (("stats", chat), ("plan", chat, "--window", "8k"), ("policies",), ("diff", chat, "--window", "8k")):
        for line in run(*command, env=env).stdout.replace("\x1b[1m", "").splitlines():
            bare = "".join(
                piece.partition("m")[2] if number else piece for number, piece in enumerate(line.split("\x1b["))
            )
            assert len(bare) <= int(columns), (command, bare)


def test_a_narrow_terminal_cuts_no_number_and_no_word_that_is_not_meant_to_be(run: Run, chat: Path) -> None:
    env = {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm"}
    command = ("plan", chat, "--window", "8k", "--policy", "neurolink")
    narrow, broad = (run(*command, env=env | {"COLUMNS": columns}).stdout for columns in ("60", "160"))
    assert "shortened" in broad
    wanted, found = (set(re.findall(r"[0-9]+,[0-9]{3}|shortened|assistant", text)) for text in (broad, narrow))
    assert wanted == found


def test_what_a_narrow_terminal_cannot_hold_side_by_side_stands_one_below_the_other(run: Run) -> None:
    env = {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "60"}
    shown = run("policies", env=env).stdout
    assert "trigger  80% of window" in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_figures_that_a_narrow_terminal_cannot_hold_stand_in_several_tables(run: Run) -> None:
    env = {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "56"}
    lines = re.sub(r"\x1b\[[0-9;]*m", "", run("models", "claude-sonnet-4-5", env=env).stdout).splitlines()
    assert max(map(len, lines)) <= 56
    heads = [line for line in lines if "model" in line and ("window" in line or "out" in line) and "match" not in line]
    assert len(heads) > 1
    assert all("…" not in line for line in lines)


def test_control_characters_of_tool_output_never_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "\x1b]0;owned\x07\x1b[2J red alert \u009b31m \ud800 \u202egnp.exe"}]
    (tmp_path / "evil.json").write_text(json.dumps(messages))
    for command in (("stats",), ("plan", "--window", "1k", "--force"), ("diff", "--window", "1k", "--force")):
        shown = run(command[0], tmp_path / "evil.json", *command[1:])
        assert shown.exit_code in (0, 1)
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown.output)


def test_lone_surrogates_are_written_as_they_were_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text('[{"role": "user", "content": "half \\ud83d"}]')
    result = run("compact", tmp_path / "odd.json", "--window", "8k")
    assert result.exit_code == 0
    assert json.loads(result.stdout)[0]["content"] == "half \ud83d"


def test_bars_are_longest_for_the_largest_and_never_empty_for_something() -> None:
    assert len(show.bar(100, 100)) > len(show.bar(10, 100)) >= len(show.bar(1, 100_000)) == 1
    assert show.bar(0, 100) == ""


def test_help_loads_no_vocabulary_and_no_reader() -> None:
    code = (
        "import sys\nfrom refold._cli.main import cli\n"
        "try: cli.main(['--help'], prog_name='refold')\nexcept SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name.startswith(('splintr', 'refold.transcripts', 'tools.sample_sessions'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_whole_command_runs_in_a_process_of_its_own(chat: Path, tmp_path: Path) -> None:
    done = refold("compact", chat, "--window", "8k", "-o", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    piped = refold("plan", "-", "--window", "4k", input=(tmp_path / "out.json").read_text())
    assert piped.returncode == 0
    assert "standard input" in piped.stdout
    bad = refold("plan", tmp_path / "absent.json")
    assert bad.returncode == 2
    assert bad.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe is said otherwise")
def test_a_reader_that_has_seen_enough_is_no_error(chat: Path) -> None:
    writer = subprocess.Popen([*REFOLD, "compact", str(chat), "--window", "200k"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.close()
    complaints = writer.stderr.read()
    writer.stderr.close()
    assert writer.wait(60) == 0
    assert b"Traceback" not in complaints


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to another process")
def test_an_interrupt_ends_with_130_and_leaves_no_file(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    process = subprocess.Popen([*REFOLD, "compact", "-", "--window", "8k", "-o", str(tmp_path / "out.json")], stdin=read_end, stderr=subprocess.PIPE, text=True)  # fmt: skip
    os.close(read_end)
    assert process.stderr is not None
    time.sleep(1.5)  # it waits for its input by then
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    process.stderr.close()
    os.close(write_end)
    assert process.wait(60) == 130
    assert said.strip().startswith("refold: interrupted")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_writing_keeps_the_file_that_was_there(
    run: Run, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(source: str, target: str) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "out.json"
    out.write_text("precious")
    monkeypatch.setattr(os, "replace", interrupted)
    result = run("compact", chat, "--window", "8k", "-o", out)
    assert result.exit_code == 130
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chat.json", "out.json"]


def test_a_conversation_can_be_compacted_in_place_and_keeps_its_mode(run: Run, chat: Path) -> None:
    chat.chmod(0o640)
    size = chat.stat().st_size
    assert run("compact", chat, "--window", "8k", "-o", chat).exit_code == 0
    assert chat.stat().st_size < size
    if os.name != "nt":
        assert chat.stat().st_mode & 0o777 == 0o640
