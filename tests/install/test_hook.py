"""What a hook answers, what it stores, and that a fault of it never stops the agent."""

import io
import json
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from msgspec.structs import replace

from refold._install import hook
from refold._install.hook_server import answering_hooks
from refold._install.options import InstallOptions
from refold._install.shortening import STAGE, shortened
from refold.policies import find

Call = Callable[..., Any]
LINES = [f"step {number:05} of the build passed" for number in range(1_000)]
LONG = "\n".join(LINES)


def ran(output: object, tool: str = "Bash", **more: object) -> dict[str, object]:
    event = {"hook_event_name": "PostToolUse", "session_id": "s-1", "tool_name": tool, "tool_use_id": "call-1"}
    return event | {"tool_input": {"command": "make"}, "tool_response": output} | more


def test_a_long_output_is_shortened_with_a_line_that_names_the_whole(call: Call, data: Path) -> None:
    output = {"stdout": LONG, "stderr": "", "interrupted": False}
    answer = call("claude-code", ran(output))["hookSpecificOutput"]
    assert answer["hookEventName"] == "PostToolUse"
    updated = answer["updatedToolOutput"]
    assert {**updated, "stdout": LONG} == output
    opening, *lines = updated["stdout"].split("\n")
    whole = data / "sessions" / "claude-code" / "s-1" / "outputs" / "call-1.txt"
    assert "recall call-1" in opening
    assert str(whole) in opening
    assert len(updated["stdout"]) < len(LONG) / 2
    assert lines[0] == LINES[0]
    assert lines[-1] == LINES[-1]
    assert whole.read_text() == LONG
    assert stat.S_IMODE(whole.stat().st_mode) == 0o600


def test_an_output_that_was_cut_within_an_emoji_is_shortened_too(call: Call, data: Path) -> None:
    updated = call("claude-code", ran(f"{LONG}\n\ud83d"))["hookSpecificOutput"]["updatedToolOutput"]
    assert "[parts of the output]" in updated
    whole = data / "sessions" / "claude-code" / "s-1" / "outputs" / "call-1.txt"
    assert whole.read_text(encoding="utf-8") == f"{LONG}\n?"


@pytest.mark.parametrize(
    ("agent", "event", "decision"), [("codex", "PostToolUse", "block"), ("gemini-cli", "AfterTool", "deny")]
)
def test_an_agent_that_takes_a_reason_instead_of_an_output_gets_one(
    call: Call, agent: str, event: str, decision: str
) -> None:
    answer = call(agent, ran(LONG, hook_event_name=event))
    assert answer["decision"] == decision
    assert "recall call-1" in answer["reason"].split("\n")[0]


@pytest.mark.parametrize(
    "event",
    [
        ran({"stdout": "ok"}),
        ran({"stdout": LONG, "persistedOutputPath": "/tmp/x"}),
        ran({"type": "text", "file": {"content": LONG}}, "Read"),
        ran({"isImage": True, "data": LONG}),
        ran(None),
        {"hook_event_name": "SessionStart", "session_id": "s-1", "source": "startup"},
        {"hook_event_name": "SessionStart", "session_id": "s-1", "source": "compact"},
        {"hook_event_name": "Stop", "session_id": "s-1"},
    ],
)
def test_what_needs_no_answer_gets_none_and_stores_nothing(call: Call, data: Path, event: dict[str, object]) -> None:
    assert call("claude-code", event) is None
    assert not list(data.rglob("*.txt"))


def test_the_result_of_a_server_s_tool_keeps_its_form(call: Call) -> None:
    output = [{"type": "text", "text": "short"}, {"type": "text", "text": LONG}]
    updated = call("claude-code", ran(output, "mcp__x__y"))["hookSpecificOutput"]["updatedToolOutput"]
    assert updated[0] == output[0]
    assert updated[1]["type"] == "text"
    assert "recall call-1" in updated[1]["text"]


@pytest.mark.parametrize("content", [b"", b"no JSON", b"[]", b'{"hook_event_name": "PreCompact"}', b"\xff"])
def test_a_fault_leaves_the_agent_alone_and_is_logged(
    call: Call, data: Path, content: bytes, refold: Callable[..., Result]
) -> None:
    refold("install", "claude-code")
    assert call("claude-code", content, "PreCompact") is None
    entry = json.loads((data / "hooks.jsonl").read_text())
    assert entry["error"]
    assert "faults" in refold("doctor", "claude-code").stdout


