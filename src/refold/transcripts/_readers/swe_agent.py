"""SWE-agent trajectories: the history as sent where it is whole, else the steps that were taken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping, objects, string
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_ELIDED = re.compile(
    r"^\s*Old (environment )?output", re.I
)  # what a history processor leaves in place of an observation
_NO_OUTPUT = "Your command ran successfully and did not produce any output."  # what the agent says instead
_KEEP = ("role", "content", "name", "tool_calls", "thinking_blocks", "reasoning_content")


def matches(document: Document) -> bool:
    """Tell by a trajectory of actions and observations."""
    value = document.value
    steps = mapping(value).get("trajectory")
    return isinstance(steps, list) and (
        any(isinstance(step, dict) and {"action", "observation"} <= step.keys() for step in steps[:3])
        or (not steps and "history" in value)
    )


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield one conversation for each agent that speaks in the file, the first to speak first."""
    value = document.value
    history = objects(value.get("history"))
    steps = value["trajectory"]
    aside = SkippedItems()
    config = mapping(mapping(value.get("replay_config")).get("agent"))
    model = string(mapping(config.get("model")), "name") or None
    if not _is_whole(history, steps):
        yield RecordedConversation(
            "swe-agent", "openai-chat", _built(history, steps, aside), model=model, name="main", notes=aside.notes()
        )
        return
    agents: dict[str, list[Any]] = {}
    for entry in history:
        for message in _message(entry, aside):
            agents.setdefault(str(entry.get("agent", "main")), []).append(message)
    for at, (agent, messages) in enumerate(agents.items()):
        yield RecordedConversation(
            "swe-agent",
            "openai-chat",
            messages,
            model=model,
            name=agent if len(agents) > 1 else "main",
            notes=() if at else aside.notes(),
        )


def _is_whole(history: list[Json], steps: list[Any]) -> bool:
    """Whether the history holds every step, with no observation taken out by a history processor."""
    answers = sum(entry.get("role") == "assistant" and not entry.get("is_demo") for entry in history)
    elided = any(_ELIDED.match(string(entry, "content")) for entry in history)
    return bool(history) and answers >= len(steps) and not elided


def _message(entry: Json, aside: SkippedItems) -> Iterator[Json]:
    """Yield a history entry as messages: a tool entry that answers several calls is one message a call."""
    if "role" not in entry:
        aside.add("history entry without a role")
        return
    message = {key: entry[key] for key in _KEEP if entry.get(key) is not None}
    message.setdefault("content", None)
    ids = entry.get("tool_call_ids") or []
    if entry["role"] != "tool" or not ids:
        yield message
        return
    for at, id in enumerate(ids):
        yield {"role": "tool", "tool_call_id": id, "content": message["content"] if not at else ""}


def _built(history: list[Json], steps: list[Any], aside: SkippedItems) -> list[Any]:
    """Put the conversation together from its steps, after the messages that opened it."""
    opening: list[Json] = []
    first = steps[0].get("query") or steps[0].get("messages") if steps else None
    for entry in first if isinstance(first, list) else history:
        if entry.get("role") == "assistant" and not entry.get("is_demo"):
            break
        opening.extend(_message(entry, aside))
    messages: list[Any] = opening
    for step in steps:
        calls, ids = step.get("tool_calls"), step.get("tool_call_ids") or []
        answer = {"role": "assistant", "content": step.get("response") or step.get("thought") or ""}
        messages.append({**answer, "tool_calls": calls} if calls and ids else answer)
        observation = step.get("observation") or ""
        if calls and ids:
            messages.extend(
                {"role": "tool", "tool_call_id": id, "content": "" if at else observation} for at, id in enumerate(ids)
            )
        else:
            messages.append({"role": "user", "content": f"OBSERVATION:\n{observation}" if observation else _NO_OUTPUT})
        aside.add("step whose observation is given in the agent's usual frame")
    return messages
