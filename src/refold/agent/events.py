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
    """A person's message came in; `number` counts them."""

    number: int
    text: str


class ToolStarted(Struct, frozen=True, tag="tool_started"):
    """A call is being done."""

    name: str
    call_id: str
    arguments: str


class ToolFinished(Struct, frozen=True, tag="tool_finished"):
    """A call is done; `output` is the tool's whole output, `model_characters` how many characters the model gets."""

    name: str
    call_id: str
    output: str
    model_characters: int
    is_error: bool = False
    seconds: float = 0.0


class UsageReported(Struct, frozen=True, tag="usage"):  # O16
    """The provider's figures after a call, with the context window."""

    statistics: Statistics

    @property
    def window(self) -> int:
        """The context window in tokens."""
        return self.statistics.window


class Warned(Struct, frozen=True, tag="warning"):
    """Something a person should know."""

    text: str


class SessionRenewed(Struct, frozen=True, tag="session_renewed"):  # V09
    """After a compaction the session goes on under another id."""

    old: str
    new: str


class TurnEnded(Struct, frozen=True, tag="turn_ended"):  # O16
    """A turn is over: why, after how many calls of the model, and the figures with the context window."""

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
