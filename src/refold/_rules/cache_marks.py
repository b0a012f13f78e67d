"""No more cache marks in the messages than the provider takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from refold._rules.base import CutAnywhere
from refold.core.messages import Message, Path
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CacheMarks"]


class CacheMarks(CutAnywhere, frozen=True):
    """A request bears at most four cache marks; those outside the messages (system, tools) count against the same four.

    `marks` finds the paths of a message's marks, without those that an edit removed. The messages alone are seen here.
    Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching; Bedrock has the same limit.
    """

    marks: Callable[[Message], tuple[Path, ...]]
    most: int = 4
    name: str = "cache_marks"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return the messages whose marks are too many."""
        text = f"more than {self.most} cache marks"
        positions = sorted({position for position, _ in self.surplus(messages)})
        return tuple(Violation(self.name, text, (position,), (messages[position].id,)) for position in positions)

    def surplus(self, messages: Sequence[Message]) -> list[tuple[int, Path]]:
        """Return the oldest marks, which are too many: position of the message and path."""
        marked = [(position, at) for position, message in enumerate(messages) for at in self._left(message)]
        return marked[: max(0, len(marked) - self.most)]

    def _left(self, message: Message) -> tuple[Path, ...]:
        if message.native is None or not (marks := self.marks(message)):
            return ()
        removed = [patch.at for patch in message.patches if patch.to is None]
        return tuple(at for at in marks if not any(at[: len(path)] == path for path in removed))
