"""A log file per session id; a renewed session continues in a new file (V09)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from refold.agent._private_files import append_owned, file_name, owned_folder
from refold.agent.event_names import named
from refold.agent.events import SessionRenewed

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SessionLog"]


class SessionLog:
    """An observer that writes each event's name and figures as a line of JSON to `session-<id>.jsonl`.

    No word of the conversation is written. Files are readable by their owner only.
    """

    def __init__(self, folder: Path, session: str, *, system: str = "refold") -> None:
        self._folder, self._system = owned_folder(folder), system
        self.path = self._place(session)

    def __call__(self, event: object) -> None:
        """Write an event; those that have no name are passed over."""
        if isinstance(event, SessionRenewed):
            self._write("session_renewed", {"old": event.old, "new": event.new})
            self.path = self._place(event.new)
        elif entry := named(event, self._system):
            self._write(*entry)

    def _write(self, name: str, figures: dict[str, object]) -> None:
        append_owned(self.path, json.dumps({"event": name, **figures}, ensure_ascii=False) + "\n")

    def _place(self, session: str) -> Path:
        return self._folder / f"session-{file_name(session)}.jsonl"
