"""Two units of size: tokens as a provider counts them, and tokens as one of our counters estimates them.

A report of 26,700 tokens and an estimate of 10,000 may be the same messages. A difference between the two is no number
of anything, so they are two types that neither add nor subtract, and `Ratio` is the one place that converts.

    usage report ──► ReportedTokens ◄── Ratio.reported ──┐
                          │                              │  ratio = reported / estimated, of the same messages
    budget, goal ─────────┴──── Ratio.estimated ──► EstimatedTokens ◄── counter

The window, the budget and the goal are the provider's. Stages measure and cut by the counter, so a view has its budget
and goal converted to the counter's unit, once; every figure that leaves a compaction is converted back.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["UNKNOWN_RATIO", "EstimatedTokens", "Ratio", "ReportedTokens", "ratio_of"]

# A ratio outside of these is no property of a tokenizer: the report covers something else than was estimated. Estimates
# and tokenizers alike count from 1 (bytes) to 8 (prose of long words) characters a token.
LEAST, MOST = 1 / 8, 8.0
FAR = 1.2  # chosen by hand: a vocabulary that is off by more is not the provider's
SAME = 1.02  # chosen by hand: what framing that we do not know makes of a request of a few thousand tokens
FEW = 200  # tokens, of which most is framing


class EstimatedTokens(Struct, frozen=True, order=True):
    """A size by one of our counters."""

    count: int

    def __add__(self, other: EstimatedTokens) -> EstimatedTokens:
        return EstimatedTokens(self.count + other.count)

    def __sub__(self, other: EstimatedTokens) -> EstimatedTokens:
        return EstimatedTokens(self.count - other.count)


class ReportedTokens(Struct, frozen=True, order=True):
    """A size as the provider counts: from a report, or an estimate that was converted."""

    count: int

    def __add__(self, other: ReportedTokens) -> ReportedTokens:
        return ReportedTokens(self.count + other.count)

    def __sub__(self, other: ReportedTokens) -> ReportedTokens:
        return ReportedTokens(self.count - other.count)


class Ratio(Struct, frozen=True):
    """Tokens that the provider counts per estimated token. Before any report 1, and not `known`."""

    value: float = 1.0
    known: bool = False

    def reported(self, size: EstimatedTokens) -> ReportedTokens:
        """Return an estimate as the provider would count it."""
        return ReportedTokens(round(size.count * self.value))

    def estimated(self, size: ReportedTokens) -> EstimatedTokens:
        """Return what the counter finds in so many of the provider's tokens, rounded down: a limit stays one."""
        return EstimatedTokens(int(size.count / self.value))

    @property
    def far(self) -> bool:
        """Tell whether a vocabulary with this ratio is another than the provider's."""
        return self.known and not 1 / FAR <= self.value <= FAR

    @property
    def same(self) -> bool:
        """Tell whether a vocabulary with this ratio is the provider's: then it counts any text right."""
        return self.known and 1 / SAME <= self.value <= SAME

    @property
    def at_least_one(self) -> Ratio:
        """The ratio of who trusts a report only where it is more than the estimate."""
        return self if self.value >= 1 else Ratio(1.0, self.known)


UNKNOWN_RATIO = Ratio()


def ratio_of(reported: ReportedTokens, estimated: EstimatedTokens) -> Ratio:
    """Return the ratio that a report gives of the messages it covers, from 1/8 to 8; unknown outside of that.

    It is unknown for less than 200 tokens, too.
    """
    if min(estimated.count, reported.count) < FEW:
        return UNKNOWN_RATIO
    value = reported.count / estimated.count
    return Ratio(value, known=True) if LEAST <= value <= MOST else UNKNOWN_RATIO
