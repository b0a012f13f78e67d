"""Amp threads: one document with messages in Anthropic's shape, results with Amp's own fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from refold.transcripts._anthropic_builder import ConversationBuilder, blocks_of
from refold.transcripts._conversation import RecordedConversation, RecordedUsage
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document


def matches(document: Document) -> bool:
    """Tell by messages that are numbered by `messageId`."""
    value = document.value
    rows = value.get("messages") if isinstance(value, dict) else None
    return isinstance(rows, list) and any(
        isinstance(row, dict) and "messageId" in row and "role" in row for row in rows[:3]
    )


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a thread."""
    talk, aside = ConversationBuilder(), SkippedItems()
    usage: list[RecordedUsage] = []
    model: str | None = None
    window: int | None = None
    for row in document.value["messages"]:
        blocks = [_block(block) for block in blocks_of(row.get("content"))]
        if not blocks:
            aside.add(f"message of role {row.get('role')} without content")
        elif row["role"] == "assistant":
            told = row.get("usage") or {}
            model, window = told.get("model") or model, told.get("maxInputTokens") or window
            usage.extend(_usage(len(talk.messages), told))
            talk.assistant(blocks)
        else:
            talk.user(blocks)
    yield RecordedConversation(
        "amp",
        "anthropic",
        talk.messages,
        model=model,
        window=window,
        usage=tuple(usage),
        name="main",
        notes=aside.notes(),
    )


def _usage(covers: int, told: dict[str, Any]) -> list[RecordedUsage]:
    read, write = told.get("cacheReadInputTokens") or 0, told.get("cacheCreationInputTokens") or 0
    prompt = told.get("totalInputTokens") or (told.get("inputTokens") or 0) + read + write
    completion = told.get("outputTokens") or 0
    return [RecordedUsage(covers, prompt, completion, read, write)] if prompt + completion else []


def _block(block: Any) -> Any:
    match block:
        case {"type": "tool_use", "id": id, "name": name}:
            return {"type": "tool_use", "id": id, "name": name, "input": block.get("input") or {}}
        case {"type": "tool_result", "toolUseID": id}:
            run = block.get("run") or {}
            told = run.get("result", run.get("error") or "")
            made = {
                "type": "tool_result",
                "tool_use_id": id,
                "content": told if isinstance(told, str) else json.dumps(told, ensure_ascii=False),
            }
            return made if run.get("status") in ("done", None) else {**made, "is_error": True}
        case {"type": "thinking", "thinking": thinking}:
            return {"type": "thinking", "thinking": thinking, "signature": block.get("signature") or ""}
    return block
