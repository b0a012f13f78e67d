"""The tutorials, followed as they are printed."""

from pathlib import Path

import pytest

from refold.transcripts import read
from tests.pages import ROOT, follow

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_prints_what_it_shows(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    typed = list(follow(path.read_text("utf-8"), tmp_path))
    assert len(typed) > 2
    for each in typed:
        assert each.is_as_shown, f"$ {each.command}\n{each.printed}"
    if (exported := Path("logs.jsonl")).exists():  # the others begin with the session that the first one leaves
        assert read(exported)[0].messages == read(ROOT / "examples" / "logs.jsonl")[0].messages
