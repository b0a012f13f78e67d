"""tau-bench results: a list of runs, each with its chat; also the benchmark's few-shot dialogues."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from refold.core._json import Json
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_TURN = re.compile(r"^(user|assistant|tool|system): ", re.M)


def matches(document: Document) -> bool:
    """Tell by runs with a `traj`, newer ones with a task and messages, or by displayed dialogues."""
    rows = [row for _, row in _runs(document)[:5]]
    return any(
        isinstance(row.get("traj"), list) or isinstance(row.get("messages_display"), str) or _is_second(row)
        for row in rows
    )


def _is_second(row: Json) -> bool:
    return isinstance(row.get("messages"), list) and "task_id" in row and ("trial" in row or "reward_info" in row)


def _runs(document: Document) -> list[tuple[int, Json]]:
    value = document.value
    if isinstance(value, dict) and isinstance(value.get("simulations"), list):  # tau2-bench
        return [(0, row) for row in value["simulations"] if isinstance(row, dict)]
    return document.objects


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
    """Return a message as sent: the second version keeps calls flat and figures of its own beside the words."""
    if "turn_idx" not in entry and "requestor" not in entry:
        return entry
    message: Json = {"role": entry["role"], "content": entry.get("content")}
    if entry["role"] == "tool":
        return {**message, "tool_call_id": entry.get("id", "")}
    if calls := entry.get("tool_calls"):
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": _text(call.get("arguments"))},
            }
            for call in calls
        ]
    return message


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)


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
