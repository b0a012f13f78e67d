"""A text's head and tail with a label between, cut where a reader sees the end of a character."""

from __future__ import annotations

from refold._text.graphemes import head_of, tail_of

__all__ = ["shortened"]


def shortened(text: str, head: int, tail: int, label: str) -> str:
    """Return head, label and tail of a text; the label may name original, omitted, head and tail as numbers."""
    first, last = head_of(text, head), tail_of(text, tail)
    omitted = len(text) - len(first) - len(last)
    said = label.format(original=len(text), omitted=omitted, head=len(first), tail=len(last))
    return "\n".join(piece for piece in (first, said, last) if piece)
