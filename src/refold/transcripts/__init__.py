"""Session files of agents: every kind is read into conversations in a provider's own shape; some are written back."""

from refold.transcripts._conversation import RecordedConversation, RecordedUsage
from refold.transcripts._reading import detect, kinds, read
from refold.transcripts._writing import continued, with_compaction

__all__ = [
    "RecordedConversation",
    "RecordedUsage",
    "continued",
    "detect",
    "kinds",
    "read",
    "with_compaction",
]
