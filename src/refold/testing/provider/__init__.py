"""A scripted provider: a server on the loopback interface that real SDKs can talk to, for tests of agents."""

from refold.testing.provider._mail_agent import MailAgent, Mailbox
from refold.testing.provider._script import Behave, Fault, ReceivedRequest, ScriptedReply
from refold.testing.provider._server import ScriptedProvider

__all__ = ["Behave", "Fault", "MailAgent", "Mailbox", "ReceivedRequest", "ScriptedProvider", "ScriptedReply"]
