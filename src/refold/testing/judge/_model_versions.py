"""Reads versions from model names; many provider rules depend on them."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["claude", "gemini"]

# claude-3-5-sonnet-20241022, claude-sonnet-4-20250514, anthropic.claude-opus-4-8-v1:0, claude-fable-5.1
_CLAUDE = re.compile(r"claude-(?:(\d)(?:[-.](\d))?-)?[a-z]+(?:-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?)?")
_GEMINI = re.compile(r"gemini-(\d+)(?:[.-](\d{1,2})(?!\d))?")


@lru_cache(1_000)
def claude(model: str) -> tuple[int, int] | None:
    """Return the version of a Claude model, None of any other and of one whose name holds none."""
    match = _CLAUDE.search(model.lower())
    major, minor = (match[1] or match[3], match[2] if match[1] else match[4]) if match else (None, None)
    return (int(major), int(minor or 0)) if major else None


@lru_cache(1_000)
def gemini(model: str) -> tuple[int, int] | None:
    """Return the version of a Gemini model, None of any other and of one whose name holds none."""
    match = _GEMINI.search(model.lower())
    return (int(match[1]), int(match[2] or 0)) if match else None