def test_a_session_s_name_does_not_lead_out_of_the_folder(call: Call, data: Path) -> None:
    call("claude-code", ran({"stdout": LONG}, session_id="../../x", tool_use_id="../../../y"))
    (file,) = data.rglob("*.txt")
    assert file.parent.parent.parent == data / "sessions" / "claude-code"


def test_the_digest_is_made_once_before_a_compaction_and_shown_once_after_it(call: Call, data: Path) -> None:
    transcript = data.parent / "session.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("".join(f"{line}\n" for line in recorded()))
    before = {"hook_event_name": "PreCompact", "session_id": "s-1", "transcript_path": str(transcript)}
    for _ in range(3):
        assert call("claude-code", before) is None
    ready = Path(hook.ready_file("claude-code", str(data), "s-1"))
    for _ in range(600):
        if ready.exists():
            break
        time.sleep(0.1)
    after = {"hook_event_name": "SessionStart", "session_id": "s-1", "source": "compact"}
    text = call("claude-code", after)["hookSpecificOutput"]["additionalContext"]
    assert "Keep the API of store.py as it is." in text
    assert 'session "s-1"' in text
    assert call("claude-code", after) is None
    entries = [json.loads(line) for line in (data / "hooks.jsonl").read_text().splitlines()]
    assert sum("preparing" in entry for entry in entries) == 1
    assert sum("again" in entry for entry in entries) == 2


def test_a_session_that_an_agent_has_no_file_of_is_not_kept_after_its_digest(call: Call, data: Path) -> None:
    messages: list[Any] = []

    def said(role: str, **part: object) -> None:
        place = f"m{len(messages):02}"
        messages.append(
            {"info": {"role": role, "id": place, "modelID": "claude-opus-4-5"}, "parts": [{**part, "id": f"p{place}"}]}
        )

    said("user", type="text", text="Keep the API as it is.")
    for number in range(12):
        state = {"status": "completed", "input": {"command": f"make {number}"}, "output": f"{number}\n{LONG}"}
        said("assistant", type="tool", tool="bash", callID=f"c{number}", state=state)
    said("user", type="text", text="Go on.")
    before = {"hook_event_name": "PreCompact", "session_id": "ses_1", "transcript": {"messages": messages}}
    assert call("opencode", before, "PreCompact") is None
    ready = Path(hook.ready_file("opencode", str(data), "ses_1"))
    for _ in range(600):
        if ready.exists() and not list(data.rglob(hook.SESSION)):
            break
        time.sleep(0.1)
    assert not list(data.rglob(hook.SESSION))
    after = {"hook_event_name": "SessionStart", "session_id": "ses_1", "source": "compact"}
    told = call("opencode", after, "SessionStart")["hookSpecificOutput"]["additionalContext"]
    assert "Keep the API as it is." in told


def test_extensions_know_what_the_hook_does() -> None:
    asking = Path(hook.__file__).with_name("ask_hook.ts").read_text()
    assert f"const LEAST = {hook.FASTEST};" in asking
    assert f'join(folder, "{hook.READY}", agent, ' in asking


def recorded() -> list[str]:
    """The rows of a session of Claude Code with an instruction of the user and long outputs."""
    rows: list[dict[str, Any]] = []

    def row(role: str, content: object) -> None:
        message: dict[str, object] = {"role": role, "content": content}
        if role == "assistant":
            message |= {"model": "claude-opus-4-5", "id": f"msg_{len(rows)}", "type": "message"}
        parent = rows[-1]["uuid"] if rows else None
        rows.append({"type": role, "uuid": f"u{len(rows)}", "parentUuid": parent, "sessionId": "s-1", "message": message,
                     "cwd": "/x", "timestamp": "2026-11-28T10:00:00Z", "version": "2", "isSidechain": False})  # fmt: skip

    row("user", "Keep the API of store.py as it is. Make the build pass.")
    for number in range(12):
        row(
            "assistant",
            [{"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": f"make {number}"}}],
        )
        row("user", [{"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number}\n{LONG}"}])
    row("assistant", [{"type": "text", "text": "The build passes now."}])
    return [json.dumps(row) for row in rows]


