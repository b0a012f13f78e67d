"""A repository in memory: what the session's tools read, search and change, so that all they show hangs together."""

from __future__ import annotations

import difflib
import fnmatch
import re
from typing import TYPE_CHECKING

from tools.sample_sessions import other_code, python_code
from tools.sample_sessions.shop import shop, tasks

if TYPE_CHECKING:
    from refold.testing._seeded_random import SeededRandom

__all__ = ["ROOT", "DemoRepository", "numbered"]

ROOT = "/srv/orderdesk"
MOST_HITS = 60  # lines that a search shows


class DemoRepository:
    """Files by path below the root; `shown` is what a read has shown of each, `committed` its last committed text."""

    def __init__(self, dice: SeededRandom) -> None:
        self.files = dict(sorted(_files(dice).items()))
        self.committed = dict(self.files)
        self.shown: dict[str, list[str]] = {}

    def read(self, path: str, offset: int = 1, limit: int | None = None) -> str:
        """Return lines of a file with their numbers, and remember that they were shown."""
        lines = self.files[path].split("\n")
        stop = len(lines) if limit is None else min(offset - 1 + limit, len(lines))
        chosen = lines[offset - 1 : stop]
        self.shown.setdefault(path, []).append("\n".join(chosen))
        return numbered(chosen, offset)

    def has_shown(self, path: str, text: str) -> bool:
        """Tell whether a read has shown this text of a file."""
        return any(text.strip("\n") in shown for shown in self.shown.get(path, ()))

    def replace(self, path: str, old: str, new: str) -> str:
        """Change a file as an edit tool does, and return what the tool says."""
        text = self.files[path]
        if text.count(old) != 1:
            raise ValueError(f"{path} holds {text.count(old)} times what is to be replaced")
        line = text[: text.index(old)].count("\n") + 1
        self.files[path] = text.replace(old, new)
        around = self.files[path].split("\n")[max(line - 3, 0) : line + new.count("\n") + 3]
        return f"The file {ROOT}/{path} has been updated. It now reads:\n{numbered(around, max(line - 2, 1))}"

    def write(self, path: str, text: str) -> str:
        """Create a file and return what the tool says."""
        self.files[path] = text
        return f"File created: {ROOT}/{path} ({len(text.encode())} bytes)"

    def search(self, word: str, under: str = "") -> str:
        """Return the lines that hold a word, as `path:line:text`."""
        hits = [
            f"{path}:{number}:{line}"
            for path, text in self.files.items()
            if path.startswith(under) and word in text
            for number, line in enumerate(text.split("\n"), 1)
            if word in line
        ]
        if not hits:
            return "No matches found"
        more = f"\n({len(hits) - MOST_HITS} more lines not shown)" if len(hits) > MOST_HITS else ""
        return "\n".join(hits[:MOST_HITS]) + more

    def glob(self, pattern: str) -> str:
        """Return the paths that match a pattern."""
        return "\n".join(f"{ROOT}/{path}" for path in self.files if fnmatch.fnmatchcase(path, pattern)) or "No files"

    def tests(self, under: str = "tests/") -> list[tuple[str, str]]:
        """Return file and name of each Python test."""
        return [
            (path, name)
            for path, text in self.files.items()
            if path.startswith(under) and path.endswith(".py")
            for name in re.findall(r"^def (test_\w+)", text, re.M)
        ]

    def diff(self) -> str:
        """Return what has changed since the last commit, as `git diff` shows it."""
        out = []
        for path, text in self.files.items():
            before = self.committed.get(path, "")
            if text != before:
                lines = difflib.unified_diff(
                    before.split("\n"), text.split("\n"), f"a/{path}", f"b/{path}", lineterm=""
                )
                out.append(f"diff --git a/{path} b/{path}\n" + "\n".join(lines))
        return "\n".join(out)

    def commit(self) -> list[str]:
        """Make the present state the committed one; return the paths that changed."""
        changed = [path for path, text in self.files.items() if text != self.committed.get(path)]
        self.committed = dict(self.files)
        return changed


def numbered(lines: list[str], first: int) -> str:
    """Return lines with their numbers, as a read tool shows them."""
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _files(dice: SeededRandom) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, entity in enumerate(shop().entities, 1):
        own = dice.fork(entity.name)
        found[f"orderdesk/models/{entity.name}.py"] = python_code.model(entity, own.fork("model"))
        found[f"orderdesk/repositories/{entity.name}.py"] = python_code.repository(entity, own.fork("repository"))
        found[f"orderdesk/services/{entity.name}.py"] = python_code.service(entity, own.fork("service"))
        found[f"orderdesk/handlers/{entity.name}.py"] = python_code.handlers(entity, own.fork("handlers"))
        found[f"tests/services/test_{entity.name}.py"] = python_code.tests(entity, own.fork("tests"))
        found[f"web/src/api/{entity.name}.ts"] = other_code.client(entity, own.fork("client"))
        found[f"web/src/tables/{entity.title}Table.tsx"] = other_code.table_view(entity, own.fork("view"))
        found[f"migrations/{number:04}_{entity.table}.sql"] = other_code.migration(entity, own.fork("sql"))
        found[f"docs/{entity.name}.md"] = other_code.page(entity, own.fork("page"))
    for stage in ("development", "staging", "production"):
        found[f"config/{stage}.yaml"] = other_code.settings(stage, dice.fork(stage))
    return found | {task.path: task.code for task in tasks()}
