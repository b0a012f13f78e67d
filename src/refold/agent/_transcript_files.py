"""The whole transcript as JSONL on disk, written before a compaction replaces everything (L04)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from refold.agent._private_files import file_name, owned_folder, write_owned

if TYPE_CHECKING:
    from refold.agent._changed_files import Files
    from refold.core.needs import ArchiveNeed

__all__ = ["TranscriptFiles", "transcripts_folder"]

FOLDER = ".transcripts"  # of a workspace, where no other folder is set; the workspace's tools do not search it


class TranscriptFiles:  # L04
    """Writes `transcript-<session>.jsonl`: one message a line, as the provider's API has it.

    Each time the whole file is written anew, so that no message is in it twice. Only the owner can read it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, session: str, need: ArchiveNeed) -> str:
        """Write the messages of a session and return the path."""
        lines = [json.dumps(message.native, ensure_ascii=False) + "\n" for message in need.messages]
        return str(write_owned(owned_folder(self._folder) / f"transcript-{file_name(session)}.jsonl", "".join(lines)))


def transcripts_folder(folder: Path | None, files: Files | None) -> Path | None:
    """Return where transcripts go: the folder of outputs, else one of the workspace; None without either."""
    if folder is not None:
        return folder
    return files.root / FOLDER if files is not None else None
