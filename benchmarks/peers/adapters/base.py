"""What a row of the table has to offer. Runs inside the environment of its family, with the standard library alone."""

from __future__ import annotations

from typing import Any

Messages = list[dict[str, Any]]  # in the shape of OpenAI's chat completions

# What every summarizer answers: 400 tokens without a single identifier.
SUMMARY = "The work so far was looked into step by step, and the findings were compared with what was expected. " * 20
SUMMARY_TOKENS = 420


class Peer:
    """A way to compact. `load` and `dump` convert and are not timed; `compact` is one pass by the peer's own count."""

    name = ""
    family = ""  # its environment; "" is the one that runs the benchmark
    budgeted = True  # whether it can be told a number of tokens
    models = False  # whether it asks a summarizer
    note = ""

    def load(self, messages: Messages) -> Any:
        """Return a conversation in the peer's own types."""
        return messages

    def compact(self, native: Any, budget: int) -> Any:
        """Return the conversation after one pass that aims at a number of tokens."""
        raise NotImplementedError

    def dump(self, native: Any) -> Messages:
        """Return what came out as messages."""
        found: Messages = native
        return found


def apart(messages: Messages) -> tuple[Messages, Messages]:
    """Return the system messages, and the others."""
    system = [message for message in messages if message["role"] == "system"]
    return system, [message for message in messages if message["role"] != "system"]


def called(call: dict[str, Any]) -> tuple[str, str, str]:
    """Return id, name and arguments of a tool call."""
    return call["id"], call["function"]["name"], call["function"]["arguments"]


def calling(id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a tool call."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(text: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a message of the assistant."""
    return {"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})


def tool(id: str, text: str) -> dict[str, Any]:
    """Return the result of a tool call."""
    return {"role": "tool", "tool_call_id": id, "content": text}
