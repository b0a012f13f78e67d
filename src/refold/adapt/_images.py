"""Images and texts in the shape of one provider, from the shape of another."""

from __future__ import annotations

from typing import Any

__all__ = ["claude_image", "text_blocks"]


def claude_image(block: dict[str, Any]) -> dict[str, Any]:
    """Return an image block of OpenAI's chat as Claude's; any other block as it is."""
    if block.get("type") != "image_url":
        return block
    url = block["image_url"]["url"]
    kind, data_url, data = url.partition(";base64,")
    if not data_url:
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "image", "source": {"type": "base64", "media_type": kind.removeprefix("data:"), "data": data}}


def text_blocks(content: str | list[Any]) -> list[Any]:
    """Return content as a list of blocks, in which strings are blocks of text."""
    contents = [content] if isinstance(content, str) else content
    return [{"type": "text", "text": each} if isinstance(each, str) else each for each in contents]
