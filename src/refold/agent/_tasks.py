"""A file per task with a preview of each tool output, and a log with the full outputs next to it (W11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._text.graphemes import boundary_before
from refold.agent._private_files import append_owned, owned_folder
from refold.agent.events import ToolFinished
from refold.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PREVIEW", "TaskFile", "preview"]

PREVIEW = 2_000  # characters, W11


class TaskFile:
    """An observer that writes `TASK-<id>.md` with previews and `TASK-<id>-detail.log` with everything.

    The first stays small enough to be read by a model; the second is for people, and readable by its owner only, as
    is the first.
    """

    def __init__(self, folder: Path, id: str) -> None:
        if not id or not all(sign.isalnum() or sign in "-_." for sign in id):
            raise UsageError(f"{id!r} cannot be part of a file's name: use letters, digits, - and _")
        self.path = owned_folder(folder) / f"TASK-{id}.md"
        self.detail = folder / f"TASK-{id}-detail.log"
        self._steps = 0

    def __call__(self, event: object) -> None:
        """Write what a tool gave; anything else is passed over."""
        if isinstance(event, ToolFinished):
            self.add(event.name, event.output, is_error=event.is_error)

    def add(self, tool: str, output: str, *, is_error: bool = False) -> None:
        """Write one step's output to both files."""
        self._steps += 1
        head = f"### Step {self._steps}: {tool}\n"
        word = "Error" if is_error else "Output"
        append_owned(self.path, f"{head}- **{word}:** {preview(output)}\n\n")
        append_owned(self.detail, f"{head}{output}\n\n")


def preview(output: str, characters: int = PREVIEW) -> str:
    """Return the beginning of an output, with its size before it and what was left out behind."""
    if len(output) <= characters:
        return f"({len(output):,} chars) {output}"
    beginning = output[: boundary_before(output, characters)]
    return f"({len(output):,} chars) {beginning} [{len(output) - len(beginning):,} chars omitted]"
