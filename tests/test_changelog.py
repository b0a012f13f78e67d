import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
KINDS = [kind["directory"] for kind in SETTINGS["type"]]
FRAGMENTS = sorted(path for path in (ROOT / "changelog.d").iterdir() if path.name not in SETTINGS["ignore"])


@pytest.fixture
def checkout(tmp_path):
    """The files from which a changelog is built, with no fragments."""
    (tmp_path / "changelog.d").mkdir()
    for name in ("pyproject.toml", "CHANGELOG.md", *(f"changelog.d/{name}" for name in SETTINGS["ignore"])):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def build(checkout, version):
    command = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", version, "--date", "2030-01-02"]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    return (checkout / "CHANGELOG.md").read_text("utf-8")


def test_every_fragment_has_a_name_and_a_valid_kind():
    parts = {path.name: path.name.split(".") for path in FRAGMENTS}
    assert not [name for name, part in parts.items() if len(part) != 3 or part[1] not in KINDS or part[2] != "md"]


def test_every_fragment_is_prose_of_at_most_a_few_lines():
    texts = {path.name: path.read_text("utf-8").strip() for path in FRAGMENTS}
    assert not [name for name, text in texts.items() if not text or text[0] in "-*#" or text.count("\n") > 5]


def test_the_kinds_are_those_that_the_page_for_contributors_names():
    page = (ROOT / "changelog.d" / "README.md").read_text("utf-8")
    assert not [kind for kind in KINDS if f"`{kind}`" not in page]


def test_a_release_stands_above_the_earlier_ones_with_a_heading_for_each_kind(checkout):
    for kind, text in {"fixed": "It works.", "added": "Two lines\nof text."}.items():
        (checkout / "changelog.d" / f"change.{kind}.md").write_text(text + "\n")
    before = (checkout / "CHANGELOG.md").read_text("utf-8")
    after = build(checkout, "9.0.0")
    new = "## 9.0.0 (2030-01-02)\n\n### Added\n\n- Two lines\n  of text.\n\n### Fixed\n\n- It works.\n"
    assert new in after
    assert "".join(after.split(new)).split() == before.split()
