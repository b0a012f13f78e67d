"""The native messages of a session as they were appended, with their transcript: always where the log is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold import formats
from refold.core.transcript import Transcript
from refold.sessions._stores.leases import damaged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.sessions._log import Log

__all__ = ["MessageCache"]


class MessageCache:
    """Messages that are not rewound; those that stay are the same objects, and only new ones are read."""

    def __init__(self) -> None:
        self.natives: list[Any] = []
        self.transcript = Transcript()

    def grow(self, log: Log, longer: Transcript, natives: Sequence[Any]) -> None:
        """Add messages that were just appended."""
        if len(longer) == len(log.state.ids) and longer.tip == log.state.tip:
            self.transcript = longer
            self.natives += natives
        else:
            self.follow(log)

    def follow(self, log: Log) -> None:
        """Go where the log is.

        Raises:
            StoreCorrupt: a message is not the one that was appended.
        """
        ids, have = log.state.ids, self.transcript.messages
        same = min(len(have), len(ids))
        while same and have[same - 1].id != ids[same - 1]:
            same -= 1
        if same == len(have) == len(ids):
            return
        self.natives = [*self.natives[:same], *(log.natives[id] for id in ids[same:])]
        format = formats.find(log.known.format)
        self.transcript = formats.read(format, self.natives, Transcript(have[:same]))
        if self.transcript.tip != log.state.tip:
            pairs = zip(self.transcript.messages, ids, strict=True)
            wrong = next(id for message, id in pairs if message.id != id)
            raise damaged(log.store.name, f"session {log.session}: message {wrong} is not what was appended")
