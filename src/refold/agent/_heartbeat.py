"""A health check and its response (V11); it starts no background task."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from refold.clients._protocol import Client

__all__ = ["FILE", "OK", "Heartbeat"]

FILE = "HEARTBEAT.md"  # V11
OK = "HEARTBEAT_OK"  # V11
MOST = 8_000  # characters of the file
HEALTH_CHECK = re.compile(r"\W*(heart ?beat|health[ -]?check)\W*", re.I)
IDLE = re.compile(r"^\s*(#.*|<!--.*-->)?\s*$")  # blank lines, headings and comments ask for nothing
SECTION = (
    "A monitor asks whether you are well. Follow these notes of the workspace, and nothing else:\n\n{notes}\n\n"
    f"If nothing needs a person's attention, answer with {OK} and no other word; else say what does."
)


class Heartbeat(Struct, frozen=True):
    """Answers health checks of one workspace, outside of the conversation, which they therefore never fill."""

    workspace: Path

    def is_health_check(self, text: str) -> bool:
        """Tell whether a message is a health check and nothing else."""
        return HEALTH_CHECK.fullmatch(text) is not None

    def answer(self, client: Client, text: str) -> str:
        """Return `HEARTBEAT_OK`; where HEARTBEAT.md says what to look after, the model answers by it."""
        notes = self._notes()
        if not notes:
            return OK
        reply = client.complete([{"role": "user", "content": text}], system=SECTION.format(notes=notes))
        return reply.text.strip() or OK

    def _notes(self) -> str:
        path = self.workspace / FILE
        if not path.is_file():
            return ""
        with path.open(encoding="utf-8", errors="replace") as file:
            notes = file.read(MOST)
        return "" if all(IDLE.match(line) for line in notes.splitlines()) else notes.strip()
