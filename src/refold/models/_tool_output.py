"""Shortens one tool output: cut to bytes and lines (N14), or stored elsewhere with a preview in its place (L08).

Nothing is written here: `save` is the caller's, gets the whole text and returns the place to name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from refold._text.graphemes import boundary_after, boundary_before
from refold.errors import BadBudget

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.core.counting import Counter

__all__ = ["MAX_BYTES", "MAX_LINES", "MAX_TOKENS", "PREVIEW", "Output", "archive_output", "truncate_output"]

Save: TypeAlias = "Callable[[str], str]"

MAX_BYTES = 51_200  # N14
MAX_LINES = 2_000  # N14
MAX_TOKENS = 40_000  # L08
PREVIEW = 2_000  # characters, L08
NOTICE = "[Output truncated from {size} bytes to {kept} bytes]"  # N14
SAVED = "[Output truncated from {size} bytes to {kept} bytes. Full output: {place}]"


class Output(Struct, frozen=True):
    """What the model gets of a tool output: `size` and `kept` in bytes of UTF-8, `place` where the whole of it is."""

    text: str
    size: int
    kept: int
    truncated: bool = False
    place: str | None = None


def truncate_output(
    text: str,
    max_bytes: int = MAX_BYTES,
    max_lines: int = MAX_LINES,
    keep: Literal["head", "tail"] = "tail",
    save: Save | None = None,
) -> Output:  # N14
    """Return an output of at most so many bytes and lines, the notice at its end included.

    The newest part stays unless `keep` is "head". No character is torn; a line that is too long by itself is cut
    inside. What fits exactly is untouched, and `save` is not called for it. Raises BadBudget for a limit below 1.
    """
    if max_bytes < 1 or max_lines < 1:
        raise BadBudget(f"a tool output of {max_bytes} bytes and {max_lines} lines holds nothing; give both from 1 up")
    size = _bytes(text)
    if size <= max_bytes and _lines(text) <= max_lines:
        return Output(text, size, size)
    place = save(text) if save else None
    room = max_bytes - _bytes(_notice(size, size, place)) - 1  # the notice at its longest, and a line break
    excerpt = _within(_lines_of(text, max_lines - 1, keep), room, keep) if room > 0 else ""
    notice = _notice(size, _bytes(excerpt), place)
    if not excerpt:
        return Output(_within(notice, max_bytes, "head"), size, 0, True, place)
    joint = "" if excerpt.endswith("\n") else "\n"
    return Output(f"{excerpt}{joint}{notice}", size, _bytes(excerpt), True, place)


def archive_output(
    text: str, save: Save, counter: Counter, max_tokens: int = MAX_TOKENS, preview: int = PREVIEW
) -> Output:  # L08
    """Return an output as it is up to `max_tokens`; above, save it and leave its place and first characters."""
    size = _bytes(text)
    tokens = counter.text(text)
    if tokens <= max_tokens:
        return Output(text, size, size)
    place = save(text)
    head = text[: boundary_before(text, preview)]
    left = len(text) - len(head)
    notice = f"[Output of {tokens:,} tokens ({size:,} bytes) saved to {place}]"
    preview_text = f"{notice}\nThe first {len(head):,} characters, {left:,} more in the file:\n{head}"
    return Output(preview_text, size, _bytes(head), True, place)


def _notice(size: int, kept: int, place: str | None) -> str:
    return (SAVED if place else NOTICE).format(size=size, kept=kept, place=place)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _lines(text: str) -> int:
    """Return the number of lines; a line break at the very end begins no other line."""
    return text.count("\n") + (0 if text.endswith("\n") or not text else 1)


def _lines_of(text: str, count: int, keep: Literal["head", "tail"]) -> str:
    """Return the first or last lines of a text, walking over no more than those."""
    if count <= 0:
        return ""
    if keep == "head":
        at = -1
        for _ in range(count):
            if (at := text.find("\n", at + 1)) < 0:
                return text
        return text[: at + 1]
    at = len(text) - 1 if text.endswith("\n") else len(text)
    for _ in range(count):
        if (at := text.rfind("\n", 0, at)) < 0:
            return text
    return text[at + 1 :]


def _within(text: str, room: int, keep: Literal["head", "tail"]) -> str:
    """Return as much of one end of a text as fits into so many bytes."""
    if _bytes(text) <= room:
        return text
    if keep == "head":
        near = text[:room]
        part = near.encode("utf-8", "surrogatepass")[:room]
        return text[: boundary_before(text, _length(part, near))]
    near = text[-room:]
    part = near.encode("utf-8", "surrogatepass")[-room:]
    while part and part[0] & 0xC0 == 0x80:  # the rest of a character whose beginning was cut off
        part = part[1:]
    return text[boundary_after(text, len(text) - len(part.decode("utf-8", "surrogatepass"))) :]


def _length(part: bytes, near: str) -> int:
    """Return how many characters of a text its first bytes hold whole."""
    end = len(part)
    while end and end > len(part) - 4:
        try:
            return len(part[:end].decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            end -= 1
    return 0 if not end else len(near)
