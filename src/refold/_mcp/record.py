"""The sources of the server, and what it knows of a session: where it is, its texts, and how full its context is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from refold._recall.search import RecordedTexts

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ChosenSession", "Fill", "Record", "SessionRef", "Source", "ToolShare"]


class SessionRef(Struct, frozen=True):
    """A session: its id, the agent that wrote it (or "store"), when it last changed, in seconds, and its file."""

    id: str
    kind: str
    changed: float
    path: str = ""


class ChosenSession(Struct, frozen=True):
    """The session that a call is about, why it is this one, in words, and whether that was a guess."""

    ref: SessionRef
    why: str
    guessed: bool = False


class Record(Struct, frozen=True):
    """The texts of a session: those that compactions removed from the context, and those that are in it."""

    ref: SessionRef
    removed: RecordedTexts
    present: RecordedTexts


class ToolShare(Struct, frozen=True):
    """What a tool's calls and results, or the words of a role, take of the context, in tokens."""

    name: str
    tokens: int
    count: int


class Fill(Struct, frozen=True):
    """How full a context is, in tokens; `limit` is 0 where the model's window is unknown, `waits` why none is made yet.

    `outside` is what the provider counted beyond the messages: system prompt and tools.
    """

    tokens: int
    limit: int
    shares: Sequence[ToolShare]
    due: bool = False
    waits: str = ""
    outside: int = 0
    compactions: int = 0


class Source(Protocol):
    """Where sessions are: a store, or the session files of agents."""

    @property
    def here(self) -> str:
        """Words for what the newest session is the newest of."""

    def sessions(self, *, everywhere: bool = False) -> Sequence[SessionRef]:
        """Return the sessions of the working folder, or all, the last changed first."""

    def record(self, ref: SessionRef) -> Record:
        """Return the texts of a session."""

    def behind(self, ref: SessionRef, what: str) -> RecordedTexts | None:
        """Return the originals behind a compaction, where a text is the id of one."""

    def records_with(self, query: str, *, everywhere: bool) -> tuple[Sequence[Record], int]:
        """Return sessions that may hold words of a query, the last changed first, and how many were looked at."""

    def fill(self, ref: SessionRef) -> Fill:
        """Return how full the context of a session is."""

    def plan(self, ref: SessionRef) -> bytes:
        """Return as JSON the plans in force, or for a session file the plan that a compaction would make now."""

    def undo(self, ref: SessionRef, to: str) -> str:
        """Take compactions off, and return what is in force then."""
