"""Claude Code sessions: JSON lines that form a tree, one response in several lines, sub-agents next to the main chain.

Also the web export (one object with `loglines`) and client traces that wrap each line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from refold.core._json import Json, mapping, objects
from refold.core._speakers import COMMAND
from refold.transcripts._anthropic_builder import ConversationBuilder
from refold.transcripts._conversation import RecordedConversation, RecordedUsage, usage_reports
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document
from refold.transcripts._tree import (
    Row,
    main_chain,
    once,
    ordered,
    side_of,
    speaks,
)

WRITTEN_BACK = "msg_refold_"  # ids of answers that a compaction wrote: their usage is a size, and no call's
_LOOK = 200  # rows of another kind (snapshots, hooks, attachments) that may come before the first message


def matches(document: Document) -> bool:
    """Tell by a row whose type is its message's role."""
    return any(speaks(row) for _, row in _rows(document)[:_LOOK])


def _rows(document: Document) -> list[Row]:
    loglines = mapping(document.value).get("loglines")
    lines = [(0, row) for row in objects(loglines)] if isinstance(loglines, list) else document.objects
    return [(number, _unwrapped(row)) for number, row in lines]


def _unwrapped(row: Json) -> Json:
    """Return the session's own line out of what a client put around it."""
    content = row.get("content")
    if "type" in row or not isinstance(content, dict):
        return row
    inner = content if "type" in content else content.get("content")
    if not isinstance(inner, dict):
        return row
    if isinstance(data := inner.get("data"), dict):
        return data
    if content.get("role") == "user" and isinstance(text := inner.get("text"), str):
        return {"type": "user", "message": {"role": "user", "content": text}}
    return row


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the main chain, then every sub-agent conversation."""
    aside = SkippedItems()
    for number, value in document.lines:
        if not isinstance(value, dict):
            aside.add(f"{type(value).__name__} where an object should be", number)
    rows = ordered(once(_rows(document), aside))
    chain = main_chain(rows)
    sides: dict[str, list[Row]] = {}
    roots: dict[str, str] = {}
    main: list[Row] = []
    for at, (number, row) in enumerate(rows):
        data = mapping(row.get("data"))
        if speaks(row) and row.get("isSidechain"):
            sides.setdefault(side_of(row, roots), []).append((number, row))
        elif speaks(row) and at in chain:
            main.append((number, row))
        elif speaks(row):
            aside.add("message on a branch that was abandoned", number)
        elif data.get("type") == "agent_progress" and speaks(data.get("message") or {}):
            aside.add("progress line that holds a message of a sub-agent, given apart", number)
            sides.setdefault(f"agent {data.get('agentId') or row.get('parentToolUseID')}", []).append(
                (number, data["message"])
            )
        elif row.get("subtype") == "compact_boundary" and not row.get("isSidechain"):
            main.append((number, row))
        else:
            kind = [str(row.get("type")), row.get("subtype") or data.get("type")]
            aside.add(f"line of type {'/'.join(filter(None, kind))}", number)
    conversations = [_conversation("main", main), *(_conversation(name, lines) for name, lines in sides.items())]
    conversations = [item for item in conversations if item.messages]
    for item in conversations[:1]:
        yield replace(item, notes=item.notes + aside.notes())
    yield from conversations[1:]


def _conversation(name: str, lines: list[Row]) -> RecordedConversation:
    talk, aside = ConversationBuilder(), SkippedItems()
    usage: dict[Any, tuple[int, Json]] = {}
    boundaries: list[int] = []
    notes: list[str] = []
    model: str | None = None
    before: Json = {}
    for number, row in lines:
        previous, before = before, row
        if row.get("subtype") == "compact_boundary":
            cause = row.get("compactMetadata") or {}
            boundaries.append(len(talk.messages))
            notes.append(
                f"line {number}: compacted before message {len(talk.messages)} "
                f"({cause.get('trigger', 'cause unknown')}, {cause.get('preTokens', 'unknown')} tokens)"
            )
            continue
        message = row["message"]
        if row["type"] == "user":
            if row.get("isMeta") and _is_command(previous):
                talk.more_of_user(message["content"])
            else:
                talk.user(message["content"])
            continue
        id = message.get("id")
        at = talk.assistant(message["content"], id)
        if message.get("model") == "<synthetic>":
            aside.add("answer written by the client, not the model, kept", number)
            continue
        model = message.get("model") or model
        if isinstance(reported := message.get("usage"), dict) and not str(id).startswith(WRITTEN_BACK):
            usage[id or number] = (at, reported)
    if lines and name != "main" and lines[0][1]["type"] != "user":
        notes.append("the request that opened this conversation is not in the file")
    return RecordedConversation(
        "claude-code",
        "anthropic",
        talk.messages,
        model=model,
        usage=tuple(report for covers, figures in usage.values() for report in _reports(covers, figures)),
        name=name,
        notes=(*notes, *aside.notes()),
        boundaries=tuple(boundaries),
    )


def _is_command(row: Json) -> bool:
    """Tell whether a line is a slash command: the text it stands for, on the next line, is sent with it."""
    content = mapping(row.get("message")).get("content")
    return row.get("type") == "user" and isinstance(content, str) and f"<{COMMAND}>" in content


def _reports(covers: int, usage: Json) -> tuple[RecordedUsage, ...]:
    read, write = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    prompt = (usage.get("input_tokens") or 0) + read + write
    return usage_reports(covers, prompt, usage.get("output_tokens") or 0, read, write)
