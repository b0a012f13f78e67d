"""Makes sample conversations from a seed: a long coding session, a small chat, and a task over many e-mails."""

from tools.sample_sessions.examples import conversations
from tools.sample_sessions.sized import sized

__all__ = ["conversations", "sized"]
