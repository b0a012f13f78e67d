"""Builds the edits that replace an output, an image, reasoning or arguments by a placeholder."""

from __future__ import annotations

import re

from msgspec.structs import replace

from refold.core.messages import (
    File,
    Image,
    Message,
    Opaque,
    Patch,
    Text,
    ToolResult,
    memoized,
)

__all__ = ["LEFT_OUT", "content_replaced", "images_in", "is_pointer", "media_marker", "text_replaced"]

POINTER = "[output "
# What stands in place of a part of a text, or of an image.
LEFT_OUT = re.compile(r"\[…(?: [^\]\n]{1,60} left out …)?\]|\[\w+ seen earlier, left out: [^\]\n]{1,200}\]")
LONGEST = 600  # characters of a pointer, which is one line


def is_pointer(message: Message, result: ToolResult) -> bool:
    """Tell whether an earlier plan has put a pointer in place of this output, or a client has sent one back."""
    text = result.text
    return text.startswith(POINTER) and (bool(message.patches) or (len(text) < LONGEST and "\n" not in text))


def content_replaced(result: ToolResult, text: str) -> tuple[Patch, ...]:
    """Return the patches that leave a result with these words alone; blocks of unknown kind stay."""
    known = [inner for inner in result.content if not isinstance(inner, Opaque)]
    if not known or any(inner.at == result.at or not inner.at for inner in known):
        rest = tuple(inner for inner in result.content if isinstance(inner, Opaque))
        return (Patch(result.at, replace(result, content=(Text(text), *rest))),)
    first = next((inner for inner in known if isinstance(inner, Text)), known[0])
    dropped = (Patch(inner.at, None) for inner in known if inner is not first)
    return (Patch(first.at, Text(text)), *dropped)


def text_replaced(result: ToolResult, text: str) -> tuple[Patch, ...]:
    """Return the patches that change the words of a result, and leave its pictures where its words are one block."""
    words = [inner for inner in result.content if isinstance(inner, Text)]
    if len(words) == 1 and words[0].at and words[0].at != result.at:
        return (Patch(words[0].at, Text(text)),)
    return content_replaced(result, text)


@memoized
def images_in(message: Message) -> tuple[Image, ...]:
    """Return the pictures of a message that can be replaced, in order, those inside results too."""
    images: list[Image] = []
    for part in message.parts:
        match part:
            case Image():
                images.append(part)
            case ToolResult(content=content):
                images += (inner for inner in content if isinstance(inner, Image))
            case _:
                pass
    return tuple(picture for picture in images if picture.at)


def media_marker(part: Image | File) -> Text:
    """Return the words that stand in place of a picture or a file that was seen."""
    if isinstance(part, File):
        return Text(f"[{part.kind} seen earlier, left out: {part.name or part.media_type}]")
    size = f" {part.width}x{part.height}" if part.width else ""
    return Text(f"[image seen earlier, left out: {part.media_type or 'image'}{size}]")
