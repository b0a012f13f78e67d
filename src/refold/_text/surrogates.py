"""Repairs lone UTF-16 surrogates: halves of a pair, which JSON can carry as an escape and UTF-8 cannot carry at all.

JavaScript and Java count UTF-16 code units, so text that they cut may begin or end with half an emoji.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["repair_surrogate_escapes", "repair_surrogates", "repair_surrogates_in_json"]

_ESCAPES = re.compile(
    r"\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def repair_surrogates(text: str) -> str:
    """Return the text with pairs of surrogates joined to one character, and lone ones replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def repair_surrogate_escapes(text: str) -> str:
    """Return JSON text with the escape of each lone surrogate replaced by that of U+FFFD."""
    return _ESCAPES.sub(lambda match: "\\ufffd" if match["half"] else match[0], text)


def repair_surrogates_in_json(value: Any) -> Any:
    """Return a JSON value with the surrogates of all its strings repaired, keys among them; tuples become lists."""
    match value:
        case str():
            return repair_surrogates(value)
        case dict():
            return {repair_surrogates_in_json(key): repair_surrogates_in_json(entry) for key, entry in value.items()}
        case list() | tuple():
            return [repair_surrogates_in_json(entry) for entry in value]
        case _:
            return value
