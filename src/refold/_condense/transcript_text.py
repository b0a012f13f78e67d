"""A conversation as text for a summarizer: fenced data that nothing inside can end (O08)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._text.graphemes import grapheme_prefix, head_and_tail
from refold.core.messages import (
    File,
    Image,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.needs import Lengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Content, Message, Part

__all__ = ["FENCE", "PREVIOUS", "fenced", "serialize"]

FENCE = "conversation"  # O08
PREVIOUS = "previous-summary"
FENCES = re.compile(rf"<(?=\s*/?\s*(?:{FENCE}|{PREVIOUS})\b)", re.I)
HEADINGS = re.compile(r"^\[(?=(?:system|user|assistant|tool|call|result)\b)", re.M | re.I)

LONGEST_WORD = 200  # characters of a name or an id


EVERYTHING = Lengths()


def serialize(messages: Sequence[Message], lengths: Lengths | None = None) -> str:
    """Return messages as fenced text: roles, words, calls with arguments, results; reasoning is left out."""
    pieces = [piece for message in messages if (piece := _message(message, lengths or EVERYTHING))]
    return f"<{FENCE}>\n" + "\n\n".join(pieces) + f"\n</{FENCE}>"


def fenced(text: str, tag: str = PREVIOUS) -> str:
    """Return text between tags that nothing inside it can end."""
    return f"<{tag}>\n{FENCES.sub('&lt;', text)}\n</{tag}>"


def _message(message: Message, lengths: Lengths) -> str:
    lines = [line for part in message.parts if (line := _part(part, lengths))]
    if not lines or message.role == "tool":
        return "\n".join(lines)
    return f"[{message.role}]\n" + "\n".join(lines)


def _part(part: Part, lengths: Lengths) -> str:
    match part:
        case ToolCall(name=name, arguments=arguments, call_id=call_id):
            return f"[call {_word(call_id)}] {_word(name)}({_data(arguments, lengths.arguments)})"
        case ToolResult(content=content, call_id=call_id, is_error=is_error):
            body = "\n".join(_content(inner, lengths.result) for inner in content)
            return f"[result {_word(call_id)}{' failed' if is_error else ''}]\n{body}"
        case Reasoning():
            return ""
        case Text() | Image() | File() | Opaque():
            return _content(part, lengths.text)


def _content(part: Content, length: int | None) -> str:
    match part:
        case Text(text=text):
            return _data(text, length)
        case Image(media_type=kind):
            return f"(a picture{', ' + _word(kind) if kind else ''})"
        case File(kind=kind, name=name, text=text):
            return _data(text, length) if text else f"(a {kind}{' named ' + _word(name) if name else ''})"
        case Opaque(text=text) if text:
            return _data(text, length)
        case Opaque(kind=kind):
            return f"(something else: {_word(kind)})" if kind else ""


def _data(text: str, length: int | None) -> str:
    if length is not None and len(text) > length:
        tail = length // 4
        text = head_and_tail(text, length - tail, tail, "[{omitted:,} characters left out]")
    if "<" in text:
        text = FENCES.sub("&lt;", text)
    return HEADINGS.sub(r"\\[", text) if text.startswith("[") or "\n[" in text else text


def _word(text: str) -> str:
    if len(text) <= LONGEST_WORD and text.replace("-", "_").isidentifier():
        return text
    return re.sub(r"[\s\[\]<>]+", " ", grapheme_prefix(text, LONGEST_WORD))
