"""Answers of tools that repeat the arguments of their call, and what they say beside those went wrong."""

from __future__ import annotations

import json
from heapq import nlargest
from typing import TYPE_CHECKING

from refold._condense.call_facts import arguments_of
from refold._condense.call_outline import ERROR_LENGTH, wrong_line
from refold.core.messages import ToolCall, memoized

if TYPE_CHECKING:
    from refold.core.messages import ToolResult

__all__ = ["cause"]

ECHOED = 24  # characters of an argument from which on it is one that an answer repeats
MOST_ECHOES = 64  # such arguments that are looked for, the longest: each reads the whole answer


def cause(call: ToolCall, result: ToolResult) -> str:
    """Return what the answer of a tool says that went wrong, word for word, or nothing.

    Some answers repeat the arguments of their call in full: no error is looked for in those.
    """
    text = result.text
    for value in nlargest(MOST_ECHOES, _strings(call), key=len) if len(text) > ERROR_LENGTH else ():
        for echo in (json.dumps(value, ensure_ascii=False)[1:-1], value):
            text = text.replace(echo, "…")
    return wrong_line(text, ERROR_LENGTH if text == result.text else 0)


@memoized
def _strings(call: ToolCall) -> tuple[str, ...]:
    """Return the long texts in the arguments of a call."""
    open_: list[object] = [arguments_of(call)]
    texts: list[str] = []
    while open_:
        match open_.pop():
            case str(text) if len(text) >= ECHOED:
                texts.append(text)
            case dict(fields):
                open_ += fields.values()
            case list(items):
                open_ += items
    return tuple(texts)
