import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from refold._cli.main import cli
from refold.core.messages import text_of
from refold.sessions import open_store
from refold.testing.provider import Fault, ReceivedRequest, ScriptedProvider, ScriptedReply
from tests.cli.person import COMMAND, MAIN, PATIENCE, Person, environment

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals are those of Unix")


class Desk:
    """A folder to work in, a home of its own, and a provider that answers by rule."""

    def __init__(self, path: Path, provider: ScriptedProvider) -> None:
        self.home, self.folder, self.provider = path / "home", path / "work", provider
        self.home.mkdir()
        self.folder.mkdir()
        self.env = environment(self.home)

    @property
    def store(self) -> Path:
        return self.home / "data" / "refold" / "sessions.db"

    def arguments(self, *more: object) -> tuple[object, ...]:
        given = {"--model": "scripted", "--base-url": self.provider.openai_url, "--window": "12k"}
        named = {str(each) for each in more}
        pairs = [pair for name, value in given.items() if name not in named for pair in (name, value)]
        return ("chat", *pairs, *more)

    @contextmanager
    def chat(self, *more: object, anew: bool = False) -> Iterator[Person]:
        with Person(*self.arguments(*more), env=self.env, cwd=self.folder, anew=anew) as person:
            person.sees("Ctrl-D leaves")
            person.sees("› ")
            yield person

    def runs(self, *arguments: object, lines: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
        """Run a command without a terminal, in this process: to start one takes a second, and the rest is the same."""
        words = list(map(str, arguments))
        with patch.dict(os.environ, self.env | more, clear=True), chdir(self.folder):
            done = CliRunner().invoke(cli, words, input=lines, prog_name="refold")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    def starts(self, *arguments: object, lines: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
        """Run a command without a terminal, in a process of its own."""
        return subprocess.run(
            [*COMMAND, *map(str, arguments)], input=lines, env=self.env | more, cwd=self.folder, text=True,
            capture_output=True, timeout=PATIENCE, check=False,
        )  # fmt: skip

    def pipes(self, lines: str, *more: object, **env: str) -> "subprocess.CompletedProcess[str]":
        return self.runs(*self.arguments(*more), lines=lines, **env)

    def only_session(self) -> str:
        store = open_store(self.store)
        (head,) = store.sessions()
        store.close()
        return head.id


def answered(received: ReceivedRequest) -> ScriptedReply | Fault | str:
    """Answer by the last word of what was said."""
    if not received.tools:
        headings = dict.fromkeys(HEADING.findall("\n".join(map(text_of, received.messages))))
        return (
            "\n\n".join(
                f"{heading}\nNotes were read, and what they say is known to all who were there." for heading in headings
            )
            or "Notes were read."
        )
    last = received.messages[-1]
    if last.results:
        return f"The tool said: {last.results[0].text[-300:]}"
    said = "".join(part.text for part in last.parts if hasattr(part, "text"))
    for word, answer in ANSWERS.items():
        if word in said:
            return answer
    return f"You said: {said[-200:]}"


HEADING = re.compile(r"^(?:#+ .+|\d\. [^:]+|[A-Z]+:)", re.M)
ANSWERS: dict[str, ScriptedReply | Fault | str] = {
    "READ": ScriptedReply("I look.", [("read", {"path": "notes.txt"})]),
    "LEAVE": ScriptedReply("", [("read", {"path": "../home/secret.txt"})]),
    "WRITE": ScriptedReply("", [("write", {"path": "made.txt", "content": "made\n"})]),
    "SHELL": ScriptedReply("", [("bash", {"command": "echo ran > ran.txt; cat ran.txt"})]),
    "SLEEP": ScriptedReply("", [("bash", {"command": "touch begun; sleep 100"})]),
    "TWO": ScriptedReply("", [("bash", {"command": "echo one"}), ("bash", {"command": "echo two > two.txt"})]),
    "DELEGATE": ScriptedReply("", [("delegate", {"task": "READ it"})]),
    "ENDLESS": "word " * 200_000,
}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ScriptedProvider(behave=answered, window=12_000) as provider:
        yield Desk(tmp_path, provider)


def numbers(shown: str) -> list[int]:
    return [int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*", shown)]


def test_a_person_talks_and_the_answer_is_streamed(desk: Desk) -> None:
    with desk.chat(anew=True) as person:
        assert "You said: hello" in person.says("hello")
        assert person.leaves() == 0
        assert f"refold chat --session {desk.only_session()}" in person.shown
    assert desk.provider.received[0].streaming


def test_tools_work_in_the_folder_and_not_outside_of_it(desk: Desk) -> None:
    (desk.folder / "notes.txt").write_text("the cat is grey\n")
    (desk.home / "secret.txt").write_text("hidden treasure")
    with desk.chat() as person:
        seen = person.says("READ it")
        assert "● read notes.txt" in seen
        assert "The tool said: the cat is grey" in seen
        assert "lies outside of" in person.says("LEAVE it")
        person.says("WRITE it")
    assert (desk.folder / "made.txt").read_text() == "made\n"
    assert not any("hidden treasure" in str(received.body) for received in desk.provider.received)


def test_anthropic_is_spoken_too_and_a_session_keeps_its_wire(desk: Desk) -> None:
    (desk.folder / "notes.txt").write_text("the cat is grey\n")
    first = desk.pipes("READ it\n", "--base-url", desk.provider.url, "--format", "anthropic", "--session", "cat")
    assert first.stdout == "I look.\nThe tool said: the cat is grey\n"
    desk.pipes("and now\n", "--base-url", desk.provider.url, "--session", "cat")
    assert {received.wire for received in desk.provider.received} == {"anthropic"}
    refused(desk.pipes("hi\n", "--session", "cat", "--format", "openai-chat"), 2, "--format")


def test_a_command_runs_only_after_a_person_has_agreed(desk: Desk) -> None:
    with desk.chat() as person:
        person.types("SHELL")
        assert "$ echo ran > ran.txt; cat ran.txt" in person.sees("[y/N]")
        person.types("n")
        assert "did not allow" in person.sees("› ")
        assert not (desk.folder / "ran.txt").exists()
        person.types("SHELL")
        person.sees("[y/N]")
        person.types("y")
        assert "The tool said: ran" in person.sees("› ")
    assert (desk.folder / "ran.txt").read_text() == "ran\n"


def test_without_a_terminal_a_command_runs_only_where_all_are_allowed(desk: Desk) -> None:
    done = desk.pipes("SHELL\n")
    assert done.returncode == 0
    assert "--yes" in done.stderr
    assert not (desk.folder / "ran.txt").exists()
    assert desk.pipes("SHELL\n", "--yes").stdout == "The tool said: ran\n"
    assert (desk.folder / "ran.txt").exists()


def test_a_long_conversation_is_compacted_with_a_card_and_goes_on(desk: Desk) -> None:
    (desk.folder / "notes.txt").write_text("".join(f"line {number} of the notes\n" for number in range(230)))
    with desk.chat() as person:
        for _ in range(8):  # the first card may be of new output alone, which is cut before the rest is compacted
            seen = person.says("READ it")
            assert "line 229 of the notes" in seen
        assert "Compacting conversation history…" in person.shown
        found = re.findall(r"Compaction complete: [\d,]+ → [\d,]+ tokens \(-\d+%\)", person.shown)
        sizes = [numbers(line)[:2] for line in found]
        assert any(after < before * 0.8 for before, after in sizes)
        assert "%" in person.says("/context")
    assert all(received.status == 200 for received in desk.provider.received)


def test_context_is_shown_in_colour_with_its_parts_and_the_sum_is_right(desk: Desk) -> None:
    with desk.chat() as person:
        person.says("hello there")
        person.types("/context")
        seen = person.sees("billed so far")
        rows = {name: numbers(line)[0] for name in ("system", "tools", "user", "assistant", "free")
                for line in seen.splitlines() if re.match(rf"[■·] {name} ", line)}  # fmt: skip
        assert set(rows) == {"system", "tools", "user", "assistant", "free"}
        limit = numbers(seen.splitlines()[1])[1]
        assert sum(rows.values()) == pytest.approx(limit, rel=0.02)
        assert "\x1b[35m█" in person.raw


def test_the_line_above_60_percent_becomes_a_warning_at_the_threshold(desk: Desk) -> None:
    (desk.folder / "notes.txt").write_text("".join(f"line {number} of the notes\n" for number in range(205)))
    done = desk.pipes("READ it\n" * 4, "--trigger", "never")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "of the context used" in line]
    assert len(told) == 2
    prompts = [received.tokens for received in desk.provider.received]
    for line in told:  # the meter: the last prompt, of the window (O01)
        share, prompt, window = numbers(line.partition("the last prompt is")[2])
        assert prompt in prompts
        assert (share, window) == (round(100 * prompt / window), 12_000)
    assert all(line.endswith("; compaction is switched off") for line in told)  # nothing is due, so nothing warns (N18)
    assert "Warning" not in done.stderr
    assert "Compact" not in done.stderr


def test_the_threshold_is_a_flag(desk: Desk) -> None:
    (desk.folder / "notes.txt").write_text("".join(f"line {number} of the notes\n" for number in range(200)))
    assert "Compaction complete" not in desk.pipes("READ it\n" * 2).stderr
    done = desk.pipes("READ it\n" * 4 + "/card\n", "--trigger", "0.3", "--policy", "wolffish")
    assert "Compaction complete" in done.stderr
    assert re.search(r"[\d,]+ tokens saved", done.stderr)
    (reads,) = (int(number) for number in re.findall(r"(\d+) made smaller", done.stderr)[-1:])
    listed = [line for line in done.stdout.splitlines() if line.startswith("read")]  # /card names them all (W15)
    assert len(listed) == reads > 0, done.stdout


def test_turns_are_taken_back_and_brought_back(desk: Desk) -> None:
    with desk.chat() as person:
        person.says("the first")
        person.says("the second")
        person.says("the third")
        assert "2 messages" in person.says("/rewind 2")
        person.says("another")
        assert [message.role for message in desk.provider.received[-1].messages][-3:] == ["user", "assistant", "user"]
        assert "the second" not in str(desk.provider.received[-1].body)
        assert "2 messages" in person.says("/rewind")
        assert "4 messages" in person.says("/undo")
        assert "cannot be taken back" in person.says("/rewind 9")


def test_a_compaction_is_undone_and_done_again(desk: Desk) -> None:
    (desk.folder / "notes.txt").write_text("".join(f"line {number} of the notes\n" for number in range(250)))
    with desk.chat("--policy", "opal") as person:
        for _ in range(2):
            person.says("READ it")
        assert "Compaction complete" in person.says("/compact --keep 500 the grey cat")
        summary = [received for received in desk.provider.received if not received.tools]
        assert "the grey cat" in str(summary[0].body)
        assert "taken off: 8 messages, 0 compactions" in person.says("/undo")
        assert "taken back: 8 messages, 1 compaction " in person.says("/undo")
        assert "plan:" in desk.runs("sessions", "show", "last").stdout


def test_what_a_compaction_hid_is_recalled(desk: Desk) -> None:
    with desk.chat("--policy", "opal") as person:
        person.says("the heron stands in the reeds")
        for number in range(8):
            person.says(f"{number} " + "and so on " * 60)
        assert "Compaction complete" in person.says("/compact --keep 300")
        person.types("/recall heron reeds")
        assert "the heron stands" in person.sees("the heron stands")
        person.sees("› ")
        assert "nothing that was said" in person.says("/recall albatross").lower()


def test_a_session_is_resumed_in_a_new_process(desk: Desk) -> None:
    with desk.chat() as person:
        person.says("my name is Ada")
        assert person.leaves() == 0
    with desk.chat("--resume") as person:
        assert "2 messages" in person.shown
        person.says("and now?")
    assert "my name is Ada" in str(desk.provider.received[-1].body)
    id = desk.only_session()
    with desk.chat("--session", id[:-3]) as person:
        assert "4 messages" in person.shown


def test_a_session_can_be_given_a_name(desk: Desk) -> None:
    done = desk.starts(*desk.arguments("--session", "garden"), lines="hello\n")
    assert (done.returncode, done.stdout) == (0, "You said: hello\n"), done.stderr
    assert desk.only_session() == "garden"
    again = desk.starts(*desk.arguments("--session", "garden", "--resume"), lines="again\n")
    assert (again.returncode, again.stdout) == (0, "You said: again\n"), again.stderr
    assert len(desk.provider.received[-1].messages) == 4


def test_an_answer_is_stopped_in_the_middle_and_the_conversation_goes_on(desk: Desk) -> None:
    with desk.chat() as person:
        person.types("ENDLESS please")
        person.sees("word word word")
        person.presses("Ctrl-C")
        person.sees("Interrupted")
        person.sees("› ")
        assert "You said: and again" in person.says("and again")
        assert person.leaves() == 0
    assert not desk.provider.received[-1].violations


def test_a_command_that_runs_is_stopped_and_its_call_has_a_result(desk: Desk) -> None:
    with desk.chat("--yes") as person:
        person.types("SLEEP")
        deadline = time.monotonic() + PATIENCE
        while not (desk.folder / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        person.presses("Ctrl-C")
        person.sees("Interrupted")
        person.sees("› ")
        assert "You said: go on" in person.says("go on")
    assert not desk.provider.received[-1].violations
    assert "Interrupted before this call was done" in str(desk.provider.received[-1].body)


def test_a_turn_is_stopped_between_two_calls(desk: Desk) -> None:
    with desk.chat() as person:
        person.types("TWO")
        person.sees("[y/N]")
        person.types("/stop")
        person.sees("› ")
        assert not (desk.folder / "two.txt").exists()
        assert "You said: go on" in person.says("go on")
    assert not desk.provider.received[-1].violations


def test_a_turn_is_stopped_while_the_model_writes(tmp_path: Path) -> None:
    asked, typed = threading.Event(), threading.Event()

    def slowly(received: ReceivedRequest) -> ScriptedReply:
        asked.set()
        assert typed.wait(PATIENCE)
        if received.number > 1:
            return ScriptedReply("Fine.")
        return ScriptedReply("I write on. " * 20, [("bash", {"command": "touch made.txt"})])

    with ScriptedProvider(behave=slowly) as provider:
        desk = Desk(tmp_path, provider)
        with desk.chat("--yes") as person:
            person.types("begin")
            person.sees("begin")
            assert asked.wait(PATIENCE)
            person.types("/stop")
            person.types("and then this")
            typed.set()
            person.sees("Stopping after what is being done now")
            person.sees("Stopped; calls that were still open were not done")
            person.sees("› and then this")  # what was typed meanwhile is said next
            person.sees("› ")
        assert "Not done: the turn was stopped" in str(provider.received[-1].body["messages"])
        assert not provider.received[-1].violations


def test_a_process_that_was_killed_in_a_call_is_resumed(desk: Desk) -> None:
    with desk.chat("--yes") as person:
        person.types("SLEEP")
        deadline = time.monotonic() + PATIENCE
        while not (desk.folder / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        person.process.kill()
        person.process.join()
    assert desk.pipes("go on\n", "--resume").stdout == "You said: go on\n"
    assert not desk.provider.received[-1].violations


def test_the_policy_is_changed_in_the_middle(desk: Desk) -> None:
    with desk.chat() as person:
        person.says("hello")
        assert "by wolffish" in person.says("/policy wolffish")
        assert "wolffish" in person.says("/policy")
        assert "no policy" in person.says("/policy nonsense")
        assert "You said: still there" in person.says("still there")
        assert len(desk.provider.received[-1].messages) >= 3


def test_a_renewed_session_goes_on_under_its_new_id(desk: Desk) -> None:
    (desk.folder / "notes.txt").write_text("".join(f"line {number} of the notes\n" for number in range(250)))
    with desk.chat("--policy", "vibe", "--session", "pond") as person:
        person.says("READ it")
        assert "goes on as" in person.says("/compact")
        person.says("after")
    assert desk.pipes("more\n", "--session", "pond").stdout == "You said: more\n"
    assert "after" in str(desk.provider.received[-1].body)


def test_commands_of_a_chat_are_listed_and_unknown_ones_are_named(desk: Desk) -> None:
    with desk.chat() as person:
        seen = person.says("/help")
        assert all(f"/{name}" in seen for name in ("compact", "context", "plan", "rewind", "undo", "recall", "policy"))
        assert "no command /nonsense" in person.says("/nonsense")
        assert "nothing to do" in (person.says("hi") and person.says("/plan"))
        assert "hi" in person.says("/sessions")
        assert "Nothing runs now" in person.says("/stop")


def test_what_a_model_says_cannot_steer_the_terminal(tmp_path: Path) -> None:
    with ScriptedProvider(["\x1b]0;owned\x07\x1b[2J ok \u202egnp"]) as provider:
        done = Desk(tmp_path, provider).pipes("hi\n")
    assert done.stdout.endswith("ok �gnp\n")
    assert not {"\x1b", "\x07", "\u202e"} & set(done.stdout)


# Bad input: each is one line and the right exit code.


def refused(done: "subprocess.CompletedProcess[str]", code: int, *words: str) -> None:
    lines = done.stderr.strip().splitlines()
    assert done.returncode == code, done.stderr
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("refold: ")
    assert all(word in lines[0] for word in words), lines[0]


def test_a_wrong_key_is_refused(tmp_path: Path) -> None:
    with ScriptedProvider(key="right") as provider:
        done = Desk(tmp_path, provider).pipes("hi\n", OPENAI_API_KEY="wrong")
        refused(done, 2, "refused the key", "OPENAI_API_KEY")
        assert len(provider.received) <= 1


def test_no_key_at_all_is_said_before_anything_is_sent(desk: Desk) -> None:
    refused(desk.runs("chat", "--model", "gpt-5", lines="hi\n"), 2, "OPENAI_API_KEY")
    assert not desk.store.exists()


def test_no_server_is_said_at_once(desk: Desk) -> None:
    start = time.monotonic()
    refused(desk.pipes("hi\n", "--base-url", "http://127.0.0.1:9/v1"), 1, "no server answers at http://127.0.0.1:9/v1")
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("tail", ["/nowhere", "/v1/extra"])
def test_a_wrong_base_url_is_named(desk: Desk, tail: str) -> None:
    refused(desk.pipes("hi\n", "--base-url", f"{desk.provider.url}{tail}"), 2, tail, "--base-url")


def test_a_base_url_that_is_none_is_named(desk: Desk) -> None:
    refused(desk.pipes("hi\n", "--base-url", "nonsense"), 2, "nonsense")


def test_a_model_that_is_unknown_there_is_named(tmp_path: Path) -> None:
    with ScriptedProvider(models=("small",)) as provider:
        refused(Desk(tmp_path, provider).pipes("hi\n"), 2, "no model scripted", "--model")


def test_no_model_is_asked_for(desk: Desk) -> None:
    refused(desk.runs("chat", lines="hi\n"), 2, "--model", "REFOLD_MODEL")


def test_a_first_failure_ends_a_chat_on_a_terminal_too(desk: Desk) -> None:
    with desk.chat("--base-url", "http://127.0.0.1:9/v1") as person:
        person.types("hi")
        assert person.ends() == 1
        assert "no server answers" in person.shown


def test_a_later_failure_is_a_line_and_the_chat_goes_on(tmp_path: Path) -> None:
    with ScriptedProvider(["One.", "Two."], faults={2: "malformed"}, key=None) as provider:
        desk = Desk(tmp_path, provider)
        with desk.chat() as person:
            assert "One." in person.says("hi")
            assert "Two." in person.says("again")
            assert person.leaves() == 0


@pytest.mark.parametrize("named", [("--resume",), ("--resume", "--session", "nobody"), ("--session", "last")])
def test_a_session_is_not_resumed_from_a_store_that_is_not_there_and_none_is_made(
    desk: Desk, named: tuple[str, ...]
) -> None:
    refused(desk.pipes("hi\n", *named), 2, "no session to resume", str(desk.store), "--store", named[0])
    assert not desk.store.exists()


def test_an_unknown_session_is_named(desk: Desk) -> None:
    desk.pipes("hi\n")
    refused(desk.pipes("hi\n", "--session", "nobody", "--resume"), 2, "'nobody'", "refold sessions")
    desk.runs("sessions", "delete", "last", "--yes")
    refused(desk.pipes("hi\n", "--resume"), 2, "no session to resume")
    for command in (
        ("sessions", "show", "nobody"),
        ("sessions", "rewind", "nobody"),
        ("sessions", "export", "nobody"),
        ("sessions", "search", "x", "--session", "nobody"),
    ):
        refused(desk.runs(*command), 2, "'nobody'")


def test_two_chats_on_one_session_are_refused(desk: Desk) -> None:
    with desk.chat("--session", "shared") as person:
        person.says("I was here first")
        refused(desk.pipes("me too\n", "--session", "shared"), 1, "session shared", str(person.process.pid))
        assert "You said: still mine" in person.says("still mine")
        person.leaves()
    assert desk.pipes("now I\n", "--session", "shared").returncode == 0


def test_a_corrupted_store_is_named_and_left_as_it_is(desk: Desk) -> None:
    desk.store.parent.mkdir(parents=True)
    desk.store.write_bytes(b"this was a store once" * 100)
    refused(desk.pipes("hi\n"), 1, str(desk.store), "left as it is")
    refused(desk.runs("sessions", "list"), 1, str(desk.store))
    assert desk.store.read_bytes() == b"this was a store once" * 100


def test_a_store_of_a_later_release_is_named(desk: Desk) -> None:
    desk.pipes("hi\n")
    with sqlite3.connect(desk.store) as database:
        database.execute("update refold_version set version_num = '9999_later'")
    database.close()
    refused(desk.pipes("hi\n"), 1, str(desk.store), "later")


def test_a_locked_store_is_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(open_store.__kwdefaults__, "timeout", 0.2)
    desk.pipes("hi\n")
    database = sqlite3.connect(desk.store, isolation_level=None)
    database.execute("begin exclusive")
    try:
        refused(desk.pipes("hi\n", "--resume"), 1, str(desk.store), "locked by another process")
    finally:
        database.close()


def test_a_full_disk_is_said_and_what_was_kept_stays(desk: Desk) -> None:
    desk.pipes("hi\n", "--session", "full")
    size = desk.store.stat().st_size

    full = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{full}\n{MAIN}", *map(str, desk.arguments("--session", "full"))],
        input="x" * 400_000 + "\n", env=desk.env, cwd=desk.folder, text=True, capture_output=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert str(desk.store) in done.stderr
    assert desk.pipes("again\n", "--session", "full").returncode == 0
    assert len(desk.provider.received[-1].messages) == 4


def test_an_interrupt_without_a_terminal_ends_with_130(desk: Desk) -> None:
    process = subprocess.Popen(
        [*COMMAND, *map(str, desk.arguments())], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=desk.env, cwd=desk.folder, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("ENDLESS\n")
    process.stdin.flush()
    assert process.stdout.read(5)
    process.send_signal(2)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said.strip().startswith("refold: interrupted")


def test_each_record_and_the_sub_agents_have_a_switch(desk: Desk) -> None:
    (desk.folder / "notes.txt").write_text("the cat is grey\n")
    switches = ("--task-files", "--daily-log", "--snapshots", "--decisions", "--subagents")
    ran = desk.pipes("TWO\nDELEGATE it\n", *switches, "--policy", "wolffish", "--yes")
    assert ran.returncode == 0, ran.stderr
    assert "● delegate READ it" in ran.stderr
    assert "● read notes.txt" in ran.stderr  # by the sub-agent
    assert "[Sub-agent: 2 calls" in ran.stdout
    assert "Files read: notes.txt" in ran.stdout
    assert "[compactor] charEstimate=" in ran.stderr
    data, session = desk.home / "data" / "refold", desk.only_session()
    (log,) = (data / "logs").iterdir()
    assert "llm.response {" in log.read_text()
    assert "[compactor] charEstimate=" in log.read_text()
    assert "the cat" not in log.read_text()
    assert sorted(path.name for path in (data / "snapshots" / session).iterdir())[:2] == [
        "turn-0001-step-001.json", "turn-0001-step-002.json",
    ]  # fmt: skip
    task = (data / "tasks" / session / "TASK-0001.md").read_text()
    assert task.startswith("# Task\n\n(3 chars) TWO\n\n### Step 1: bash\n")
    assert not (data / "tasks" / session / "TASK-0002.md").exists()


def test_without_their_switches_no_record_is_written(desk: Desk) -> None:
    desk.pipes("TWO\n", "--yes")
    written = {path.name for path in (desk.home / "data" / "refold").iterdir()}
    assert not written & {"logs", "snapshots", "tasks"}
    assert "delegate" not in desk.provider.received[0].tools
