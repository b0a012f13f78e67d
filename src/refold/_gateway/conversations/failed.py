"""How work on a conversation comes to nothing."""

from __future__ import annotations

__all__ = ["CompactionAborted", "ConversationDeleted", "PlanConflict"]


class CompactionAborted(Exception):  # it is told to the client in a header, and the request goes on
    """A compaction that came to nothing, and why."""


class PlanConflict(CompactionAborted):
    """Another process has put a plan in force meanwhile."""


class ConversationDeleted(Exception):  # the caller forgets it, and looks again for whose the request is
    """Another process has deleted the conversation since it was stored."""
