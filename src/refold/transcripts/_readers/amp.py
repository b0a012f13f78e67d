"""Amp threads: one document with messages in Anthropic's shape, results with Amp's own fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping
from refold.transcripts._anthropic_builder import ConversationBuilder, blocks_of
from refold.transcripts._conversation import RecordedConversation, RecordedUsage
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document


def matches(document: Document) -> bool:
    """Tell by messages that are numbered by `messageId`."""
    value = document.value
    rows = mapping(value).get("messages")
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
            report = row.get("usage") or {}
            model, window = report.get("model") or model, report.get("maxInputTokens") or window
            usage.extend(_usage(len(talk.messages), report))
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


def _usage(covers: int, report: Json) -> list[RecordedUsage]:
    read, write = report.get("cacheReadInputTokens") or 0, report.get("cacheCreationInputTokens") or 0
    prompt = report.get("totalInputTokens") or (report.get("inputTokens") or 0) + read + write
    completion = report.get("outputTokens") or 0
    return [RecordedUsage(covers, prompt, completion, read, write)] if prompt + completion else []


def _block(block: Any) -> Any:
    match block:
        case {"type": "tool_use", "id": id, "name": name}:
            return {"type": "tool_use", "id": id, "name": name, "input": block.get("input") or {}}
        case {"type": "tool_result", "toolUseID": id}:
            run = block.get("run") or {}
            output = run.get("result", run.get("error") or "")
            tool_result = {
                "type": "tool_result",
                "tool_use_id": id,
                "content": output if isinstance(output, str) else json.dumps(output, ensure_ascii=False),
            }
            return tool_result if run.get("status") in ("done", None) else {**tool_result, "is_error": True}
        case {"type": "thinking", "thinking": thinking}:
            return {"type": "thinking", "thinking": thinking, "signature": block.get("signature") or ""}
    return block
