"""Repairs lone surrogates in the parts of a message, so that stages and counters see valid text only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._text.surrogates import repair_surrogate_escapes, repair_surrogates
from refold.core.messages import ToolCall, ToolResult

if TYPE_CHECKING:
    from refold.core.messages import Message, Part

__all__ = ["repair_surrogates_in_message"]


def repair_surrogates_in_message(message: Message) -> Message:
    """Return the message with valid text in all its parts; the native object stays as it is."""
    return replace(message, parts=tuple(map(_repaired, message.parts)))


def _repaired(part: Part) -> Part:
    changed = {
        name: repair_surrogates(value)
        for name in part.__struct_fields__
        if isinstance(value := getattr(part, name), str) and not value.isascii()
    }
    match part:
        case ToolCall():
            changed["arguments"] = repair_surrogate_escapes(repair_surrogates(part.arguments))
        case ToolResult():
            return replace(part, **changed, content=tuple(map(_repaired, part.content)))
        case _:
            pass
    return replace(part, **changed) if changed else part
