"""Halves of surrogate pairs, which text that was cut elsewhere carries and no UTF-8 can: joined, or replaced.

JavaScript and Java count UTF-16: what they cut may begin or end with half an emoji. It is valid in JSON as an escape.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold.core.messages import ToolCall, ToolResult

if TYPE_CHECKING:
    from refold.core.messages import Message, Part

__all__ = ["whole", "whole_escapes", "whole_message", "whole_values"]

_ESCAPES = re.compile(
    r"\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def whole(text: str) -> str:
    """Return the text with halves of surrogate pairs joined, and lone ones replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_escapes(text: str) -> str:
    """Return JSON text with the escapes of lone halves replaced by that of U+FFFD."""
    return _ESCAPES.sub(lambda found: "\\ufffd" if found["half"] else found[0], text)


def whole_values(value: Any) -> Any:
    """Return a value of JSON with whole text in all its strings, keys among them."""
    match value:
        case str():
            return whole(value)
        case dict():
            return {whole_values(key): whole_values(held) for key, held in value.items()}
        case list() | tuple():
            return [whole_values(held) for held in value]
        case _:
            return value


def whole_message(message: Message) -> Message:
    """Return a message as stages may see it: whole text in all its parts; the native object stays as it is."""
    return replace(message, parts=tuple(map(_whole_part, message.parts)))


def _whole_part(part: Part) -> Part:
    changed = {
        name: whole(value)
        for name in part.__struct_fields__
        if isinstance(value := getattr(part, name), str) and not value.isascii()
    }
    match part:
        case ToolCall():
            changed["arguments"] = whole_escapes(whole(part.arguments))
        case ToolResult():
            return replace(part, **changed, content=tuple(map(_whole_part, part.content)))
        case _:
            pass
    return replace(part, **changed) if changed else part
