"""Short labels for messages: role, tool, file, and the beginning of the text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from refold._condense.call_facts import arguments_of, reads, writes
from refold._text.printable import clean
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
    from refold.core.view import View

__all__ = ["full_text", "kind", "target", "what"]

EMPTY = "(no content)"
SHORT = 72


def what(message: Message, view: View, most: int = SHORT) -> str:
    """Return what a message is: its note's kind, tools and their targets, or else its first words, or thoughts."""
    tools: list[str] = []
    words: list[str] = []
    thoughts: list[str] = []
    for part in message.parts:
        match part:
            case ToolCall():
                tools.append(_call(part))
            case ToolResult():
                call = view.call_of(message, part)
                about = _call(call) if call else part.name or "result without call"
                tools.append(f"{about} (error)" if part.is_error else about)
            case Reasoning():
                thoughts.append(text_of_part(part)[: most * 4])
            case _:
                words.append(text_of_part(part)[: most * 4])
    head = f"{message.note.kind}: " if message.note else ""
    return clean(head + (", ".join(tools) or " ".join(words) or " ".join(thoughts)), most) or EMPTY


def target(call: ToolCall) -> str:
    """Return what a call is about: the file it reads or writes, or its first argument in words."""
    ref = reads(call)
    if ref is not None:
        return ref.path if ref.whole else f"{ref.path}:{ref.start}" + (f"-{ref.stop - 1}" if ref.stop else "-")
    written = writes(call)
    if written:
        return ", ".join(written)
    arguments = arguments_of(call)
    return next((_first_line(value) for value in arguments.values() if isinstance(value, str) and value.strip()), "")


def kind(part: Part) -> str:
    """Return the kind of a part, as plans name it."""
    return str(part.__struct_config__.tag)


def full_text(message: Message) -> str:
    """Return everything a message says, for reading."""
    return "\n".join(map(text_of_part, message.parts))


def text_of_part(part: Part) -> str:
    """Return what one part says; a label in brackets for what cannot be read."""
    match part:
        case Text(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            values = arguments_of(part)
            lines = [f"{key}: {_value(value)}" for key, value in values.items()]
            return "\n".join([name, *lines]) if lines else f"{name} {arguments}"
        case ToolResult(content=content):
            return "\n".join(map(text_of_part, content))
        case Reasoning(text=text, size=size):
            return f"[reasoning] {text}" if text else f"[reasoning, {size:,} characters sealed]"
        case Image(media_type=media, width=width, height=height):
            return " ".join(["[image", media, f"{width}x{height}" if width else ""]).strip() + "]"
        case File(kind=sort, name=name, text=text):
            return text or f"[{sort} {name}]"
        case Opaque(kind=sort, size=size):
            return f"[{sort or 'unknown'}, {size:,} characters]"


def _call(call: ToolCall) -> str:
    about = target(call)
    return f"{call.name} {about}" if about else call.name


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
