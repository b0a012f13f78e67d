"""Readers for the session files people have: every kind becomes conversations in a provider's own shape."""

from refold.transcripts.reading import detect, kinds, read
from refold.transcripts.recorded import Recorded, Reported

__all__ = ["Recorded", "Reported", "detect", "kinds", "read"]
