import ast
import functools
import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
NO_KEYS = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_TOKEN"))}


@functools.cache
def run(name: str) -> str:
    """Run an example, once for all tests, and return what it prints."""
    with tempfile.TemporaryDirectory() as folder:  # an example finds its files wherever it is started from
        done = subprocess.run(
            [sys.executable, "-W", "error", str(ROOT / "examples" / name)],
            cwd=folder,
            env=NO_KEYS | {"PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs_and_prints_something(path):
    assert len(run(path.name).splitlines()) >= 2


def test_examples_are_numbered_without_a_gap():
    assert [path.name[:2] for path in EXAMPLES] == [f"{number:02}" for number in range(1, len(EXAMPLES) + 1)]


def test_every_example_opens_with_one_sentence_that_says_what_it_shows():
    for path in EXAMPLES:
        first = path.read_text("utf-8").splitlines()[0]
        assert first.startswith('"""')
        assert first.endswith('."""')


def test_the_minimal_example_breaks_no_rule():
    assert "provider rules broken: 0" in run("01_minimal.py")


def test_the_dry_run_is_refused_on_other_messages():
    assert "StalePlan" in run("02_dry_run.py")


def test_a_failing_summarizer_is_named_and_the_conversation_still_fits():
    said = run("03_own_summarizer.py")
    assert "refused: ConnectionError" in said
    assert said.count("SHP-207 is done") == 2


def test_the_own_stage_is_a_step_of_the_plan():
    assert "keepfailures: " in run("04_own_stage.py")


def test_the_loop_compacts_more_than_once_and_rewinds():
    said = run("06_meter_in_a_loop.py")
    assert said.count("before call") > 1
    assert "are back: True" in said


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("batch_on_*.py")), ids=lambda path: path.stem)
def test_an_example_for_a_cluster_is_short_and_uses_names_that_there_are(path):
    tree = ast.parse(path.read_text("utf-8"))
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
    assert len(lines) <= 25
    ours = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module.startswith("refold")]
    assert ours
    for node in ours:
        assert {alias.name for alias in node.names} <= set(vars(importlib.import_module(node.module)))
