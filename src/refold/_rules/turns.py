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
        """Return the messages with calls that follow the model's own."""
        return tuple(
            Violation(self.name, "calls follow another message of the model", (position,), (message.id,))
            for position, message in enumerate(messages)
            if position
            and message.role == "assistant"
            and message.calls
            and messages[position - 1].role == "assistant"
            and not joined(messages[position - 1], message)
        )
