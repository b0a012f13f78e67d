"""Calibrates token estimates by a provider's usage report."""

from __future__ import annotations

from msgspec import Struct

from refold.models._usage_report import UsageReport, reported

__all__ = ["Calibration", "UsageReport", "calibrate", "reported"]

LEAST, MOST = 0.5, 2.5  # beyond these a report covers something else than what was estimated
FEW = 200  # a ratio of fewer tokens is mostly framing


def calibrate(estimated: int, reported: int) -> float:
    """Return by what to multiply estimates so that they meet a report; 0.5 to 2.5, 1 where either is too small."""
    if estimated < FEW or reported <= 0:
        return 1.0
    return min(MOST, max(LEAST, reported / estimated))


class Calibration(Struct, frozen=True):
    """What reports taught about estimates: a ratio, and the fixed part that no message holds.

    A report covers system prompt and tools that the estimate may not know; the growth between two reports does
    not, so from the second on the ratio is of growth alone.
    """

    ratio: float = 1.0
    fixed: int = 0
    last: tuple[int, int] | None = None

    def after(self, estimated: int, reported: int) -> Calibration:
        """Return it with one report more; `estimated` is our own figure for the messages it covers."""
        if self.last is None:
            return Calibration(calibrate(estimated, reported), 0, (estimated, reported))
        grown, reported_growth = estimated - self.last[0], reported - self.last[1]
        if grown < FEW or reported_growth <= 0:  # a compaction in between, or hardly anything new
            ratio, last = self.ratio, (self.last if grown >= 0 and reported_growth >= 0 else (estimated, reported))
        else:
            ratio, last = calibrate(grown, reported_growth), (estimated, reported)
        return Calibration(ratio, max(0, reported - round(estimated * ratio)), last)

    def estimate(self, estimated: int) -> int:
        """Return our own figure as the provider would report it: from the last report on, only growth is guessed."""
        if self.last is None:
            return estimated
        return max(0, self.last[1] + round((estimated - self.last[0]) * self.ratio))
