"""Sample conversations made from a seed: a long coding session, a small chat, and a task over many e-mails."""

from refold.demo.examples import Example, conversations
from refold.demo.sized import sized

__all__ = ["Example", "conversations", "sized"]
