"""Continue sessions: a history of chat messages, each with the state of its calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, listing, mapping
from refold.transcripts._bodies import reported
from refold.transcripts._conversation import RecordedConversation, RecordedUsage
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document


def matches(document: Document) -> bool:
    """Tell by a history of items with a message and its context."""
    rows = listing(mapping(document.value).get("history"))
    return bool(rows) and {"message", "contextItems"} <= mapping(rows[0]).keys()


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a session; newer ones have the usage of each call, all of them a total."""
    aside = SkippedItems()
    messages: list[Any] = []
    usage: list[RecordedUsage] = []
    model: str | None = None
    for item in document.value["history"]:
        entry = item["message"]
        for _ in item.get("contextItems") or []:
            aside.add("context item, whose text is in the message where it was sent")
        if entry.get("role") == "thinking":
            aside.add("message of role thinking")
            continue
        if isinstance(report := entry.get("usage"), dict):
            usage.extend(reported(len(messages), report))
            model = report.get("model") or model
        message: Json = {"role": entry["role"], "content": entry.get("content")}
        if entry["role"] == "tool":
            message["tool_call_id"] = entry.get("toolCallId", "")
        if entry.get("toolCalls"):
            message["tool_calls"] = entry["toolCalls"]
        messages.append(message)
        for state in item.get("toolCallStates") or []:
            messages.extend(_result(state, aside))
    if document.value.get("usage"):
        aside.add("usage, the total of a session")
    yield RecordedConversation(
        "continue-cli", "openai-chat", messages, model=model, usage=tuple(usage), name="main", notes=aside.notes()
    )


def _result(state: Json, aside: SkippedItems) -> Iterator[Json]:
    output = state.get("output")
    if output is None:
        aside.add(f"call without a result ({state.get('status')}), kept open")
        return
    text = "\n\n".join(str(part.get("content", "")) for part in output)
    yield {"role": "tool", "tool_call_id": state["toolCallId"], "content": text}
