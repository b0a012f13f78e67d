"""The events an agent loop sends to its observers, apart from cards and decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from refold.agent._compaction_log import Decision
from refold.agent._statistics import Statistics
from refold.agent.cards import Card

__all__ = ["AgentEvent", "AgentObserver", "SessionRenewed", "ToolFinished", "ToolStarted", "TurnEnded", "TurnStarted",
           "UsageReported", "Warned"]  # fmt: skip

Ending: TypeAlias = Literal["answered", "stopped", "steps", "interrupted", "failed"]


class TurnStarted(Struct, frozen=True, tag="turn_started"):
    """A user's message arrived; `number` counts them."""

    number: int
    text: str


class ToolStarted(Struct, frozen=True, tag="tool_started"):
    """A tool call started."""

    name: str
    call_id: str
    arguments: str


class ToolFinished(Struct, frozen=True, tag="tool_finished"):
    """A tool call finished; `output` is its whole output, `model_characters` the number of characters the model
    receives.
    """

    name: str
    call_id: str
    output: str
    model_characters: int
    is_error: bool = False
    seconds: float = 0.0


class UsageReported(Struct, frozen=True, tag="usage"):  # O16
    """The provider's usage report after a call, with the context window."""

    statistics: Statistics

    @property
    def window(self) -> int:
        """The context window in tokens."""
        return self.statistics.window


class Warned(Struct, frozen=True, tag="warning"):
    """A warning for the user."""

    text: str


class SessionRenewed(Struct, frozen=True, tag="session_renewed"):  # V09
    """After a compaction the session continues under another id."""

    old: str
    new: str


class TurnEnded(Struct, frozen=True, tag="turn_ended"):  # O16
    """A turn ended: why, after how many model calls, and the statistics with the context window."""

    number: int
    steps: int
    ending: Ending
    statistics: Statistics

    @property
    def window(self) -> int:
        """The context window in tokens."""
        return self.statistics.window


AgentEvent: TypeAlias = (
    Card | Decision | TurnStarted | ToolStarted | ToolFinished | UsageReported | Warned | SessionRenewed | TurnEnded
)
AgentObserver: TypeAlias = Callable[[AgentEvent], object]
