"""What the tests of the agent share: tools, agents on a scripted client, and their events by kind."""

from __future__ import annotations

from typing import Any

from refold.agent import Agent, tool
from refold.core.budget import Budget
from refold.handlers import Handlers
from refold.testing.client import ScriptedClient
from refold.testing.provider import ScriptedReply

FORMATS = ("openai-chat", "anthropic")


@tool
def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    return text * times


@tool
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


class Watched:
    """An agent, its client, and everything it told its observers."""

    def __init__(
        self, answers: Any = None, *, tools: Any = (echo, fail), own_model: bool = False, **named: Any
    ) -> None:
        client = {
            name: named.pop(name)
            for name in ("behave", "window", "format", "faults", "silent_truncation", "model")
            if name in named
        }
        self.client = ScriptedClient(answers, **client)
        self.events: list[Any] = []
        self.slept: list[float] = []
        options: dict[str, Any] = {"budget": Budget(100_000, 4_000), "sleep": self.slept.append} | named
        if not own_model and not {"summarize", "handlers", "settings"} & options.keys():
            options["handlers"] = Handlers()  # the script is the conversation's alone
        if "observers" in options:
            options["observers"] = (*options["observers"], self.events.append)
        else:
            options["observers"] = (self.events.append,)
        self.agent = Agent(self.client, tools=tools, **options)

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def sent(self, number: int = -1) -> list[Any]:
        """The messages of one request that was answered."""
        return [received for received in self.client.received if received.status == 200][number].body["messages"]


def calls(*texts: str, name: str = "echo") -> ScriptedReply:
    return ScriptedReply("", [(name, {"text": text} if name == "echo" else {"why": text}) for text in texts])


def results(messages: list[Any]) -> list[str]:
    """The texts of all tool results, in order, in either format."""
    found = []
    for message in messages:
        if message["role"] == "tool":
            found.append(message["content"])
        elif isinstance(message["content"], list):
            found += [part["content"] for part in message["content"] if part.get("type") == "tool_result"]
    return found
