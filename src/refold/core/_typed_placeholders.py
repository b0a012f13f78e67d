"""Placeholders that fit a field's type: a result that may hold only an image gets an image of one pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold.core.messages import Image, Message, ToolResult

if TYPE_CHECKING:
    from collections.abc import Container

    from refold.core.messages import Part, Path

__all__ = ["PIXEL", "shaped"]

PIXEL = Image("image/png", 70, 1, 1)


def shaped(message: Message, at: Path, to: Part | None, kinds: Container[str]) -> Part | None:
    """Return what replaces a part of a message, a picture of one pixel where a result of these kinds must hold one."""
    for result in message.results if kinds else ():
        if result.kind in kinds:
            inner = next((part.at for part in result.content), ())
            if at == result.at and isinstance(to, ToolResult) and not any(isinstance(p, Image) for p in to.content):
                return replace(to, content=(replace(PIXEL, at=inner),))
            if at and at == inner and not isinstance(to, Image):
                return PIXEL
    return to
