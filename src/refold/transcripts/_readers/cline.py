"""Cline tasks: the messages sent to the model (`api_conversation_history.json`), or what the screen shows of them.

Also sessions of its command line from version 3 on (`NAME.messages.json`): one document with messages and their usage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping, objects
from refold.transcripts._anthropic_builder import ConversationBuilder
from refold.transcripts._conversation import RecordedConversation, RecordedUsage, usage_reports
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_MARKS = ("<task>", "<environment_details>", "<feedback>")  # what Cline writes into users' messages
_OF_THE_API = frozenset({"role", "content"})  # Cline's own fields, as `ts` and `modelInfo`, are refused by the provider
_BY_USER = frozenset({"task", "user_feedback", "user_feedback_diff"})
_ANSWERED = frozenset({"text", "completion_result", "plan_mode_respond", "followup"})
_DONE = frozenset({"tool", "command", "use_mcp_server", "browser_action"})


def matches(document: Document) -> bool:
    """Tell by users' blocks with Cline's marks, by entries of the screen that say or ask something, or by a session."""
    if _is_session(document.value):
        return True
    rows = [row for _, row in document.objects[:50]]
    return isinstance(document.value, list) and (_sent(rows) or _is_displayed(rows))


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a task; of the screen's entries it is in plain words, with what was reported."""
    if _is_session(document.value):
        yield _session(document.value["messages"])
        return
    if _sent([row for _, row in document.objects[:50]]):
        messages = [
            {key: value for key, value in row.items() if key in _OF_THE_API} if row.keys() - _OF_THE_API else row
            for row in document.value
        ]
        yield RecordedConversation("cline", "anthropic", messages, name="main")
        return
    aside = SkippedItems()
    messages, usage = [], list[RecordedUsage]()
    for row in (mapping(line) for _, line in document.lines):
        name, text = row.get(row.get("type") or ""), row.get("text")
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


def _is_session(value: object) -> bool:
    session = mapping(value)
    rows = session.get("messages")
    return (
        {"agent", "sessionId"} <= session.keys()
        and isinstance(rows, list)
        and all({"role", "content", "ts"} <= mapping(row).keys() for row in rows)
    )


def _session(rows: list[Json]) -> RecordedConversation:
    builder = ConversationBuilder()
    usage: list[RecordedUsage] = []
    model: str | None = None
    for row in rows:
        if row["role"] != "assistant":
            content = row["content"]
            builder.user([_block(block) for block in content] if isinstance(content, list) else content)
            continue
        model = (row.get("modelInfo") or {}).get("id") or model
        metrics = row.get("metrics") or {}
        usage += usage_reports(
            len(builder.messages),
            metrics.get("inputTokens") or 0,  # what came from the cache is part of it
            metrics.get("outputTokens") or 0,
            metrics.get("cacheReadTokens") or 0,
            metrics.get("cacheWriteTokens") or 0,
        )
        builder.assistant(row["content"])
    return RecordedConversation("cline", "anthropic", builder.messages, model=model, usage=tuple(usage), name="main")


def _block(block: Any) -> Any:
    """Return a block of the user's side as it is sent: a result that is a list of Cline's own as JSON text."""
    match block:
        case {"type": "tool_result", "tool_use_id": id, "content": content}:
            own = any("type" not in item for item in objects(content))
            text = json.dumps(content, ensure_ascii=False, separators=(",", ":")) if own else content
            failed = own and all(item.get("success") is False for item in objects(content))
            result = {"type": "tool_result", "tool_use_id": id, "content": text}
            return {**result, "is_error": True} if failed or block.get("is_error") else result
    return block


def _sent(rows: list[Json]) -> bool:
    return all("role" in row for row in rows) and any(
        str(block.get("text", "")).lstrip().startswith(_MARKS)
        for row in rows[:4]
        if row.get("role") == "user"
        for block in objects(row.get("content"))
    )


def _is_displayed(rows: list[Json]) -> bool:
    return bool(rows) and all(
        "ts" in row and row.get("type") in ("say", "ask") and isinstance(row.get(row["type"]), str) for row in rows
    )


def _reported(covers: int, text: Any) -> tuple[RecordedUsage, ...]:
    """Return what an entry reports of a request: its input apart from what the cache gave and took."""
    try:
        report = mapping(json.loads(text))
    except (TypeError, ValueError):
        return ()
    tokens_in, out = report.get("tokensIn") or 0, report.get("tokensOut") or 0
    read, written = report.get("cacheReads") or 0, report.get("cacheWrites") or 0
    return usage_reports(covers, tokens_in + read + written, out, read, written) if tokens_in + out else ()
