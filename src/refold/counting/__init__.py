"""Exact and calibrated token counts, sizes of pictures, and what providers report."""

from refold.counting.exact import ExactCounter, counter_for
from refold.counting.usage import Calibration, Reported, calibrate, reported

__all__ = ["Calibration", "ExactCounter", "Reported", "calibrate", "counter_for", "reported"]
