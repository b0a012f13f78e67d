"""How long ago something was, in words."""

from __future__ import annotations

import time

__all__ = ["ago"]

DAY, HOUR, MINUTE = 86_400, 3_600, 60


def ago(then: float) -> str:
    """Return how long ago a time was, as text."""
    seconds = max(time.time() - then, 0)
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if seconds >= unit:
            count = int(seconds // unit)
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"
