"""Outputs of tools that a hook shortened before the agent's model saw them: the whole texts, a file for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from refold.core.messages import Message, MessageId, Text, ToolResult

__all__ = ["agents_folder", "saved_outputs"]


def agents_folder() -> Path:
    """Return the folder for what hooks of agents write."""
    from platformdirs import user_data_path

    return Path(user_data_path("refold", appauthor=False)) / "agents"


def saved_outputs(agent: str, session: str, folder: Path) -> Iterator[Message]:
    """Yield the whole outputs of a session below a folder, as results of calls, whose ids they have; oldest first."""
    files = sorted(
        (folder / "sessions" / agent / session / "outputs").glob("*.txt"), key=lambda file: file.stat().st_mtime_ns
    )
    for file in files:
        text = file.read_text("utf-8", errors="replace")
        yield Message(MessageId(file.stem), "tool", (ToolResult(file.stem, (Text(text, at=(0, 0)),), at=(0,)),))
