"""Suggests the nearest known name for a name that is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return "; did you mean X?" with the nearest of the known names, nothing where none is near."""
    from difflib import get_close_matches

    names = list(known)
    lowered = {each.lower(): each for each in names}
    matches = get_close_matches(str(name).lower(), lowered, n=1) if len(str(name)) < 200 else []
    return f"; did you mean {lowered[matches[0]]}?" if matches else ""
