"""How a compaction comes to nothing."""

from __future__ import annotations

__all__ = ["CompactionAborted", "PlanConflict"]


class CompactionAborted(Exception):  # it is told to the client in a header, and the request goes on
    """A compaction that came to nothing, and why."""


class PlanConflict(CompactionAborted):
    """Another process has put a plan in force meanwhile."""
