"""Estimates how full the window is: from token estimates, from the provider's usage report, or from both.

Every gauge returns tokens as the provider counts them. What has to be estimated is converted by the ratio that the
report gives of the messages it covers (`token_units`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

from msgspec import Struct

from refold.core.token_units import UNKNOWN_RATIO, EstimatedTokens, Ratio, ReportedTokens, ratio_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.budget import Usage
    from refold.core.messages import Message

__all__ = ["Estimate", "Gauge", "HigherOf", "LastTotal", "ReportedPlusTail", "covered", "ratio_by"]


class Estimate(Struct, frozen=True, tag="estimate"):  # N01, L11
    """The counter's estimate, converted where a report has shown that the provider counts more than it."""

    follows_reports: ClassVar[bool] = False
    doubt: ClassVar[float] = 0.0

    def measure(
        self, estimated: EstimatedTokens, since: EstimatedTokens, usage: Usage | None, ratio: Ratio = UNKNOWN_RATIO
    ) -> ReportedTokens:
        """Return the tokens of the whole request, given the estimate of all and of what came since the report."""
        return ratio.at_least_one.reported(estimated)


class HigherOf(Struct, frozen=True, tag="higher_of"):  # W03
    """The larger of the estimate and the last reported input."""

    follows_reports: ClassVar[bool] = False
    doubt: ClassVar[float] = 0.0

    def measure(
        self, estimated: EstimatedTokens, since: EstimatedTokens, usage: Usage | None, ratio: Ratio = UNKNOWN_RATIO
    ) -> ReportedTokens:
        """Return the tokens of the whole request, given the estimate of all and of what came since the report."""
        size = ratio.at_least_one.reported(estimated)
        return max(size, usage.reported) if usage else size


class ReportedPlusTail(Struct, frozen=True, tag="reported_plus_tail"):  # O02
    """The last reported input plus an estimate of later messages; before any report, an estimate of all messages.

    `doubt`: a report below this share of the estimate is ignored, because some local servers silently cut a prompt
    that is too long and report the rest.
    """

    follows_reports: ClassVar[bool] = True

    doubt: float = 0.0

    def measure(
        self, estimated: EstimatedTokens, since: EstimatedTokens, usage: Usage | None, ratio: Ratio = UNKNOWN_RATIO
    ) -> ReportedTokens:
        """Return the tokens of the whole request, given the estimate of all and of what came since the report."""
        if usage is None or usage.prompt <= 0 or _doubted(self.doubt, estimated, since, usage):
            return ratio.reported(estimated)
        return usage.reported + ratio.reported(since)


class LastTotal(Struct, frozen=True, tag="last_total"):  # V01
    """Prompt and completion of the last call, without later messages; an estimate before the first call."""

    follows_reports: ClassVar[bool] = True
    doubt: ClassVar[float] = 0.0

    def measure(
        self, estimated: EstimatedTokens, since: EstimatedTokens, usage: Usage | None, ratio: Ratio = UNKNOWN_RATIO
    ) -> ReportedTokens:
        """Return the tokens of the whole request, given the estimate of all and of what came since the report."""
        return ReportedTokens(usage.prompt + usage.completion) if usage else ratio.reported(estimated)


Gauge: TypeAlias = Estimate | HigherOf | ReportedPlusTail | LastTotal


def ratio_by(gauge: Gauge, estimated: EstimatedTokens, since: EstimatedTokens, usage: Usage | None) -> Ratio:
    """Return the ratio that a report gives of the messages it covers; unknown without one, and for one in doubt."""
    if usage is None or _doubted(gauge.doubt, estimated, since, usage):
        return UNKNOWN_RATIO
    return ratio_of(usage.reported, estimated - since)


def covered(messages: Sequence[Message], usage: Usage) -> int:
    """Return how many leading messages a report counted."""
    if usage.covers is not None:
        return min(usage.covers, len(messages))
    return next(
        (position for position in range(len(messages) - 1, -1, -1) if messages[position].role == "assistant"), 0
    )


def _doubted(doubt: float, estimated: EstimatedTokens, since: EstimatedTokens, usage: Usage) -> bool:
    """Tell whether a report is less than a share of the estimate of what it covers."""
    return usage.prompt + since.count < estimated.count * doubt
