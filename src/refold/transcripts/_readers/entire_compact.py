"""Entire's condensed sessions: JSON lines where a call holds its result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json
from refold.transcripts._anthropic_builder import ConversationBuilder
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document


def matches(document: Document) -> bool:
    """Tell by the version, the agent and the content of a line."""
    rows = document.objects
    return bool(rows) and {"v", "agent", "type", "content"} <= rows[0][1].keys()


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a session. The lines' token figures leave the cache out, so they are no usage."""
    talk, aside = ConversationBuilder(), SkippedItems()
    results: list[tuple[str, Json]] = []
    answer: Any = None
    for number, row in document.objects:
        kind, content = row.get("type"), row.get("content")
        if kind == "assistant" and row.get("id") == answer and answer is not None:
            results += _answer(talk, row, aside, number)
            continue
        _flush(talk, results)
        answer = row.get("id") if kind == "assistant" else None
        if kind == "assistant":
            results = _answer(talk, row, aside, number)
        elif kind == "user":
            talk.user(content if isinstance(content, str) else [_block(block) for block in content or []])
        else:
            aside.add(f"line of type {kind}", number)
        if "input_tokens" in row:
            aside.add("token figure that leaves the cache out", number)
    _flush(talk, results)
    yield RecordedConversation("entire-compact", "anthropic", talk.messages, name="main", notes=aside.notes())


def _answer(talk: ConversationBuilder, row: Json, aside: SkippedItems, number: int) -> list[tuple[str, Json]]:
    content = row.get("content")
    blocks: list[Any] = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    talk.assistant([{key: value for key, value in block.items() if key != "result"} for block in blocks], row.get("id"))
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    for block in calls:
        if "result" not in block:
            aside.add("call without a result, kept open", number)
    return [(block["id"], block["result"]) for block in calls if "result" in block]


def _flush(talk: ConversationBuilder, results: list[tuple[str, Json]]) -> None:
    """Give the results once the answer is whole, all of them in one message."""
    for id, result in results:
        fields = result if isinstance(result, dict) else {"output": result}
        talk.result(id, fields.get("output") or "", is_error=fields.get("status") == "error")
    results.clear()


def _block(block: Any) -> Any:
    match block:
        case {"text": text} if "type" not in block:
            return {"type": "text", "text": text}
        case _:
            return block
