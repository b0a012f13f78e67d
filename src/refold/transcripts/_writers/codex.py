"""Codex rollouts: a `compacted` line, whose replacement history is what the next request begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.core._json import Json, mapping
from refold.transcripts._writers.base import canonical, timestamp

if TYPE_CHECKING:
    from refold.transcripts._conversation import RecordedConversation
    from refold.transcripts._source import Document
    from refold.transcripts._writers.base import WrittenCompaction

__all__ = ["continued", "entries"]

NOTHING = {
    "input_tokens": 0,
    "cached_input_tokens": 0,
    "cache_write_input_tokens": 0,
    "output_tokens": 0,
    "reasoning_output_tokens": 0,
}


def continued(document: Document, recorded: RecordedConversation) -> int:
    """Return the first item that a compaction begins with: that of the session, since the reader has them all."""
    return 0


def entries(document: Document, messages: list[Any], compaction: WrittenCompaction) -> list[Json]:
    """Return the lines that compact a rollout: the new history, and its size.

    Items that stay keep the fields that are the client's own.
    """
    rows = [row for _, row in document.objects]
    originals = {_sent(payload): payload for row in rows if (payload := _payload(row))}
    history = [originals.get(canonical(item)) or _strict(item) for item in messages]
    replacement = {"message": "", "replacement_history": history}
    lines: list[Json] = [{"timestamp": timestamp(compaction), "type": "compacted", "payload": replacement}]
    counts = [
        row["payload"]
        for row in rows
        if row.get("type") == "event_msg" and mapping(row.get("payload")).get("type") == "token_count"
    ]
    info = next((count["info"] for count in reversed(counts) if isinstance(count.get("info"), dict)), None)
    if info is not None:  # else the client takes the last count, of before, and compacts at once
        last = {**NOTHING, "total_tokens": compaction.after}
        count = {**counts[-1], "info": {**info, "last_token_usage": last}}
        lines.append({"timestamp": timestamp(compaction, 1), "type": "event_msg", "payload": count})
    ordinals = [row["ordinal"] for row in rows if isinstance(row.get("ordinal"), int)]
    if ordinals:
        for number, line in enumerate(lines, max(ordinals) + 1):
            line["ordinal"] = number
    return lines


def _payload(row: Json) -> Json | None:
    payload = row.get("payload")
    return payload if row.get("type") == "response_item" and isinstance(payload, dict) else None


def _strict(item: Json) -> Json:
    """Return an item as the client reads it: it passes over a whole line where a message's content is a string."""
    if not isinstance(item.get("content"), str):
        return item
    kind = "output_text" if item.get("role") == "assistant" else "input_text"
    return {"type": "message", **item, "content": [{"type": kind, "text": item["content"]}]}


def _sent(payload: Json) -> str:
    """Return an item as the reader gives it: without the client's own fields."""
    from refold.transcripts._readers.codex import OWN_FIELDS

    return canonical({key: value for key, value in payload.items() if key not in OWN_FIELDS})
