"""Cline tasks: the messages sent to the model (`api_conversation_history.json`), or what the screen shows of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from refold.transcripts._conversation import RecordedConversation, RecordedUsage
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_MARKS = ("<task>", "<environment_details>", "<feedback>")  # what Cline writes into users' messages
_OF_THE_API = frozenset({"role", "content"})  # Cline's own fields, as `ts` and `modelInfo`, are refused by the provider
_BY_USER = frozenset({"task", "user_feedback", "user_feedback_diff"})
_ANSWERED = frozenset({"text", "completion_result", "plan_mode_respond", "followup"})
_DONE = frozenset({"tool", "command", "use_mcp_server", "browser_action"})


def matches(document: Document) -> bool:
    """Tell by users' blocks with Cline's marks, or by entries of the screen that say or ask something."""
    rows = [row for _, row in document.objects[:50]]
    return isinstance(document.value, list) and (_sent(rows) or _shown(rows))


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a task; of the screen's entries it is in plain words, with what was reported."""
    if _sent([row for _, row in document.objects[:50]]):
        messages = [
            {key: value for key, value in row.items() if key in _OF_THE_API} if row.keys() - _OF_THE_API else row
            for row in document.value
        ]
        yield RecordedConversation("cline", "anthropic", messages, name="main")
        return
    aside = SkippedItems()
    messages, usage = [], []
    for _, row in document.lines:
        name = row.get(row.get("type") or "") if isinstance(row, dict) else None
        text = row.get("text") if isinstance(row, dict) else None
        if name == "api_req_started":
            usage += _reported(len(messages), text)
        elif not isinstance(text, str) or not text or row.get("partial"):
            aside.add(f"entry of the screen, {name or 'unknown'}")
        elif name in _BY_USER:
            messages.append({"role": "user", "content": text})
        elif name in _ANSWERED | _DONE:
            messages.append({"role": "assistant", "content": text})
        else:
            aside.add(f"entry of the screen, {name}")
    yield RecordedConversation("cline", "anthropic", messages, usage=tuple(usage), name="main", notes=aside.notes())


def _sent(rows: list[dict[str, Any]]) -> bool:
    return all("role" in row for row in rows) and any(
        isinstance(block, dict) and str(block.get("text", "")).lstrip().startswith(_MARKS)
        for row in rows[:4]
        if row.get("role") == "user" and isinstance(row.get("content"), list)
        for block in row["content"]
    )


def _shown(rows: list[dict[str, Any]]) -> bool:
    return bool(rows) and all(
        "ts" in row and row.get("type") in ("say", "ask") and isinstance(row.get(row["type"]), str) for row in rows
    )


def _reported(covers: int, text: Any) -> list[RecordedUsage]:
    """Return what an entry reports of a request: its input apart from what the cache gave and took."""
    try:
        report = json.loads(text)
    except (TypeError, ValueError):
        return []
    names = ("tokensIn", "tokensOut", "cacheReads", "cacheWrites")
    tokens_in, out, given, taken = (
        (report.get(name) or 0 for name in names) if isinstance(report, dict) else (0, 0, 0, 0)
    )
    return [RecordedUsage(covers, tokens_in + given + taken, out, given, taken)] if tokens_in + out else []
