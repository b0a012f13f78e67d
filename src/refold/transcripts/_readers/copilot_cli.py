"""GitHub Copilot CLI sessions: JSON lines of events, their type with a dot and their content under `data`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping
from refold.transcripts._conversation import RecordedConversation, RecordedUsage
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_TYPES = ("session.start", "user.message", "assistant.message")


def matches(document: Document) -> bool:
    """Tell by the first events of a session."""
    return any(row.get("type") in _TYPES and isinstance(row.get("data"), dict) for _, row in document.objects[:10])


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a session."""
    aside = SkippedItems()
    messages: list[Any] = []
    boundaries: list[int] = []
    usage: list[RecordedUsage] = []
    model: str | None = None
    for number, row in document.lines:
        kind = row.get("type") if isinstance(row, dict) else type(row).__name__
        payload = mapping(row).get("data")
        data: Json = mapping(payload)
        model = data.get("selectedModel") or data.get("newModel") or data.get("model") or model
        message = _message(kind, data)
        if message is not None:
            messages.append(message)
            continue
        if kind == "session.usage_record":
            usage += _usage(len(messages), data.get("usage"))
        if kind == "session.compaction_complete":
            boundaries.append(len(messages))
        aside.add(f"line of type {kind}", number)
    yield RecordedConversation(
        "copilot-cli",
        "openai-chat",
        messages,
        model=model,
        usage=tuple(usage),
        name="main",
        notes=aside.notes(),
        boundaries=tuple(boundaries),
    )


def _usage(covers: int, usage: Any) -> list[RecordedUsage]:
    """Return what a call of the conversation reports, before its answer; calls for titles and the like are others."""
    if not isinstance(usage, dict) or usage.get("interactionType", "conversation-agent") != "conversation-agent":
        return []
    prompt, completion = usage.get("inputTokens") or 0, usage.get("outputTokens") or 0
    read, write = usage.get("cacheReadTokens") or 0, usage.get("cacheWriteTokens") or 0
    return [RecordedUsage(covers, prompt, completion, read, write)] if prompt + completion else []


def _message(kind: Any, data: Json) -> Json | None:
    """Return what an event says, None where it says nothing to or from the model."""
    match kind:
        case "user.message":
            return {"role": "user", "content": data.get("transformedContent") or data.get("content") or ""}
        case "system.message" if data.get("content"):
            return {"role": "system", "content": data["content"]}
        case "assistant.message" if data.get("content") or data.get("toolRequests"):
            message: Json = {"role": "assistant", "content": data.get("content") or None}
            if calls := [_call(request) for request in data.get("toolRequests") or []]:
                message["tool_calls"] = calls
            if data.get("reasoningText"):
                message["reasoning_content"] = data["reasoningText"]
            return message
        case "tool.execution_complete":
            output = data.get("result") or data.get("error") or ""
            text = output.get("content") or output.get("message") or "" if isinstance(output, dict) else output
            return {"role": "tool", "tool_call_id": data["toolCallId"], "content": text}
    return None


def _call(request: Json) -> Json:
    values = request.get("arguments") or {}
    arguments = values if isinstance(values, str) else json.dumps(values, ensure_ascii=False)
    function = {"name": request["name"], "arguments": arguments}
    return {"id": request["toolCallId"], "type": "function", "function": function}
