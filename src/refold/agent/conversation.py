"""Messages that a loop adds to a conversation, in the provider's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold import formats
from refold.core.messages import Message, MessageId, Note, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["answers", "open_calls", "says"]


def says(role: str, text: str, more: Sequence[str] = ()) -> dict[str, Any]:
    """Return a message of words in the shape that OpenAI's chat and Anthropic's messages share."""
    if not more:
        return {"role": role, "content": text}
    return {"role": role, "content": [{"type": "text", "text": part} for part in (text, *more)]}


def answers(format: str, results: Sequence[tuple[ToolCall, str, bool]]) -> list[Any]:
    """Return the messages that hold results, one for each or one for all as the format wants it.

    Each result is the call, the text, and whether it is an error.
    """
    shape = formats.find(format)
    parts = [
        ToolResult(call.call_id, (Text(text),), call.name, is_error, call.kind, at=(place,))
        for place, (call, text, is_error) in enumerate(results)
    ]
    groups = [parts] if shape.traits.results_together else [[part] for part in parts]
    note = Note("synthetic")
    made = [Message(MessageId(f"results:{number}"), "tool", tuple(group), note) for number, group in enumerate(groups)]
    return formats.assemble(shape, made)


def open_calls(format: str, native: Any) -> tuple[ToolCall, ...]:
    """Return the calls of the last message of a conversation, which nothing can have answered."""
    return formats.find(format).read(native, MessageId("last")).calls
