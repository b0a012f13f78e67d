"""Exact and calibrated token counts, image sizes, and calibration by what providers report."""

from refold._counting.calibration import Calibration, UsageReport, calibrate, reported
from refold._counting.tokenizers import ExactCounter, counter_for

__all__ = ["Calibration", "ExactCounter", "UsageReport", "calibrate", "counter_for", "reported"]
