"""fast-agent histories: MCP messages whose calls and results are maps by call id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping
from refold.transcripts._chat_messages import function_call
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document


def matches(document: Document) -> bool:
    """Tell by calls or results that are maps, or by the template mark of each message."""
    return any(_is_message(row) for row in document.entries[:5])


def _is_message(row: object) -> bool:
    match row:
        case {"role": _, "is_template": _} | {"role": _, "tool_calls": dict()} | {"role": _, "tool_results": dict()}:
            return True
        case _:
            return False


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a history."""
    aside = SkippedItems()
    messages: list[Any] = []
    for row in document.entries:
        if "role" in mapping(row):
            messages.extend(_chat(row, aside))
        else:
            aside.add("entry without a role")
    yield RecordedConversation("fast-agent", "openai-chat", messages, name="main", notes=aside.notes())


def _chat(row: Json, aside: SkippedItems) -> Iterator[Json]:
    results = mapping(row.get("tool_results"))
    for id, result in results.items():
        yield {"role": "tool", "tool_call_id": id, "content": _content(result.get("content"))}
    calls = row.get("tool_calls")
    content = _content(row.get("content"))
    channels = row.get("channels") or {}
    for channel in channels:
        if channel != "reasoning":
            aside.add(f"channel {channel}")
    if not content and not calls:
        if not results:
            aside.add(f"message of role {row['role']} without content")
        return
    message: Json = {"role": row["role"], "content": content or None}
    if isinstance(calls, dict) and calls:
        params = {id: call.get("params") or {} for id, call in calls.items()}
        message["tool_calls"] = [
            function_call(id, each.get("name", ""), each.get("arguments") or {}) for id, each in params.items()
        ]
    reasoning = "".join(block.get("text", "") for block in channels.get("reasoning") or [])
    if reasoning and row["role"] == "assistant":
        message["reasoning_content"] = reasoning
    yield message


def _content(blocks: object) -> Any:
    """Return MCP content in chat's shape."""
    if not isinstance(blocks, list):
        return blocks
    return [_block(block) for block in blocks]


def _block(block: object) -> Any:
    match block:
        case {"type": "text", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "image", "data": data, "mimeType": media}:
            return {"type": "image_url", "image_url": {"url": f"data:{media};base64,{data}"}}
        case {"type": "resource", "resource": {"text": str(text)}}:
            return {"type": "text", "text": text}
    return block
