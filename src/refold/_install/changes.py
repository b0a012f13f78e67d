"""Files of an agent's settings that are changed together: what they become, the record of it, and the way back.

Theory of operation. For each file there is a text without ours (the base), and a text with it. While nobody else has
written a file since it was installed, its base is the backup, so that taking it off restores it byte for byte. Else
the base is what `remove` leaves of it: the user's later changes stay. Installing again begins from the base too, so it
is idempotent. Nothing is written before all texts are known.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refold._files import write_atomically
from refold._install.jsonc import as_json
from refold.errors import UsageError

__all__ = [
    "Change", "FileEdit", "InstallRecord", "block", "changes", "diff", "require_writable", "without_blocks", "written",
]  # fmt: skip

START, STOP = "# >>> refold install", "# <<< refold install"
BLOCK = re.compile(rf"(?:\r?\n)?^{START}\r?\n.*?^{STOP}\r?\n", re.M | re.S)


@dataclass(frozen=True)
class FileEdit:
    """How a file of settings is changed: `add` puts ours into its text, `remove` takes it out again.

    `remove` gets the text and that before the installation, whose values come back where ours replaced them. A file
    that does not exist has the text `empty`; `remove` returns that where nothing else is left.
    """

    path: Path
    add: Callable[[str], str]
    remove: Callable[[str, str], str]
    empty: str = ""


@dataclass(frozen=True)
class Change:
    """What becomes of a file: its content now, without ours, and in the end; None where there is no file."""

    path: Path
    now: bytes | None
    base: bytes | None
    after: bytes | None


class InstallRecord:
    """What was installed: by file, the backup of what was there and the hash of what was written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> dict[str, Any]:
        """Return the record, empty where nothing is installed.

        Raises:
            UsageError: the record is damaged.
        """
        try:
            record: dict[str, Any] = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:
            raise UsageError(f"{self.path} is damaged: remove it, and refold's lines in the agent's settings") from None
        return record

    def save(self, planned: Sequence[Change], options: dict[str, Any]) -> None:
        """Write the record of changes that are about to be made."""
        files = {
            str(change.path): {
                "before": None if change.base is None else base64.b64encode(change.base).decode(),
                "after": _hash(change.after),
            }
            for change in planned
            if change.base != change.after
        }
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        content = json.dumps({"options": options, "files": files}, indent=2) + "\n"
        write_atomically(self.path, content.encode(), mode=0o600)


def changes(edits: Sequence[FileEdit], record: dict[str, Any], *, install: bool) -> list[Change]:
    """Return what becomes of each file, without writing any.

    Raises:
        UsageError: a file cannot be read or understood.
    """
    planned = []
    for edit in edits:
        now = _read(edit.path)
        base = _base(edit, now, record.get("files", {}).get(str(edit.path)))
        after = base
        if install:
            text = _text(edit, base)
            added = edit.add(text)
            after = base if added == text else added.encode()
            if now is not None and after is not None and _same(edit.path, now, after):
                after = now  # the agent may have written its file anew, in an order of its own
        planned.append(Change(edit.path, now, base, after))
    return planned


def _same(path: Path, one: bytes, other: bytes) -> bool:
    return path.suffix == ".json" and bool(_value(one) == _value(other))


def _value(content: bytes) -> Any:
    try:
        return json.loads(as_json(content.decode()))
    except ValueError:  # it is refused where it is read
        return content


def require_writable(planned: Sequence[Change]) -> None:
    """Refuse changes of files that must not be written, before any is.

    Raises:
        UsageError: a file is read-only, or its folder is, as where another program makes the settings.
    """
    for change in planned:
        target = Path(os.path.realpath(change.path))
        for place in (target, target.parent):
            if change.now != change.after and place.exists() and not os.access(place, os.W_OK):
                led = "" if target == change.path else f" ({change.path} leads there)"
                raise UsageError(f"{place} is read-only{led}: let it be written, then try again; nothing was written")


def written(planned: Sequence[Change]) -> None:
    """Write the files, each whole or not at all; what was written comes back where a later one fails."""
    done: list[Change] = []
    try:
        for change in planned:
            _put(change.path, change.after)
            done.append(change)
    except OSError:
        for change in done:
            _put(change.path, change.now)
        raise


def diff(planned: Sequence[Change]) -> str:
    """Return the changes as a unified diff."""
    lines: list[str] = []
    for change in planned:
        now, after = ((content or b"").decode().splitlines(keepends=True) for content in (change.now, change.after))
        old = str(change.path) if change.now is not None else "/dev/null"
        new = str(change.path) if change.after is not None else "/dev/null"
        lines += [
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in difflib.unified_diff(now, after, old, new)
        ]
    return "".join(lines)


def _base(edit: FileEdit, now: bytes | None, entry: dict[str, Any] | None) -> bytes | None:
    if entry is not None and entry["after"] == _hash(now):
        return None if entry["before"] is None else base64.b64decode(entry["before"])
    if now is None:
        return None
    text = _text(edit, now)
    before = base64.b64decode(entry["before"]) if entry is not None and entry["before"] is not None else None
    rest = edit.remove(text, _text(edit, before))
    if entry is not None and entry["before"] is None and rest.strip() == edit.empty.strip():
        return None
    return now if rest == text else rest.encode()


def _text(edit: FileEdit, content: bytes | None) -> str:
    if content is None or not content.removeprefix(b"\xef\xbb\xbf").strip():
        return edit.empty
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{edit.path} is not UTF-8: correct it, then try again; nothing was written") from None


def block(text: str, *lines: str) -> str:
    """Return lines between marks, for a file whose comments begin with a number sign; `text` says how its lines end."""
    return ("\r\n" if "\r\n" in text else "\n").join((START, *lines, STOP, ""))


def without_blocks(text: str) -> str:
    """Return a text without what stands between such marks."""
    return BLOCK.sub("", text)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _put(path: Path, content: bytes | None) -> None:
    target = Path(os.path.realpath(path))  # a link stays one
    if content is None:
        target.unlink(missing_ok=True)
    else:
        write_atomically(target, content)


def _hash(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()
