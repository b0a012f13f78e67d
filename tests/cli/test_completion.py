import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import refold.policies
from refold import formats, transcripts
from refold._cli.main import COMMANDS
from refold.sessions import Session, open_store

Run = Callable[..., Result]
Complete = Callable[..., list[str]]


@pytest.fixture
def complete(run: Run) -> Complete:
    """Return what a bash shows after the words of a line, the last one being begun."""

    def completed(*words: object) -> list[str]:
        line = {"COMP_WORDS": " ".join(["refold", *map(str, words)]), "COMP_CWORD": str(len(words))}
        shown = run(env=line | {"_REFOLD_COMPLETE": "bash_complete"})
        assert (shown.exit_code, shown.stderr) == (0, "")
        return [row.removeprefix("plain,") for row in shown.stdout.splitlines() if row]

    return completed


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "sessions.db"
    place = open_store(path)
    for name in ("alpha-1", "alpha-2", "beta"):
        Session(place, name, format="openai-chat").append([{"role": "user", "content": name}])
    place.close()
    return path


def test_commands_and_those_of_groups_are_completed(complete: Complete) -> None:
    assert complete("") == list(COMMANDS)
    assert complete("sess") == ["sessions"]
    assert complete("sessions", "re") == ["rewind"]
    assert complete("tokens", "") == ["create", "list", "revoke"]


def test_options_are_completed(complete: Complete) -> None:
    assert complete("plan", "--max") == ["--max-output"]
    assert complete("sessions", "rewind", "--") == ["--store", "--undo", "--help"]


def test_values_are_completed_from_what_there_is(complete: Complete) -> None:
    assert complete("plan", "--policy", "") == list(refold.policies.names())
    assert complete("replay", "-p", "no") == ["none"]
    assert complete("stats", "--kind", "") == list(transcripts.kinds())
    assert complete("stats", "--format", "") == list(formats.names())
    assert complete("stats", "--counter", "e") == ["exact"]
    assert complete("install", "c") == ["claude-code", "codex"]
    models = complete("plan", "-m", "claude-sonnet-4")
    assert "claude-sonnet-4-5" in models
    assert all(model.startswith("claude-sonnet-4") for model in models)


@pytest.mark.parametrize(
    "words",
    [("plan", ""), ("compact", "x.json", "-o", ""), ("plan", "-p", "./mi"), ("sessions", "list", "--store", "")],
)
def test_paths_are_left_to_the_shell(complete: Complete, words: tuple[str, ...]) -> None:
    assert complete(*words) == [f"file,{words[-1]}"]


def test_session_ids_come_from_the_store_that_the_line_names(complete: Complete, store: Path) -> None:
    assert sorted(complete("sessions", "show", "--store", store, "")) == ["alpha-1", "alpha-2", "beta", "last"]
    assert complete("sessions", "rewind", "--store", store, "b") == ["beta"]
    assert complete("sessions", "show", "--store", store.parent / "absent.db", "") == []


def test_ids_of_tokens_come_from_the_file_that_the_line_names(run: Run, complete: Complete, tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    token = run("tokens", "create", "--team", "red", "--token-file", file).stdout.split("_")[1]
    assert complete("tokens", "revoke", "--token-file", file, "") == [token]
    file.write_text("damaged")
    assert complete("tokens", "revoke", "--token-file", file, "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(run: Run, shell: str) -> None:
    assert f"_REFOLD_COMPLETE={shell}_complete" in run("completion", shell).stdout
    assert run("completion", "tcsh").exit_code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_bash_completes_with_the_script(run: Run, tmp_path: Path) -> None:
    (tmp_path / "refold").write_text(f'#!/bin/sh\nexec {sys.executable} -m refold "$@"\n')
    (tmp_path / "refold").chmod(0o755)
    typed = "COMP_WORDS=(refold sessions re) COMP_CWORD=2; _refold_completion refold; echo ${COMPREPLY[@]}"
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{run('completion', 'bash').stdout}\n{typed}"],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["rewind"], done.stderr
