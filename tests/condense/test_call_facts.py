from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from refold._condense.call_facts import FileRef, files_of, reads, writes
from refold.core.messages import Note, ToolCall
from refold.testing import talk


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall("c", name, json.dumps(arguments))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (call("Read", file_path="/a.py"), FileRef("/a.py")),
        (call("Read", file_path="/a.py", offset=10, limit=5), FileRef("/a.py", 10, 15)),
        (call("read", filePath="a.py", limit=5), FileRef("a.py", 1, 6)),
        (call("read_file", path="a.py"), FileRef("a.py")),
        (call("read_file", absolute_path="/a.py", offset=0, limit=10), FileRef("/a.py", 1, 11)),
        (call("mcp__fs__read_file", path="a.py"), FileRef("a.py")),
        (call("str_replace_editor", command="view", path="/a.py", view_range=[3, 8]), FileRef("/a.py", 3, 9)),
        (call("str_replace_editor", command="view", path="/a.py", view_range=[3, -1]), FileRef("/a.py", 3)),
        (call("str_replace_editor", command="create", path="/a.py"), None),
        (call("shell", command=["bash", "-lc", "sed -n '1,40p' src/a.rs"]), FileRef("src/a.rs", 1, 41)),
        (call("Bash", command="cd /repo && cat src/a.py"), FileRef("/repo/src/a.py")),
        (call("exec_command", cmd="head -n 20 a.py"), FileRef("a.py", 1, 21)),
        (call("bash", command="cat a.py b.py"), None),
        (call("bash", command="cat a.py | wc -l"), None),
        (call("bash", command="cat $FILE"), None),
        (call("bash", command="cat 'unclosed"), None),
        (call("bash"), None),
        (call("grep", pattern="x", path="a.py"), None),
        (ToolCall("c", "read_file", "not json"), None),
        (ToolCall("c", "read_file", "[1]"), None),
    ],
)
def test_a_read_is_known_by_its_tool_and_its_arguments(made: ToolCall, expected: FileRef | None) -> None:
    assert reads(made) == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (call("Edit", file_path="/a.py"), ("/a.py",)),
        (call("MultiEdit", file_path="/a.py"), ("/a.py",)),
        (call("NotebookEdit", notebook_path="/a.ipynb"), ("/a.ipynb",)),
        (call("write_file", path="a.py", content="x"), ("a.py",)),
        (call("replace", file_path="a.py"), ("a.py",)),
        (call("str_replace_editor", command="str_replace", path="/a.py"), ("/a.py",)),
        (call("str_replace_editor", command="view", path="/a.py"), ()),
        (
            ToolCall("c", "apply_patch", "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b.py\n", "custom"),
            ("a.py", "b.py"),
        ),
        (call("apply_patch", input="*** Begin Patch\n*** Delete File: a.py\n"), ("a.py",)),
        (call("shell", command=["apply_patch", "*** Begin Patch\n*** Update File: a.py\n"]), ("a.py",)),
        (call("bash", command="cat > out/a.txt <<'EOF'\nhello > there\nEOF"), ("out/a.txt",)),
        (call("bash", command="sed -i 's/a/b/' a.py"), ("a.py",)),
        (call("bash", command="make 2>/dev/null"), ()),
        (call("Read", file_path="/a.py"), ()),
    ],
)
def test_a_write_is_known_by_its_tool_and_its_arguments(made: ToolCall, expected: tuple[str, ...]) -> None:
    assert writes(made) == expected


@pytest.mark.parametrize(
    ("later", "earlier", "expected"),
    [
        (FileRef("a"), FileRef("a"), True),
        (FileRef("a"), FileRef("b"), False),
        (FileRef("a"), FileRef("a", 5, 9), True),
        (FileRef("a"), FileRef("a", 1_990, 2_001), True),
        (FileRef("a"), FileRef("a", 1_990, 2_002), False),
        (FileRef("a", 5, 9), FileRef("a"), False),
        (FileRef("a", 5, 20), FileRef("a", 6, 20), True),
        (FileRef("a", 5, 20), FileRef("a", 6, 21), False),
        (FileRef("a", 5, 20), FileRef("a", 4, 20), False),
        (FileRef("a", 5), FileRef("a", 9), True),
    ],
)
def test_one_read_covers_another_only_if_it_shows_all_its_lines(
    later: FileRef, earlier: FileRef, expected: bool
) -> None:
    assert later.covers(earlier) is expected


def test_files_keep_their_order_and_a_modified_file_is_no_longer_listed_as_read() -> None:
    transcript = talk(
        "u: go",
        "a: look | read(b.py) as c1 | read(a.py) as c2 | read(gone.py) as c3",
        "t: c1 = x | c2 = y",
        "t! c3 = no such file",
        'a: now | edit({"path": "a.py"}) as c4',
        "t: c4 = ok",
    )
    assert files_of(transcript.messages) == (("b.py",), ("a.py",))


def test_the_lists_of_an_earlier_summary_come_first() -> None:
    summary, *rest = talk("u: summary", 'a: look | read(new.py) as c1 | write({"path": "old.py"}) as c2').messages
    summary = replace(summary, note=Note("summary", read=("old.py", "kept.py"), modified=("was.py",)))
    assert files_of((summary, *rest)) == (("kept.py", "new.py"), ("was.py", "old.py"))
