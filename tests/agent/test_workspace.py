from pathlib import Path

import pytest

from refold.agent._tools import ToolOutcome, perform
from refold.agent._workspace import LARGEST, Workspace
from refold.core.messages import ToolCall
from refold.errors import UsageError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("needle")
    (folder / "src" / "a.py").write_text("import os\nneedle = 1\n")
    (folder / "src" / "deep" / "b.py").write_text("# needle and more\n")
    (folder / "notes.md").write_text("no such thing\n")
    (tmp_path / "secret.txt").write_text("treasure")
    return folder


def done(place: Path, name: str, also_read: tuple[Path, ...] = (), **arguments: object) -> ToolOutcome:
    import json

    tools = {tool.name: tool for tool in Workspace(place, also_read=also_read).tools()}
    return perform(tools, ToolCall("c1", name, json.dumps(arguments)))


def test_there_are_six_tools_each_with_words_about_it(place: Path) -> None:
    tools = Workspace(place).tools()
    assert [tool.name for tool in tools] == ["read", "write", "edit", "list", "glob", "grep"]
    assert all(tool.description and tool.schema["properties"] for tool in tools)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no folder"):
        Workspace(tmp_path / "absent")


def test_a_file_is_read_whole_or_in_part(place: Path) -> None:
    assert done(place, "read", path="src/a.py").text == "import os\nneedle = 1"
    part = done(place, "read", path="src/a.py", offset=1, limit=1).text
    assert part == "import os\n[Lines 1 to 1 of 2; go on with offset=2]"
    assert done(place, "read", path="src/a.py", offset=9).text == "(the file has 2 lines)"
    (place / "empty").write_text("")
    assert done(place, "read", path="empty").text == "(the file is empty)"


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/hostname", "src/../../secret.txt", "~/x", "link.txt", "away/secret.txt"]
)
@pytest.mark.parametrize("tool", ["read", "write", "edit", "grep", "glob", "list"])
def test_nothing_outside_is_touched(place: Path, path: str, tool: str) -> None:
    (place / "link.txt").symlink_to(place.parent / "secret.txt")
    (place / "away").symlink_to(place.parent)
    more = {
        "write": {"content": "x"},
        "edit": {"old": "treasure", "new": "x"},
        "grep": {"pattern": "."},
        "glob": {"pattern": "*"},
    }
    outcome = done(place, tool, path=path, **more.get(tool, {}))
    assert outcome.is_error
    assert "lies outside of" in outcome.text
    assert (place.parent / "secret.txt").read_text() == "treasure"


def test_searches_pass_over_links_that_lead_outside(place: Path) -> None:
    (place / "link.txt").symlink_to(place.parent / "secret.txt")
    (place / "away").symlink_to(place.parent)
    assert done(place, "grep", pattern="treasure").text == "(no line)"
    assert "secret" not in done(place, "glob", pattern="**").text


def test_links_within_the_folder_are_followed(place: Path) -> None:
    (place / "same.py").symlink_to(place / "src" / "a.py")
    assert "needle" in done(place, "read", path="same.py").text
    done(place, "write", path="same.py", content="new\n")
    assert (place / "same.py").is_symlink()
    assert (place / "src" / "a.py").read_text() == "new\n"


def test_another_folder_may_be_read_and_not_written(place: Path, tmp_path: Path) -> None:
    other = tmp_path / "outputs"
    other.mkdir()
    (other / "long.txt").write_text("the rest")
    path = str(other / "long.txt")
    assert done(place, "read", (other,), path=path).text == "the rest"
    assert done(place, "grep", (other,), pattern="rest", path=path).text == f"{path}:1:the rest"
    assert done(place, "write", (other,), path=path, content="x").is_error


