"""Contents of a framework as native values that say which content each of them was, for frameworks with parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["placed", "replaced", "text_in"]

PLACE = "place"


def placed(contents: Sequence[Any], convert: Callable[[Any], dict[str, Any]]) -> list[Any]:
    """Return contents as native values, each with its place, which an edited one keeps."""
    return [{**convert(content), PLACE: place} for place, content in enumerate(contents)]


def replaced(
    natives: Sequence[Any],
    contents: Sequence[Any],
    convert: Callable[[Any], dict[str, Any]],
    write: Callable[[Any, Any], Any],
) -> list[Any]:
    """Return the contents that native values hold now; those that no plan touched are the very same objects.

    `write` is called for the others with the native value and the content that it was, None where a plan made it.
    """
    before = placed(contents, convert)
    pairs = ((native, native.get(PLACE)) for native in natives)
    return [
        write(native, None) if at is None else contents[at] if native == before[at] else write(native, contents[at])
        for native, at in pairs
    ]


def text_in(native: dict[str, Any]) -> str | None:
    """Return the text of a message or a block, or that of the first block of a message; None of what is no text."""
    content = native.get("content", native)
    block = content[0] if isinstance(content, list) else content
    return block if isinstance(block, str) else block.get("text")
