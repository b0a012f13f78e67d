"""Estimates how full the window is: from token estimates, from the provider's usage report, or from both."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.budget import Usage
    from refold.core.messages import Message

__all__ = ["Estimate", "Gauge", "HigherOf", "LastTotal", "ReportedPlusTail", "covered"]


class Estimate(Struct, frozen=True, tag="estimate"):  # N01, L11
    """The counter's estimate alone."""

    def measure(self, estimated: int, since: int, usage: Usage | None) -> int:
        """Return the tokens of the whole request, given the estimate of all and of what came since the report."""
        return estimated


class HigherOf(Struct, frozen=True, tag="higher_of"):  # W03
    """The larger of the estimate and the last reported input."""

    def measure(self, estimated: int, since: int, usage: Usage | None) -> int:
        """Return the tokens of the whole request, given the estimate of all and of what came since the report."""
        return max(estimated, usage.prompt if usage else 0)


class ReportedPlusTail(Struct, frozen=True, tag="reported_plus_tail"):  # O02
    """The last reported input plus an estimate of later messages; before any report, an estimate of all messages.

    `doubt`: a report below this share of the estimate is ignored, because some local servers silently cut a prompt
    that is too long and report the rest.
    """

    doubt: float = 0.0

    def measure(self, estimated: int, since: int, usage: Usage | None) -> int:
        """Return the tokens of the whole request, given the estimate of all and of what came since the report."""
        if usage is None or usage.prompt <= 0:
            return estimated
        reported = usage.prompt + since
        return reported if reported >= estimated * self.doubt else estimated


class LastTotal(Struct, frozen=True, tag="last_total"):  # V01
    """Prompt and completion of the last call, without later messages; an estimate before the first call."""

    def measure(self, estimated: int, since: int, usage: Usage | None) -> int:
        """Return the tokens of the whole request, given the estimate of all and of what came since the report."""
        return usage.prompt + usage.completion if usage else estimated


Gauge: TypeAlias = Estimate | HigherOf | ReportedPlusTail | LastTotal


def covered(messages: Sequence[Message], usage: Usage) -> int:
    """Return how many leading messages a report counted."""
    if usage.covers is not None:
        return min(usage.covers, len(messages))
    return next(
        (position for position in range(len(messages) - 1, -1, -1) if messages[position].role == "assistant"), 0
    )
