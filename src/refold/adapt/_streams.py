"""Whether an answer that is streamed to a callback has begun: from then on its request is not sent again."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import Any

__all__ = ["noting"]


def noting(callback: Any, begun: list[bool]) -> dict[str, Any]:
    """Return the argument `streaming_callback` with a callback that notes in `begun` when it is called; or none."""
    if callback is None:
        return {}

    def note(chunk: Any) -> None:
        begun.append(True)
        callback(chunk)

    async def note_async(chunk: Any) -> None:
        begun.append(True)
        await callback(chunk)

    return {"streaming_callback": note_async if iscoroutinefunction(callback) else note}
