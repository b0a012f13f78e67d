"""A log file per day, `YYYY-MM-DD.log.md`, of events and their figures (W16)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from refold.agent._compaction_log import Decision
from refold.agent._private_files import append_owned, owned_folder
from refold.agent.event_names import named
from refold.agent.events import ToolFinished, TurnStarted, Warned

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["DailyLog"]


def _now() -> datetime:
    return datetime.now(UTC).astimezone()


class DailyLog:
    """An observer that writes each event as a line: the time, the system's name for it, its figures as JSON.

    Words of the conversation are left out unless `texts` is asked for. Files are readable by their owner only.
    """

    def __init__(
        self, folder: Path, *, system: str = "refold", clock: Callable[[], datetime] = _now, texts: bool = False
    ) -> None:
        self._folder, self._system, self._clock, self._texts = folder, system, clock, texts

    def __call__(self, event: object) -> None:
        """Write an event; those that have no name are passed over."""
        line = self._line(event)
        if line is None:
            return
        now = self._clock()
        path = owned_folder(self._folder) / f"{now:%Y-%m-%d}.log.md"
        append_owned(path, f"- {now:%H:%M:%S} {line}\n")

    def _line(self, event: object) -> str | None:
        match event:
            case Decision():
                return event.line
            case Warned(text=text):
                return f"warning {text}"
            case TurnStarted(number=number, text=text):
                return _entry("turn_started", {"number": number} | ({"text": text} if self._texts else {}))
            case ToolFinished():
                figures = {"name": event.name, "characters": len(event.output), "error": event.is_error}
                return _entry("tool_finished", figures | ({"output": event.output} if self._texts else {}))
            case _:
                entry = named(event, self._system)
                return _entry(*entry) if entry else None


def _entry(name: str, figures: dict[str, object]) -> str:
    return f"{name} {json.dumps(figures, ensure_ascii=False)}"
