"""Sample conversations made from a seed: a long coding session, a small chat, and a task over many e-mails."""

from refold._demo.examples import Example, conversations
from refold._demo.sized import sized

__all__ = ["Example", "conversations", "sized"]
