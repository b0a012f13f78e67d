"""Who may speak first and last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._rules.base import CutAnywhere
from refold.core.messages import Message
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Opening"]


class Opening(CutAnywhere, frozen=True):
    """The first speaker after system messages is the user, and a message of ours for the assistant is never the last.

    A provider's own compaction may come first too, for nothing before it is read. A conversation that rests after
    the assistant's own answer is whole: the user's next message will follow it.
    """

    user_first: bool = True
    assistant_last: bool = False
    name: str = "opening"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return an assistant's message that comes first, and one of ours that comes last."""
        violations: list[Violation] = []
        position = next((position for position, message in enumerate(messages) if message.role != "system"), None)
        opened = position is not None and messages[position].anchor is not None  # the provider reads nothing before it
        if position is not None and self.user_first and messages[position].role == "assistant" and not opened:
            violations.append(self._violation("the first message is the assistant's", position, messages[position]))
        last = messages[-1] if messages else None
        if last is not None and not self.assistant_last and last.role == "assistant" and last.note is not None:
            violations.append(
                self._violation("the last message is one of ours for the assistant", len(messages) - 1, last)
            )
        return tuple(violations)

    def _violation(self, text: str, position: int, message: Message) -> Violation:
        return Violation(self.name, text, (position,), (message.id,))