def test_a_short_output_costs_no_import(data: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-P", "-S", hook.__file__, "claude-code", str(data), "PostToolUse"]
    done = subprocess.run(command, input=json.dumps(ran("ok")), capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.stdout == ""
    assert "os" in imported
    assert not {name for name in imported if name in ("json", "re", "typing", "msgspec") or "refold" in name}
    entry = json.loads((data / "hooks.jsonl").read_text())
    assert (entry["agent"], entry["event"]) == ("claude-code", "PostToolUse")
    assert entry["ms"] > 0


@pytest.fixture
def near() -> Iterator[Path]:
    """A folder with a path that is short enough for a socket."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_server_that_runs_shortens_so_that_the_hook_imports_no_module_of_ours(near: Path) -> None:
    with answering_hooks(near):
        command = InstallOptions(near).hook_arguments("codex", "PostToolUse")
        command[1:1] = ["-X", "importtime"]
        done = subprocess.run(command, input=json.dumps(ran(LONG)), capture_output=True, text=True, check=True)
    assert "recall call-1" in json.loads(done.stdout)["reason"]
    assert "refold" not in done.stderr
    served, timed = map(json.loads, (near / "hooks.jsonl").read_text().splitlines())
    assert (served["agent"], served["event"], served["shortened"][0]) == ("codex", "PostToolUse", len(LONG))
    assert timed["ms"] > 0
    assert not list((near / hook.SOCKETS).iterdir())


def test_a_server_that_was_killed_or_breaks_off_or_hangs_is_done_without(
    near: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call() -> Any:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ran(LONG)).encode())))
        hook.main(["codex", str(near), "PostToolUse"])
        return json.loads(capsys.readouterr().out)

    monkeypatch.setattr(hook, "PATIENCE", 0.05)
    place = near / hook.SOCKETS / "1.sock"
    place.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(place))
        hanging.listen()
        assert "recall call-1" in call()["reason"]
        assert place.exists()
    assert "recall call-1" in call()["reason"]
    assert not place.exists()
    with answering_hooks(near):
        monkeypatch.setattr("refold._install.hook_server.answer_to", lambda *_: (_ for _ in ()).throw(ValueError))
        assert "recall call-1" in call()["reason"]


def test_a_folder_whose_path_is_too_long_for_a_socket_has_none(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    with answering_hooks(folder):
        assert not list((folder / hook.SOCKETS).iterdir())


def test_the_installed_command_shortens_with_the_packages_of_its_python(data: Path) -> None:
    command = InstallOptions(data).hook_arguments("claude-code", "PostToolUse")
    done = subprocess.run(command, input=json.dumps(ran(LONG)), capture_output=True, text=True, check=True)
    assert "recall call-1" in json.loads(done.stdout)["hookSpecificOutput"]["updatedToolOutput"]


@pytest.mark.parametrize("line", ["89504e47", "iVBORw0KGgoAAAANSUhEUgAAB9AAAAS", "0x89, ", "src/a_b.py "])
def test_what_is_too_short_to_be_looked_at_is_never_shortened(line: str) -> None:
    dearest = (line * hook.FASTEST)[: hook.FASTEST]
    assert shortened(dearest, "Bash", {}, "call-1", "file") is None


def test_a_digest_that_is_late_comes_with_a_short_output_of_its_session(call: Call, data: Path) -> None:
    ready = Path(hook.ready_file("claude-code", str(data), "s-1"))
    ready.parent.mkdir(parents=True)
    ready.write_text(json.dumps({"text": "what was said", "plan": ""}))
    assert call("claude-code", ran("ok", session_id="s-2"), "PostToolUse") is None
    told = call("claude-code", ran("ok"), "PostToolUse")["hookSpecificOutput"]
    assert told == {"hookEventName": "PostToolUse", "additionalContext": "what was said"}
    assert call("claude-code", ran("ok"), "PostToolUse") is None


def test_the_stage_is_that_of_the_policy_but_for_how_much_of_an_output_it_reads() -> None:
    assert find("refold").steps[0].stage == replace(STAGE, looked_at=None)
