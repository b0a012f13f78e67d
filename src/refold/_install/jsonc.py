"""JSON as agents read their settings: with comments, commas behind a last entry, and a byte order mark."""

from __future__ import annotations

import re

__all__ = ["COMMENT", "as_json"]

COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\r\n]*|/\*.*?\*/', re.S)
LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.S)
SIGN = re.compile(r"[^\r\n]")


def as_json(text: str) -> str:
    """Return a text with blanks in place of all that JSON does not have; no place changes."""

    def blank(match: re.Match[str]) -> str:
        return match[1] or SIGN.sub(" ", match[0])

    return LAST_COMMA.sub(blank, COMMENT.sub(blank, text.replace("\ufeff", " ", text.startswith("\ufeff"))))
