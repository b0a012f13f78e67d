"""A file per task with a preview of each tool output, and a log with the full outputs next to it (W11)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._text.graphemes import boundary_before
from refold.agent._private_files import append_owned, owned_folder
from refold.agent.events import ToolFinished, TurnStarted
from refold.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PREVIEW", "TaskFile", "TaskFiles", "preview"]

PREVIEW = 2_000  # characters, W11
LISTED = 40  # newest steps that the system prompt lists; a line has about 15 tokens
FILE_NAME = re.compile(r"TASK-(\d+)\.md")
MEMORY = """<memory>
  The tool outputs of this task are stored in {path}: the first {preview:,} characters of each, in order.
  Read the steps you need there; a tool call is repeated only where that is not enough.
{steps}
</memory>"""


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


class TaskFiles:
    """An observer that writes a task file for each turn with two tool calls or more, in one folder (W11).

    The files are `TASK-0001.md`, `TASK-0002.md` and so on, each with its `-detail.log`; numbers that the folder has
    are not used again. Give it to an agent as `task_files=`: after each compaction the agent's system prompt then
    names the file of the task and its steps, so that the model can read outputs back. Only names and sizes go into
    the prompt, because text from tools must not have the authority of a system prompt; the text itself reaches the
    model as the output of a tool that reads files, which the agent needs for that.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._request = ""
        self._first: ToolFinished | None = None  # written with the second: one step is no multi-step task
        self._task: TaskFile | None = None
        self._steps: list[str] = []

    @property
    def path(self) -> Path | None:
        """The file of the current task; None before its second step."""
        return self._task.path if self._task else None

    def __call__(self, event: object) -> None:
        """Begin a task with a turn, and write its tool outputs; anything else is passed over."""
        match event:
            case TurnStarted(text=text):
                self._request, self._first, self._task, self._steps = text, None, None, []
            case ToolFinished() if self._task is None and self._first is None:
                self._first = event
            case ToolFinished():
                for step in filter(None, (self._first, event)):
                    self._add(step)
                self._first = None

    def memory(self) -> str:
        """Return the block for the system prompt: the file's path and its newest steps; "" where there is no file."""
        if self._task is None:
            return ""
        newest = self._steps[-LISTED:]
        earlier = len(self._steps) - len(newest)
        lines = [*([f"  {earlier} earlier steps"] if earlier else []), *newest]
        return MEMORY.format(path=self._task.path, preview=PREVIEW, steps="\n".join(lines))

    def _add(self, event: ToolFinished) -> None:
        if self._task is None:
            self._task = TaskFile(self.folder, f"{self._next_number():04}")
            append_owned(self._task.path, f"# Task\n\n{preview(self._request)}\n\n")
        self._task(event)
        error = ", an error" if event.is_error else ""
        self._steps.append(f"  Step {len(self._steps) + 1}: {event.name}, {len(event.output):,} characters{error}")

    def _next_number(self) -> int:
        used = (FILE_NAME.fullmatch(path.name) for path in owned_folder(self.folder).iterdir())
        return max((int(match[1]) for match in used if match), default=0) + 1


def preview(output: str, characters: int = PREVIEW) -> str:
    """Return the beginning of an output, with its size before it and what was left out behind."""
    if len(output) <= characters:
        return f"({len(output):,} chars) {output}"
    beginning = output[: boundary_before(output, characters)]
    return f"({len(output):,} chars) {beginning} [{len(output) - len(beginning):,} chars omitted]"
