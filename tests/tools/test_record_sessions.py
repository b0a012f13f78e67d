import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools import record_sessions
from tools.recording.agents import AGENTS
from tools.recording.run import Run, running
from tools.recording.scrub import LONGEST, leaks, scrub

TEXT = "Written by the authors of an agent. " * 20


def scrubbed(value, ours=(), lines=()):
    return json.loads(scrub(json.dumps(value), Path("/tmp/recording-x1"), 4321, ours, lines))


def test_the_temporary_folder_is_cut_off_in_paths_and_in_names_made_of_them():
    value = {
        "cwd": "/tmp/recording-x1/home/user/project",
        "slug": "-tmp-recording-x1-home-user",
        "url": "localhost:4321",
    }
    assert scrubbed(value) == {"cwd": "/home/user/project", "slug": "-home-user", "url": "127.0.0.1:8000"}


def test_a_text_of_the_agents_authors_is_replaced_by_its_length_and_what_it_quotes_of_the_script():
    note = f"[{len(TEXT)} characters of the agent's own were left out]"
    assert scrubbed([TEXT]) == [note]
    assert scrubbed([f"{TEXT}Make it."], ours=["Make it.", "Stop it."])[0].endswith("were left out] Make it.")
    assert scrubbed({"addedLines": ["short", "too"]}) == {
        "addedLines": ["[16 characters of the agent's own were left out]"]
    }


def test_json_and_streams_and_what_shows_the_project_stay():
    inner = json.dumps({"system": TEXT, "role": "user"})
    assert json.loads(scrubbed([inner])[0])["role"] == "user"
    assert TEXT not in scrubbed([inner])[0]
    stream, shown = f"data: {TEXT}", "return 1\n" + "x" * LONGEST
    assert scrubbed([stream, shown], lines=["return 1"]) == [stream, shown]
    assert scrubbed([shown]) != [shown]


def test_lines_stay_lines():
    raw = '{"a": 1}\n\n{"a": 2}\n'
    assert scrub(raw, Path("/x"), 1, (), ()) == '{"a": 1}\n{"a": 2}\n'


@pytest.mark.parametrize(
    "text", ["/root/.cache", "/tmp/x", "/home/ada/project", "sk-abcdefgh123", "10.1.2.3", "on host-7 now"]
)
def test_what_tells_of_a_machine_is_found(text):
    assert leaks(text, ["host-7"])
    assert leaks("127.0.0.1 /home/user/project host-77 version 1.2.3", ["host-7"]) == []


def test_a_client_is_recorded_with_what_the_provider_saw(tmp_path, monkeypatch):
    sessions = tmp_path / "sessions"
    monkeypatch.setattr(record_sessions, "SESSIONS", sessions)
    monkeypatch.setattr(record_sessions, "MANIFEST", sessions / "MANIFEST.json")
    programs = tmp_path / "agents" / "recorded-stream" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (programs / "python").chmod(0o755)
    assert record_sessions.main(["--agents", str(tmp_path / "agents")]) == 0
    entry = json.loads((sessions / "MANIFEST.json").read_bytes())["recorded-stream"]
    assert (entry["package"], entry["files"]) == ("openai", ["events.jsonl"])
    assert entry["commands"][0].startswith(
        "python ./tools/recording/scripts/responses_stream.py /home/user/events.jsonl"
    )
    (request,) = entry["requests"]
    assert [name for name, _ in request["calls"]] == ["read", "read"]
    events = [json.loads(line) for line in (sessions / "recorded-stream" / "events.jsonl").read_text().splitlines()]
    assert events[-1]["response"]["usage"]["input_tokens"] == request["tokens"]


def test_an_agent_that_fails_leaves_what_was_recorded_before(tmp_path, monkeypatch, capsys):
    sessions = tmp_path / "sessions"
    monkeypatch.setattr(record_sessions, "SESSIONS", sessions)
    (sessions / "codex").mkdir(parents=True)
    (sessions / "codex" / "rollout.jsonl").write_text("{}\n")
    assert record_sessions.main(["--agents", str(tmp_path), "codex"]) == 1
    assert "codex" in capsys.readouterr().err
    assert (sessions / "codex" / "rollout.jsonl").exists()


def test_the_list_names_every_agent_and_its_packages(capsys):
    assert record_sessions.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(AGENTS)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")
def test_what_an_agent_leaves_running_is_ended(tmp_path):
    with running(tmp_path, AGENTS["litellm"].tools, Run.steps, {}) as run:
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env=run.environment)
        while f"HOME={run.home}".encode() not in Path(f"/proc/{left.pid}/environ").read_bytes():
            time.sleep(0.01)
    assert left.wait(20) != 0
