"""Readers for the session files people have: every kind becomes conversations in a provider's own shape."""

from refold.transcripts._conversation import RecordedConversation, RecordedUsage
from refold.transcripts._reading import detect, kinds, read

__all__ = ["RecordedConversation", "RecordedUsage", "detect", "kinds", "read"]
