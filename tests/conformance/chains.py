"""Chains of compactions, as a client that keeps no plans has them, and one that keeps them."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from refold import compact

TASK = "Count the parts of the harbour crane, and touch no other file."
FORMATS = ("openai-chat", "openai-responses", "anthropic", "gemini")
WORDS = "out " + "word " * 800


def user(format: str, text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]} if format == "gemini" else {"role": "user", "content": text}


def step(format: str, number: int) -> list[dict[str, Any]]:
    """A call of a tool and its result."""
    id, arguments = f"c{number}", {"path": f"f{number}.py"}
    match format:
        case "anthropic":
            result = {"type": "tool_result", "tool_use_id": id, "content": WORDS}
            call = {"type": "tool_use", "id": id, "name": "read_file", "input": arguments}
            return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        case "gemini":
            result = {"functionResponse": {"id": id, "name": "read_file", "response": {"output": WORDS}}}
            call = {"functionCall": {"id": id, "name": "read_file", "args": arguments}}
            return [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
        case "openai-responses":
            call = {"type": "function_call", "call_id": id, "name": "read_file", "arguments": json.dumps(arguments)}
            return [call, {"type": "function_call_output", "call_id": id, "output": WORDS}]
        case _:
            function = {"name": "read_file", "arguments": json.dumps(arguments)}
            call = {"id": id, "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            return [message, {"role": "tool", "tool_call_id": id, "content": WORDS}]


def chained(policies: tuple[str, ...], format: str, *, plans: bool, task: str = TASK, **more: Any) -> list[Any]:
    """Let one policy after another compact one turn that goes on for ever; return the results."""
    numbers, messages, results = count(1), [user(format, task)], []
    for policy in policies:
        messages = messages + [native for _ in range(4) for native in step(format, next(numbers))]
        active = results[-1].plans if plans and results else ()
        result = compact(messages, policy=policy, format=format, force=True, window=6_000, plans=active, **more)
        messages = messages if plans else result.messages
        results.append(result)
    return results


def times(result: Any, text: str) -> int:
    """How often a text stands in the messages of a result."""
    return json.dumps(result.messages, ensure_ascii=False).count(json.dumps(text, ensure_ascii=False)[1:-1])
