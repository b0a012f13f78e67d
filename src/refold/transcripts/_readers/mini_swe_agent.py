"""mini-swe-agent trajectories: messages as they were sent; results of the first version are plain user text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping
from refold.transcripts._bodies import format_of, reported
from refold.transcripts._conversation import RecordedConversation, RecordedUsage
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_ROLES = ("system", "developer", "user", "assistant", "tool")


def matches(document: Document) -> bool:
    """Tell by the format's name, or the agent's version next to the messages."""
    value = mapping(document.value)
    return isinstance(value.get("messages"), list) and (
        str(value.get("trajectory_format", "")).startswith("mini-swe-agent")
        or "mini_version" in mapping(value.get("info"))
    )


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a trajectory."""
    value = document.value
    aside = SkippedItems()
    messages: list[Any] = []
    usage: list[RecordedUsage] = []
    model: str | None = None
    for entry in value["messages"]:
        spoken = _messages_of(entry)
        if not spoken:
            aside.add(f"message of role {entry.get('role')}, written by the agent for its own use")
            continue
        response = mapping(mapping(entry.get("extra")).get("response")) or entry
        usage.extend(reported(len(messages), response.get("usage")))
        model = response.get("model") or model
        messages.extend(spoken)
    config = ((value.get("info") or {}).get("config") or {}).get("model") or {}
    yield RecordedConversation(
        "mini-swe-agent",
        format_of(messages) or "openai-chat",
        messages,
        model=config.get("model_name") or model,
        usage=tuple(usage),
        name="main",
        notes=aside.notes(),
    )


def _messages_of(entry: Json) -> list[Any]:
    """Return an entry as sent: without the agent's own field; a whole Responses reply as its items."""
    if isinstance(entry.get("output"), list) and entry.get("object") == "response":
        return list(entry["output"])
    if entry.get("role") not in _ROLES and entry.get("type") != "function_call_output":
        return []
    return [{key: value for key, value in entry.items() if key != "extra"}]
