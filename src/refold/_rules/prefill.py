"""A response prefilled by the client does not end in white space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._rules.base import CutAnywhere
from refold.core.messages import Message, Text
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Prefill"]


class Prefill(CutAnywhere, frozen=True):
    """The words of a last message of the assistant do not end in white space (Anthropic).

    "final assistant content cannot end with trailing whitespace", https://platform.claude.com/docs/en/api/messages
    """

    name: str = "prefill"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return the last message where its words end in white space."""
        if not messages or self.trailing(messages[-1]) is None:
            return ()
        text = "the last words of the assistant end in white space"
        return (Violation(self.name, text, (len(messages) - 1,), (messages[-1].id,)),)

    @staticmethod
    def trailing(message: Message) -> Text | None:
        """Return the words that end in white space, other than blank ones."""
        last = message.parts[-1] if message.role == "assistant" and message.parts else None
        if isinstance(last, Text) and last.text.strip() and last.text[-1].isspace():
            return last
        return None
