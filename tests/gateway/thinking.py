"""An agent of the Messages API before a gateway, and a model that thinks; what both leave behind, looked at."""

import random

import anthropic

from refold.testing.provider import ScriptedReply
from tests.gateway.talking import opened

MODELS = {"old": "claude-sonnet-4-5-20250929", "adaptive": "claude-opus-4-8", "preserving": "claude-opus-5-5"}
TOOLS = [{"name": name, "description": "Looks.", "input_schema": {"type": "object"}} for name in ("Read", "Bash")]
LOG = "2026-01-01 12:00:{n:02} worker {dice} wrote 17 rows to orders.csv and found an ERROR in line {n}\n"


def think(received):
    """Two calls at once in every third answer, words alone in every fifth; always behind a thought."""
    number = received.number
    thought = f"Thought {number}: the quokka hides in part {number}."
    if number % 5 == 0:
        return ScriptedReply(f"Part {number} is clear.", thinking=thought)
    calls = [("Read", {"path": f"src/m{number}.py"}), ("Bash", {"command": f"grep -n part{number} src"})]
    return ScriptedReply(f"Looking at {number}.", calls[: 1 + (number % 3 == 0)], thinking=thought)


class Agent:
    """Keeps all messages as the SDK gave them, and sends them as coding agents do: marks that move, blocks, thinking."""

    def __init__(self, url, model, *, streaming=False, headers=None):
        self.model, self.streaming = model, streaming
        self.headers = headers or {}
        self.dice = random.Random(7)
        self.messages = [{"role": "user", "content": "Port the parser. Never touch legacy.py."}]
        self.system = [
            {"type": "text", "text": "You are a careful engineer."},
            {"type": "text", "text": "Tests come first.", "cache_control": {"type": "ephemeral"}},
        ]
        self.tools = TOOLS
        self.more = {}
        self.seen = []
        self.at(url)

    def at(self, url):
        self.client = opened(anthropic.Anthropic(base_url=url, api_key="k", max_retries=0))
        return self

    def arguments(self):
        manual = self.model == MODELS["old"]
        return {
            "model": self.model,
            "system": self.system,
            "tools": self.tools,
            "messages": marked(self.messages),
            "max_tokens": 1_500,
            "thinking": {"type": "enabled", "budget_tokens": 1_024} if manual else {"type": "adaptive"},
            "extra_headers": self.headers,
            "extra_body": self.more,
        }

    def ask(self):
        """Send all, take the answer, and say what follows it."""
        arguments = self.arguments()
        if self.streaming:
            with self.client.messages.stream(**arguments) as stream:
                headers, made = stream.response.headers, stream.get_final_message()
        else:
            raw = self.client.messages.with_raw_response.create(**arguments)
            headers, made = raw.headers, raw.parse()
        self.seen.append({name.lower(): value for name, value in headers.items()})
        content = [
            block.model_dump(exclude_none=True, exclude={"citations", "parsed_output"}) for block in made.content
        ]
        self.messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        reminder = {"type": "text", "text": "<system-reminder>Keep the list of tasks up to date.</system-reminder>"}
        if calls:
            results = [{"type": "tool_result", "tool_use_id": each["id"], "content": self.output()} for each in calls]
            self.messages.append({"role": "user", "content": [*results, reminder]})
        else:
            self.messages.append({"role": "user", "content": [{"type": "text", "text": "Go on."}, reminder]})
        return self.seen[-1]

    def work(self, steps):
        for _ in range(steps):
            self.ask()
        return self

    def output(self):
        return "".join(LOG.format(n=n, dice=self.dice.random()) for n in range(22))

    def branch(self, count, text):
        """Go back to an earlier message of the user's and say something else."""
        while self.messages[count - 1]["role"] != "assistant":
            count -= 1
        self.messages = [*self.messages[:count], *answers(self.messages[count - 1], text)]
        return self


def answers(message, text):
    calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": id, "content": text} for id in calls]
    return [{"role": "user", "content": [*results, {"type": "text", "text": text}]}]


def marked(messages):
    """The messages with a cache mark on the last block of the newest two of the user."""
    out = list(messages)
    for place in [place for place, message in enumerate(messages) if message["role"] == "user"][-2:]:
        content = messages[place]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        last = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
        out[place] = {**messages[place], "content": [*blocks[:-1], last]}
    return out


def thoughts(received):
    return [
        block["thinking"]
        for message in received.body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "thinking"
    ]


def clean(provider):
    """No request was refused, of whatever model."""
    assert [each.number for each in provider.received if each.status != 200] == []


def compactions(agent):
    return len({seen["x-refold-plan"] for seen in agent.seen if "x-refold-plan" in seen})


def conversation(agent):
    return agent.seen[-1]["x-refold-conversation"]
