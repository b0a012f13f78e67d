"""A stream of events, cut where its events end, with its bytes kept."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

__all__ = ["Event", "Events"]

END = re.compile(rb"\r?\n\r?\n")
_decode = msgspec.json.Decoder().decode


class Event(Struct, frozen=True):
    """One event: its bytes with the empty line that ends it, and its data where that is a JSON object."""

    raw: bytes
    data: dict[str, Any] | None = None

    @property
    def comment(self) -> bool:
        """Whether it only keeps the connection alive."""
        return self.raw.startswith(b":")


class Events:
    """Takes pieces of a stream and gives the events that are whole."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[Event]:
        """Take a piece and return the events that it completes."""
        held = self._rest + piece
        found: list[Event] = []
        start = 0
        for end in END.finditer(held, max(len(self._rest) - 3, 0)):
            found.append(_event(held[start : end.end()]))
            start = end.end()
        self._rest = held[start:]
        return found

    def rest(self) -> list[Event]:
        """Return what is left when the stream has ended."""
        held, self._rest = self._rest, b""
        return [_event(held)] if held.strip() else []


def _event(raw: bytes) -> Event:
    lines = [line[5:].strip() for line in raw.splitlines() if line.startswith(b"data:")]
    try:
        data = _decode(b"\n".join(lines)) if lines else None
    except (msgspec.DecodeError, UnicodeDecodeError):  # "[DONE]", or what only the client can judge
        data = None
    return Event(raw, data if isinstance(data, dict) else None)
