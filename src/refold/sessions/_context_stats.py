"""Statistics of a session: how full its context is, what a compaction did, and what was billed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from refold.core.messages import MessageId
from refold.core.plan import Plan
from refold.sessions._state import Billed

__all__ = ["Compacted", "CompactionStats", "ContextStats", "Recalled", "SessionUsageReported"]


class ContextStats(Struct, frozen=True):  # N19, O01, O16
    """How full a session's context is, in tokens; fields are read as attributes and as keys.

    `context_tokens` is what the meter shows: of the last call's prompt and what came since, where the policy reads
    reports. `billed` is what all calls were billed together, and `context_window` the whole window.
    """

    estimated_input_tokens: int
    available_input_tokens: int
    usage_ratio: float
    should_compact: bool
    message_count: int
    context_window: int
    context_tokens: int
    billed: Billed

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self.__struct_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def keys(self) -> Iterator[str]:
        """Yield the names of the fields, so that `dict(stats)` works."""
        return iter(self.__struct_fields__)


class CompactionStats(Struct, frozen=True):  # N02, O03, V09
    """What a compaction of a session did, in tokens of the whole request.

    `session` is the id the conversation has now, and `previous` the one it had where the policy renews it.
    """

    compacted: bool
    stages_used: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    context_window: int
    session: str
    plan: Plan
    previous: str = ""

    @property
    def tokens_saved(self) -> int:
        """Tokens saved; never negative."""
        return max(self.tokens_before - self.tokens_after, 0)

    @property
    def repaired_pairs(self) -> int:
        """The number of tool calls and results that got the half they had lost (N16)."""
        return self.plan.repaired_pairs

    @property
    def deduplicated_files(self) -> int:
        """The number of files of which only the latest read stays (N04)."""
        return self.plan.deduplicated_files


class SessionUsageReported(Struct, frozen=True, tag="usage_reported"):  # O16
    """A provider reported usage: tokens of this call, all that was billed, and the context window."""

    session: str
    prompt: int
    completion: int
    billed: Billed
    context_window: int


class Compacted(Struct, frozen=True, tag="session_compacted"):  # O03
    """A compaction of a session is done and kept; message counts before and after and the window are in it."""

    compaction: CompactionStats


class Recalled(Struct, frozen=True):
    """An original brought back: its id, the native message, a session that holds it, and why it was found."""

    id: MessageId
    message: Any
    session: str
    excerpt: str = ""
