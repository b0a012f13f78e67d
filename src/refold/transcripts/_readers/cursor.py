"""Cursor agent transcripts: JSON lines of a role and a message; calls have no ids and results are not stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems, type_of
from refold.transcripts._source import Document


def matches(document: Document) -> bool:
    """Tell by lines with a role outside the message and none of a type."""
    return any(_speaks(row) for _, row in document.objects[:5])


def _speaks(row: Json) -> bool:
    return row.get("role") in ("user", "assistant") and "content" in mapping(row.get("message"))


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a session, in Gemini's shape: the only one with calls that have no id."""
    aside = SkippedItems()
    contents: list[Json] = []
    for number, row in document.lines:
        if not _speaks(mapping(row)):
            aside.add(f"line of type {type_of(row)}", number)
            continue
        content = row["message"]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        parts = [part for block in blocks for part in _part(block, aside, number)]
        if parts:
            contents.append({"role": "user" if row["role"] == "user" else "model", "parts": parts})
    yield RecordedConversation("cursor", "gemini", contents, name="main", notes=aside.notes())


def _part(block: Any, aside: SkippedItems, number: int) -> Iterator[Json]:
    match block:
        case {"type": "text", "text": text}:
            yield {"text": text}
        case {"type": "tool_use", "name": name}:
            aside.add("call whose result the file does not keep, kept open", number)
            yield {"functionCall": {"name": name, "args": block.get("input") or {}}}
        case {"type": "tool_result"}:
            output = block.get("content")
            yield {"functionResponse": {"name": block.get("name") or "", "response": {"output": output}}}
        case _:
            aside.add(f"block of type {type_of(block)}", number)
