import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


def test_options_that_exclude_each_other_and_places_that_are_not_there_are_refused(run: Run, tmp_path: Path) -> None:
    assert "--store and --files exclude each other" in refused(run, "--store", tmp_path / "a.db", "--files", tmp_path)
    assert "--allow-undo needs --store" in refused(run, "--allow-undo")
    assert "no such file or folder" in refused(run, "--files", tmp_path / "missing.jsonl")
    assert f"{tmp_path / 'absent'}: no such folder, and no session was held in it" in refused(
        run, "--folder", tmp_path / "absent"
    )
    assert "a store has no folders" in refused(run, "--store", tmp_path / "a.db", "--folder", tmp_path)
    assert f"there is no store {tmp_path / 'a.db'}" in refused(run, "--store", tmp_path / "a.db")
    (tmp_path / "notes.txt").write_text("No store.")
    assert "is not a database" in refused(run, "--store", tmp_path / "notes.txt")


def test_the_extra_that_is_missing_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "refold._mcp.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    assert "pip install 'refold[mcp]'" in refused(run)


def refused(run: Run, *arguments: object) -> str:
    done = run("mcp", *arguments)
    assert done.exit_code == 2
    return done.stderr
