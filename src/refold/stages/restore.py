"""Files that were read lately come back into the view after everything was replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from refold._condense.call_facts import reads
from refold._condense.view_positions import open_request
from refold.core.edits import Insert
from refold.core.messages import Note, ToolCall, ToolResult
from refold.core.needs import FileNeed, Provided, Refused
from refold.core.policy import require_counts

if TYPE_CHECKING:
    from refold.core.edits import Edit
    from refold.core.needs import Answer, Need
    from refold.core.view import View

__all__ = ["Restore", "recently_read"]


class Restore(Struct, frozen=True):  # L05
    """Insert the present content of recently read files, newest first, each followed by an acknowledgement.

    At most `files` of them, `each` tokens a file and `total` together, and never more than the goal has room for.
    Done only in a run that replaced the conversation by a summary. In place of a file that cannot be read the next
    older one is asked for.
    """

    grows: ClassVar[bool] = True

    files: int = 5  # L05
    each: int = 5_000  # L05
    total: int = 50_000  # L05
    heading: str = "[Restored after compaction] {path}"
    acknowledgement: str = "Noted, file content restored."  # L05

    def __post_init__(self) -> None:
        require_counts(self, "files", "each", "total")

    def needs(self, view: View) -> tuple[Need, ...]:
        """Ask for the newest files that were read."""
        if not any(isinstance(edit, Insert) for edit in view.edits):
            return ()
        return self._candidates(view)[: self.files]

    def more(self, view: View, answers: tuple[Answer, ...]) -> tuple[Need, ...]:
        """Ask for as many older files as could not be read; for none where nobody reads files."""
        if any(isinstance(answer, Refused) and answer.absent for answer in answers):
            return ()
        missing = self.files - sum(map(_is_read, answers))
        return self._candidates(view)[len(answers) : len(answers) + missing]

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return a pair of messages for each file that fits."""
        room = min(self.total, -view.over_goal)
        request = open_request(view)
        before = request.id if request is not None else None
        inserts: list[Insert] = []
        for need, answer in zip(self._candidates(view), answers, strict=False):
            if not isinstance(answer, Provided) or not answer.text:
                continue
            salt = len(inserts)
            content = f"{self.heading.format(path=need.path)}\n\n{answer.text}"
            pair = (
                view.insert("user", content, Note("restored", read=(need.path,)), before=before, salt=salt),
                view.insert("assistant", self.acknowledgement, Note("acknowledgement"), before=before, salt=salt + 1),
            )
            cost = sum(view.counter.message(edit.message) for edit in pair)
            if view.counter.text(answer.text) <= self.each and cost <= room:
                inserts.extend(pair)
                room -= cost
        if inserts and before is None and not view.traits.assistant_last:
            inserts.pop()
        return tuple(inserts)

    def _candidates(self, view: View) -> tuple[FileNeed, ...]:
        """Return a need for every file that was read, in the order in which they are asked for."""
        return tuple(FileNeed(path, self.each) for path in recently_read(view))


def _is_read(answer: Answer) -> bool:
    return isinstance(answer, Provided) and bool(answer.text)


def recently_read(view: View, count: int | None = None) -> tuple[str, ...]:
    """Return the files whose reading succeeded, each once, the last read first; at most `count`, or all."""
    failed: set[str] = set()
    paths: dict[str, None] = {}
    for message in reversed(view.transcript.messages):
        for part in reversed(message.parts):
            match part:
                case ToolResult(call_id=call_id, is_error=True):
                    failed.add(call_id)
                case ToolCall(call_id=call_id) if call_id not in failed and (ref := reads(part)):
                    paths[ref.path] = None
        if count is not None and len(paths) >= count:
            break
    return tuple(paths)[:count]
