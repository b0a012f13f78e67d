"""How many tokens a message is: one protocol, and the character estimates of all five seeds as parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from refold._text.encoded_bytes import CHARS_A_TOKEN, dense_chars
from refold.core.messages import (
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CharCounter", "Counter", "count_all"]


class Counter(Protocol):
    """Counts tokens; pure: the same value always counts the same.

    `message` includes what frames a message, so a list is the sum of its messages plus `per_conversation`.
    """

    @property
    def per_conversation(self) -> int:
        """Tokens that frame the list as a whole."""

    def text(self, text: str) -> int:
        """Count one text."""

    def message(self, message: Message) -> int:
        """Count one message with everything in it: calls, arguments, reasoning, pictures."""

    def tools(self, schema: str) -> int:
        """Count tool definitions, given as JSON text."""


class CharCounter(Struct, frozen=True):  # N09, L11, O02
    """Characters divided by a constant: the estimate of the systems that policies follow, their numbers as options.

    Each text costs `ceil(characters / per_token) * factor * margin`; rounding down instead of up is
    `floor`. Tokens per picture are flat (`image`), other files cost their bytes over `file_bytes_per_token`.
    With `by_provider` a request's `factor` is that of its provider, as far as model or format tell (docs/counting.md).
    Base64, hex and other bytes in words count a token for 1.4 characters, whatever `per_token` is, where that is more.
    """

    per_token: float = 4.0
    factor: float = 1.0
    margin: float = 1.0
    per_message: int = 0
    per_call: int = 0
    per_conversation: int = 0
    image: int = 1_000
    file_bytes_per_token: float = 4.0
    floor: bool = False
    by_provider: bool = False

    def text(self, text: str) -> int:
        """Count one text."""
        return self._chars(len(text), dense_chars(text))

    def tools(self, schema: str) -> int:
        """Count tool definitions, given as JSON text."""
        return self._chars(len(schema)) if schema else 0

    def message(self, message: Message) -> int:
        """Count one message with everything in it."""
        return self.per_message + sum(map(self._part, message.parts))

    def _chars(self, chars: int, dense: int = 0) -> int:
        if dense and self.per_token > CHARS_A_TOKEN:
            chars += int(dense * (self.per_token / CHARS_A_TOKEN - 1))  # as many as words of that size have
        base = chars // self.per_token if self.floor else math.ceil(chars / self.per_token)
        return math.ceil(base * self.factor * self.margin)

    def _part(self, part: Part) -> int:
        match part:
            case Text(text=text):
                return self.text(text)
            case ToolResult(content=content):
                return sum(map(self._part, content))
            case ToolCall(name=name, arguments=arguments):
                return self.per_call + self._chars(len(name) + len(arguments), dense_chars(arguments))
            case Reasoning(text=text, size=size):
                return self._chars(len(text) + size)
            case Image():
                return self.image
            case File(text=text, bytes=size):
                return self.text(text) if text else math.ceil(size / self.file_bytes_per_token)
            case Opaque(text=text, size=size):
                return self.text(text) if text else self._chars(size)


def count_all(counter: Counter, messages: Iterable[Message]) -> int:
    """Return the tokens of a whole list, framing included."""
    return counter.per_conversation + sum(map(counter.message, messages))
