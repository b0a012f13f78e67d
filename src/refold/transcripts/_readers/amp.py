"""Amp threads: one document with messages in Anthropic's shape, results with Amp's own fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import listing, mapping, objects
from refold.transcripts._anthropic_builder import ConversationBuilder, blocks_of
from refold.transcripts._chat_messages import json_text
from refold.transcripts._conversation import RecordedConversation, RecordedUsage, usage_reports
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document


def matches(document: Document) -> bool:
    """Tell by messages that are numbered by `messageId`."""
    rows = listing(mapping(document.value).get("messages"))
    return any("messageId" in row and "role" in row for row in objects(rows[:3]))


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
            read, write = report.get("cacheReadInputTokens") or 0, report.get("cacheCreationInputTokens") or 0
            prompt = report.get("totalInputTokens") or (report.get("inputTokens") or 0) + read + write
            usage += usage_reports(len(talk.messages), prompt, report.get("outputTokens") or 0, read, write)
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


def _block(block: Any) -> Any:
    match block:
        case {"type": "tool_use", "id": id, "name": name}:
            return {"type": "tool_use", "id": id, "name": name, "input": block.get("input") or {}}
        case {"type": "tool_result", "toolUseID": id}:
            run = block.get("run") or {}
            output = run.get("result", run.get("error") or "")
            tool_result = {"type": "tool_result", "tool_use_id": id, "content": json_text(output)}
            return tool_result if run.get("status") in ("done", None) else {**tool_result, "is_error": True}
        case {"type": "thinking", "thinking": thinking}:
            return {"type": "thinking", "thinking": thinking, "signature": block.get("signature") or ""}
    return block
