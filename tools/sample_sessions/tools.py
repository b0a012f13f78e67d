"""The tools of the sample agent: each makes a call with what the made-up repository answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.sample_sessions.recorder import RecordedCall
from tools.sample_sessions.workspace import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.testing._seeded_random import SeededRandom
    from tools.sample_sessions.workspace import DemoRepository

__all__ = ["bash", "edit", "glob", "grep", "head_of", "read", "small_change", "stale_edit", "todo", "write"]


def read(workspace: DemoRepository, path: str, offset: int = 1, limit: int | None = None) -> RecordedCall:
    """Read a file, or some lines of it."""
    input: dict[str, object] = {"file_path": f"{ROOT}/{path}"}
    if limit is not None:
        input |= {"offset": offset, "limit": limit}
    if path not in workspace.files:
        return RecordedCall("Read", input, f"File does not exist: {ROOT}/{path}", is_error=True)
    return RecordedCall("Read", input, workspace.read(path, offset, limit))


def edit(workspace: DemoRepository, path: str, old: str, new: str) -> RecordedCall:
    """Change a file."""
    if not workspace.has_shown(path, old):
        raise ValueError(f"{path} was not read before this edit")
    input = {"file_path": f"{ROOT}/{path}", "old_string": old, "new_string": new}
    return RecordedCall("Edit", input, workspace.replace(path, old, new))


def stale_edit(path: str, old: str, new: str) -> RecordedCall:
    """Try to change what is no longer there."""
    input = {"file_path": f"{ROOT}/{path}", "old_string": old, "new_string": new}
    said = f"String to replace not found in {ROOT}/{path}. Read the file again; it has changed since."
    return RecordedCall("Edit", input, said, is_error=True)


def write(workspace: DemoRepository, path: str, text: str) -> RecordedCall:
    """Create a file."""
    return RecordedCall("Write", {"file_path": f"{ROOT}/{path}", "content": text}, workspace.write(path, text))


def grep(workspace: DemoRepository, word: str, under: str = "") -> RecordedCall:
    """Search for a word."""
    return RecordedCall("Grep", {"pattern": word, "path": f"{ROOT}/{under}"}, workspace.search(word, under))


def glob(workspace: DemoRepository, pattern: str) -> RecordedCall:
    """List files."""
    return RecordedCall("Glob", {"pattern": pattern}, workspace.glob(pattern))


def bash(command: str, output: str, code: int = 0, about: str = "") -> RecordedCall:
    """Run a command; a code other than 0 is an error."""
    input: dict[str, object] = {"command": command}
    if about:
        input["description"] = about
    return RecordedCall("Bash", input, f"{output}\n[exit code {code}]" if code else output, is_error=code != 0)


def todo(items: Sequence[str], done: int) -> RecordedCall:
    """Write the list of what is to be done, the first `done` of it finished."""
    states = ["completed"] * done + ["in_progress"] + ["pending"] * len(items)
    todos = [{"content": item, "status": state} for item, state in zip(items, states, strict=False)]
    return RecordedCall("TodoWrite", {"todos": todos}, f"{min(done, len(items))} of {len(items)} done")


def head_of(text: str, name: str) -> str:
    """Return the first two lines of a function."""
    start = text.index(f"def {name}(")
    return "\n".join(text[start:].split("\n", 2)[:2])


_CHANGES = (
    (r'^ +log\.info\("\w+ done", extra=\{.*"actor": actor\}\)$', "actor})", 'actor, "request_id": request_id})'),
    (r'^ +raise Forbidden\("[\w-]+", actor\)$', ", actor)", ', f"{actor} on {id}")'),
    (r'^ +raise TooLate\("[\w-]+", \w+\.id\)$', ".id)", '.id, request_id)'),
    (r"^[A-Z]+_MINUTES = \d+$", "", "  # minutes, per stage in config/"),
    (r'^ +log\.debug\("\w+ looks at %s", key\)$', "%s\", key)", '%s for %s", key, request_id)'),
    (r'^ +self\._audit\.write\(.*request_id\)$', "request_id)", "request_id, dry_run=dry_run)"),
)  # fmt: skip


def small_change(workspace: DemoRepository, path: str, dice: SeededRandom) -> tuple[str, str] | None:
    """Return a small change to lines of a file that were shown and still stand there once, or None."""
    found: list[tuple[str, str]] = []
    lines = "\n".join(workspace.shown.get(path, ())).split("\n")
    for above, line in zip(["", *lines], lines, strict=False):
        for pattern, old, new in _CHANGES:
            if re.match(pattern, line):
                changed = line.replace(old, new) if old else line + new
                before = f"{above}\n" if above.strip() and dice.chance(0.6) else ""
                found.append((before + line, before + changed))
    usable = [
        pair for pair in found if workspace.files[path].count(pair[0]) == 1 and workspace.has_shown(path, pair[0])
    ]
    return dice.pick(usable) if usable else None
