"""LangChain messages: the state of a LangGraph thread, dumped objects, or a list of message dicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, listing, mapping
from refold.transcripts._chat_messages import function_call
from refold.transcripts._conversation import RecordedConversation, RecordedUsage, usage_reports
from refold.transcripts._skipped import SkippedItems, type_of
from refold.transcripts._source import Document

_ROLES = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "developer": "developer",
}


def matches(document: Document) -> bool:
    """Tell by messages that carry LangChain's type instead of a role."""
    rows = _messages(document)
    return bool(rows) and any(_is_message(row) for row in rows[:5])


def _is_message(row: object) -> bool:
    return type_of(row) in _ROLES and "content" in mapping(row) and "role" not in mapping(row)


def _messages(document: Document) -> list[Any]:
    value = document.value
    rows: Any = [row for _, row in document.lines]
    if isinstance(value, dict):
        for key in ("values", "channel_values", "kwargs", "state"):
            value = value[key] if isinstance(value.get(key), dict) and "messages" in value[key] else value
        rows = value.get("messages") or value.get("history") or [value]
    return [_loaded(row) for row in listing(rows)]


def _loaded(row: Any) -> Any:
    """Return the fields of a dumped object; `{type, data}` is the older form of the same."""
    match row:
        case {"lc": _, "kwargs": dict(fields)}:
            kind = str((row.get("id") or [""])[-1]).removesuffix("Message").removesuffix("MessageChunk").lower()
            return {"type": kind, **fields}
        case {"type": str(kind), "data": dict(fields)}:
            return {"type": kind, **fields}
    return row


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a thread."""
    aside = SkippedItems()
    messages: list[Any] = []
    usage: list[RecordedUsage] = []
    model: str | None = None
    for row in _messages(document):
        if not _is_message(row):
            aside.add(f"message of type {type_of(row)}")
            continue
        figures = mapping(row.get("usage_metadata"))
        if figures.get("input_tokens"):
            details = figures.get("input_token_details") or {}
            usage += usage_reports(
                len(messages),
                figures["input_tokens"],
                figures.get("output_tokens") or 0,
                details.get("cache_read") or 0,
                details.get("cache_creation") or 0,
            )
        model = (row.get("response_metadata") or {}).get("model_name") or model
        messages.append(_chat(row))
    yield RecordedConversation(
        "langgraph", "openai-chat", messages, model=model, usage=tuple(usage), name="main", notes=aside.notes()
    )


def _chat(row: Json) -> Json:
    role = _ROLES[row["type"]]
    content = row["content"]
    message: Json = {"role": role, "content": content}
    if role == "tool":
        return {"role": role, "tool_call_id": row.get("tool_call_id") or "", "content": content}
    if role != "assistant":
        return message
    more = row.get("additional_kwargs") or {}
    calls = [
        function_call(call.get("id") or "", call["name"], call.get("args") or {})
        for call in row.get("tool_calls") or []
    ] or more.get("tool_calls")
    if calls and isinstance(content, list):
        # Anthropic's blocks hold the same calls a second time
        message["content"] = [block for block in content if mapping(block).get("type") != "tool_use"]
    if calls:
        message["tool_calls"] = calls
    if isinstance(more.get("reasoning_content"), str):
        message["reasoning_content"] = more["reasoning_content"]
    return message
