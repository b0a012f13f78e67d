"""Every message has content, and no text is blank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._rules.base import CutAnywhere
from refold.core.messages import Message, Reasoning, Text, memoized
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Filled"]


class Filled(CutAnywhere, frozen=True):
    """Every message has content, and no words are blank.

    `beside_calls`: blank words beside calls are accepted (OpenAI chat). `reasoning_alone`: reasoning by itself is
    content (a Responses item, a message of thinking blocks). `spaces`: words of spaces and line breaks are words, as a
    stream brings them in parts of their own (Gemini); only empty ones are blank.
    """

    blank_with_calls: bool = False
    reasoning_alone: bool = True
    spaces: bool = False
    name: str = "content"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return messages without content or with blank words."""
        violations: list[Violation] = []
        for position, message in enumerate(messages):
            if _full(message):
                continue
            if self.is_empty(message):
                text = f"the {message.role} message has no content"
            elif self.blanks(message):
                text = f"the {message.role} message has blank words"
            else:
                continue
            violations.append(Violation(self.name, text, (position,), (message.id,)))
        return tuple(violations)

    def is_empty(self, message: Message) -> bool:
        """Tell whether nothing in a message counts as content."""
        for part in message.parts:
            match part:
                case Text(text=text):
                    if not self._blank(text):
                        return False
                case Reasoning():
                    if self.reasoning_alone:
                        return False
                case _:
                    return False
        return True

    def blanks(self, message: Message) -> tuple[Text, ...]:
        """Return the blank words of a message that the provider would refuse."""
        if self.blank_with_calls and message.calls:
            return ()
        return tuple(part for part in message.parts if isinstance(part, Text) and self._blank(part.text))

    def _blank(self, text: str) -> bool:
        return not text or (not self.spaces and text.isspace())


@memoized
def _full(message: Message) -> bool:
    """Tell whether a message holds content by every measure: something other than reasoning, and no blank words."""
    full = False
    for part in message.parts:
        match part:
            case Text(text=text) if not text or text.isspace():
                return False
            case Reasoning():
                pass
            case _:
                full = True
    return full
