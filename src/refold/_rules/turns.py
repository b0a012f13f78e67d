"""A turn of function calls follows the user or the responses to earlier calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._rules.base import CutAnywhere
from refold._rules.call_index import joined
from refold.core.messages import Message
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CallsAfterUser"]


class CallsAfterUser(CutAnywhere, frozen=True):
    """The model's calls do not follow another message of the model (Gemini).

    "Please ensure that function call turn comes immediately after a user turn or after a function response turn",
    https://ai.google.dev/gemini-api/docs/function-calling. Neighbors of which one was edited are written as one.
    """

    name: str = "turns"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return where messages with calls follow the model's own, each message with those that it is written with."""
        starts: dict[int, None] = {}
        start = 0
        for position, message in enumerate(messages):
            before = messages[position - 1] if position else None
            follows = before is not None and before.role == message.role == "assistant"
            if before is None or not follows or not joined(before, message):
                start = position
            if message.role == "assistant" and message.calls and start and messages[start - 1].role == "assistant":
                starts[start] = None
        text = "calls follow another message of the model"
        return tuple(Violation(self.name, text, (position,), (messages[position].id,)) for position in starts)
