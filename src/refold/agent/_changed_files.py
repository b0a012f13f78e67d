"""The files of a workspace: read when they are restored (L05), and noticed when they change (L10)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from refold._condense.call_facts import reads, writes
from refold._counting.token_cut import cut_to_tokens
from refold.core.counting import CharCounter
from refold.errors import UsageError
from refold.models._file_budget import Attached, fit_files, how_to_read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.counting import Counter
    from refold.core.messages import ToolCall
    from refold.core.needs import FileNeed

__all__ = ["Files", "attached"]

READ_AT_MOST = 40  # bytes a token, of a file that is restored: more is never needed for the tokens it may have


class Files:
    """Knows which files of a folder were read or written by tools, and when each had last been changed then.

    Nothing outside the folder is ever read. `counter` says what a token is; 4 characters by default.
    """

    def __init__(self, root: str | Path, counter: Counter | None = None) -> None:
        self.root = Path(root).resolve()
        self._counter = counter or CharCounter(4)
        self._seen: dict[str, int | None] = {}

    def note(self, call: ToolCall, *, is_error: bool = False) -> None:
        """Remember the files that a call has read or written, with their present modification times."""
        read = reads(call)
        for path in (*((read.path,) if read else ()), *writes(call)):
            if not is_error and (place := self._inside(path)) is not None:
                self._seen[path] = _modified(place)

    def changed(self) -> tuple[str, ...]:
        """Return the files that changed since they were last read or written; each change is returned once (L10)."""
        changed = []
        for path, before in self._seen.items():
            place = self._inside(path)
            if place is not None and (now := _modified(place)) != before:
                self._seen[path] = now
                changed.append(path)
        return tuple(changed)

    def restore(self, need: FileNeed) -> str:
        """Return a file's present content, cut to the tokens it may have (L05).

        Raises:
            UsageError: it lies outside the folder, or is not a file.
        """
        place = self._inside(need.path)
        if place is None or not place.is_file():
            raise UsageError(f"{need.path} is not a file in {self.root}")
        with place.open(encoding="utf-8", errors="replace") as file:
            text = file.read(need.max_tokens * READ_AT_MOST)
        self._seen[need.path] = _modified(place)
        return cut_to_tokens(text, need.max_tokens, self._counter)[0]

    def _inside(self, path: str) -> Path | None:
        try:
            place = (self.root / path).resolve()
        except (OSError, RuntimeError, ValueError):  # no path at all: a NUL in it, links in a circle
            return None
        return place if place.is_relative_to(self.root) else None


def attached(paths: Sequence[str | Path], budget: int, counter: Counter | None = None) -> tuple[Attached, ...]:
    """Return files to go with a request, all together within so many tokens (N15; `limits.files.file_budget`).

    Raises:
        OSError: one cannot be read.
    """
    files = []
    for path in map(Path, paths):
        size = path.stat().st_size
        way = how_to_read(size, budget)
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(way.max_chars) if way.truncate and way.max_chars is not None else file.read()
        chars = size if way.truncate else 0
        files.append(Attached(text, str(path), chars))
    return fit_files(files, budget, counter)


def changed_notice(paths: Sequence[str]) -> str:
    """Return the text that names to the model the files to read again."""
    listed = "\n".join(f"- {path}" for path in paths)
    head = "Changed on disk since you last read them; read again before you rely on them:"
    return f"<changed-files>\n{head}\n{listed}\n</changed-files>"


def _modified(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
