"""A scripted provider: a server on the loopback interface that real SDKs can talk to, for tests of agents."""

from refold.testing.provider._mail_agent import MailAgent, Mailbox
from refold.testing.provider._script import Answer, Behave, Fault, Received
from refold.testing.provider._server import ScriptedProvider

__all__ = ["Answer", "Behave", "Fault", "MailAgent", "Mailbox", "Received", "ScriptedProvider"]
