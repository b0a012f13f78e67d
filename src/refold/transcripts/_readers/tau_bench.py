"""tau-bench results: a list of runs, each with its chat; also the benchmark's few-shot dialogues."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping, objects
from refold.transcripts._chat_messages import function_call
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_TURN = re.compile(r"^(user|assistant|tool|system): ", re.M)


def matches(document: Document) -> bool:
    """Tell by runs with a `traj`, newer ones with a task and messages, or by displayed dialogues."""
    return any(_is_run(row) for _, row in _runs(document)[:5])


def _is_run(row: Json) -> bool:
    match row:
        case {"traj": list()} | {"messages_display": str()}:
            return True
        case {"messages": list(), "task_id": _, "trial": _} | {"messages": list(), "task_id": _, "reward_info": _}:
            return True
        case _:
            return False


def _runs(document: Document) -> list[tuple[int, Json]]:
    simulations = mapping(document.value).get("simulations")  # of tau2-bench
    return [(0, row) for row in objects(simulations)] if isinstance(simulations, list) else document.objects


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield one conversation a run."""
    runs = _runs(document)
    left = SkippedItems()
    for number, value in document.lines if runs is not document.value else []:
        if not isinstance(value, dict):
            left.add(f"{type(value).__name__} where a run should be", number)
    for count, (_, row) in enumerate(runs):
        aside = left if not count else SkippedItems()
        if isinstance(row.get("messages_display"), str):
            messages = _displayed(row["messages_display"], aside)
            name = f"few-shot {count + 1}"
        else:
            trajectory = row.get("traj")
            messages = [
                _message(entry) for entry in (trajectory if isinstance(trajectory, list) else row.get("messages") or [])
            ]
            name = f"run {count} (task {row.get('task_id')}, trial {row.get('trial', 0)})"
        yield RecordedConversation("tau-bench", "openai-chat", messages, name=name, notes=aside.notes())


def _message(entry: Json) -> Json:
    """Return a message as sent: the second version keeps calls flat and figures of its own next to the words."""
    if "turn_idx" not in entry and "requestor" not in entry:
        return entry
    message: Json = {"role": entry["role"], "content": entry.get("content")}
    if entry["role"] == "tool":
        return {**message, "tool_call_id": entry.get("id", "")}
    if calls := entry.get("tool_calls"):
        message["tool_calls"] = [function_call(call["id"], call["name"], call.get("arguments", {})) for call in calls]
    return message


def _displayed(text: str, aside: SkippedItems) -> list[Any]:
    """Return a displayed dialogue as messages; calls are not displayed, so results are what the other side said."""
    pieces = _TURN.split(text)[1:]
    messages: list[Any] = []
    for role, text in zip(pieces[::2], pieces[1::2], strict=True):
        text = text.removesuffix("\n")
        if role == "assistant" and text == "None":
            aside.add("answer of a call alone, which the display leaves out")
        elif role == "tool":
            aside.add("result whose call the display leaves out, given as user text")
            messages.append({"role": "user", "content": text})
        else:
            messages.append({"role": role, "content": text})
    return messages
