"""Sample conversations for `refold demo`: a long coding session, a small chat, and a task over many e-mails.

`python -m tools.sample_sessions` writes the files from a seed.
"""

from refold._samples._read import SampleConversation, conversations

__all__ = ["SampleConversation", "conversations"]