def test_a_file_is_written_whole_with_its_folders_and_keeps_its_mode(place: Path) -> None:
    assert done(place, "write", path="new/er/file.txt", content="a\nb\n").text == "Made new/er/file.txt: 2 lines"
    (place / "notes.md").chmod(0o755)
    assert done(place, "write", path="notes.md", content="x").text == "Replaced notes.md: 1 line"
    assert (place / "notes.md").stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in (place / "new" / "er").iterdir()) == ["file.txt"]
    assert done(place, "write", path="src", content="x").is_error


def test_an_edit_wants_the_old_text_exactly_once(place: Path) -> None:
    (place / "twice.txt").write_text("one two one\r\n")
    assert "stands 2 times" in done(place, "edit", path="twice.txt", old="one", new="1").text
    assert "does not stand in" in done(place, "edit", path="twice.txt", old="three", new="3").text
    assert "does not stand in" in done(place, "edit", path="twice.txt", old="", new="3").text
    assert "the same" in done(place, "edit", path="twice.txt", old="two", new="two").text
    assert done(place, "edit", path="twice.txt", old="two", new="2").text == "Changed twice.txt: 1 place"
    assert done(place, "edit", path="twice.txt", old="one", new="1", every=True).text == "Changed twice.txt: 2 places"
    assert (place / "twice.txt").read_bytes() == b"1 2 1\r\n"


def test_what_is_no_text_is_neither_shown_nor_changed(place: Path) -> None:
    (place / "image.png").write_bytes(b"\x89PNG\0\0")
    (place / "latin.txt").write_bytes("déjà".encode("latin-1"))
    assert "is no text" in done(place, "read", path="image.png").text
    assert done(place, "read", path="latin.txt").text == "d�j�"
    assert "not UTF-8" in done(place, "edit", path="latin.txt", old="d", new="D").text
    assert (place / "latin.txt").read_bytes() == "déjà".encode("latin-1")
    with (place / "huge").open("wb") as file:
        file.truncate(LARGEST + 1)
    assert "look at it by a command" in done(place, "read", path="huge").text


def test_a_folder_is_listed_with_sizes(place: Path) -> None:
    assert done(place, "list").text == ".git/\nnotes.md (14)\nsrc/"
    assert done(place, "list", path="notes.md").is_error


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", {"src/a.py", "src/deep/b.py"}),
        ("src/*.py", {"src/a.py"}),
        ("**/*.py", {"src/a.py", "src/deep/b.py"}),
        ("**/b.*", {"src/deep/b.py"}),
        ("*.{md,txt}", {"notes.md"}),
        ("?otes.md", {"notes.md"}),
        ("*.rs", {"(no file)"}),
    ],
)
def test_files_are_found_by_patterns(place: Path, pattern: str, found: set[str]) -> None:
    assert set(done(place, "glob", pattern=pattern).text.split("\n")) == found


def test_lines_are_found_by_regular_expressions(place: Path) -> None:
    assert done(place, "grep", pattern="need.e").text == "src/a.py:2:needle = 1\nsrc/deep/b.py:1:# needle and more"
    assert done(place, "grep", pattern="needle", glob="**/b.py").text == "src/deep/b.py:1:# needle and more"
    assert done(place, "grep", pattern="needle", path="src/a.py").text == "src/a.py:2:needle = 1"
    assert "no regular expression" in done(place, "grep", pattern="(").text


def test_answers_are_limited_in_lines_and_bytes(place: Path) -> None:
    (place / "long.txt").write_text("".join(f"needle {number}\n" for number in range(5_000)))
    (place / "wide.txt").write_text("x" * 100_000)
    shown = done(place, "read", path="long.txt").text
    assert shown.endswith("[Lines 1 to 2,000 of 5,000; go on with offset=2001]")
    assert len(done(place, "read", path="wide.txt").text) < 2_100
    assert done(place, "grep", pattern="needle").text.endswith("[More than 200: narrow it down]")
    small = {tool.name: tool for tool in Workspace(place, max_bytes=500, max_lines=10).tools()}
    assert len(perform(small, ToolCall("c", "read", '{"path": "long.txt"}')).text) < 600
