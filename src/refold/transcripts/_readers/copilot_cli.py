"""GitHub Copilot CLI sessions: JSON lines of events, their type with a dot and their content under `data`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, decoded, mapping
from refold.transcripts._chat_messages import function_call
from refold.transcripts._conversation import RecordedConversation, RecordedUsage, usage_reports
from refold.transcripts._skipped import SkippedItems, type_of
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
        kind, data = type_of(row), mapping(mapping(row).get("data"))
        model = data.get("selectedModel") or data.get("newModel") or data.get("model") or model
        message = _message(kind, data)
        if message is not None:
            messages.append(message)
            continue
        if kind == "session.usage_record":
            usage += _reports(len(messages), mapping(data.get("usage")))
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


def _reports(covers: int, usage: Json) -> tuple[RecordedUsage, ...]:
    """Return what a call of the conversation reports, before its answer; calls for titles and the like are others."""
    if usage.get("interactionType", "conversation-agent") != "conversation-agent":
        return ()
    prompt, completion = usage.get("inputTokens") or 0, usage.get("outputTokens") or 0
    read, write = usage.get("cacheReadTokens") or 0, usage.get("cacheWriteTokens") or 0
    return usage_reports(covers, prompt, completion, read, write)


def _message(kind: object, data: Json) -> Json | None:
    """Return what an event says, None where it says nothing to or from the model."""
    match kind:
        case "user.message":
            return {"role": "user", "content": data.get("transformedContent") or data.get("content") or ""}
        case "system.message" if data.get("content"):
            return {"role": "system", "content": data["content"]}
        case "assistant.message" if data.get("content") or data.get("toolRequests"):
            message: Json = {"role": "assistant", "content": data.get("content") or None}
            if requests := data.get("toolRequests"):
                message["tool_calls"] = [_call(request) for request in requests]
            if data.get("reasoningText"):
                message["reasoning_content"] = data["reasoningText"]
            return message
        case "tool.execution_complete":
            output = data.get("result") or data.get("error") or ""
            text = output.get("content") or output.get("message") or "" if isinstance(output, dict) else output
            return {"role": "tool", "tool_call_id": data["toolCallId"], "content": text}
    return None


def _call(request: Json) -> Json:
    """Return a call of a function, or of a tool that takes free text: its arguments are a text that is no JSON."""
    id, name, arguments = request["toolCallId"], request["name"], request.get("arguments") or {}
    if isinstance(arguments, str) and not isinstance(decoded(arguments), dict):
        return {"id": id, "type": "custom", "custom": {"name": name, "input": arguments}}
    return function_call(id, name, arguments)
