"""Claude Code sessions: a `compact_boundary` line, and after it the compacted messages as a chain of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.core._json import Json, listing, mapping, objects
from refold.errors import UnreadableTranscript
from refold.transcripts._anthropic_builder import blocks_of
from refold.transcripts._conversation import context_start
from refold.transcripts._readers.claude_code import WRITTEN_BACK
from refold.transcripts._tree import speaks
from refold.transcripts._writers.base import canonical, new_uuid, timestamp

if TYPE_CHECKING:
    from refold.transcripts._conversation import RecordedConversation
    from refold.transcripts._source import Document
    from refold.transcripts._writers.base import WrittenCompaction

__all__ = ["continued", "entries"]

OURS = "refold"  # in the metadata of a boundary: the plan that was written there
ENVELOPE = ("userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "slug")
EMPTY_USAGE = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
}


def continued(document: Document, recorded: RecordedConversation) -> int:
    """Return the first message that a compaction begins with: that after a boundary of ours, else all.

    What stands before a boundary of ours stands behind it once more, compacted; a boundary of the agent's own has only
    a summary behind it.
    """
    boundaries = [row for _, row in document.objects if _is_boundary(row)]
    ours = bool(boundaries) and OURS in mapping(boundaries[-1].get("compactMetadata"))
    return context_start(recorded) if ours else 0


def entries(document: Document, messages: list[Any], compaction: WrittenCompaction) -> list[Json]:
    """Return the lines that compact a session: the boundary, and the messages, a tool's result a line.

    Raises:
        UnreadableTranscript: it is the session of a sub-agent, which the client does not resume.
    """
    rows = [row for _, row in document.objects]
    last = next((row for row in reversed(rows) if speaks(row) and not row.get("isSidechain")), None)
    if last is None:
        raise UnreadableTranscript(
            "this is a sub-agent's session, which Claude Code does not resume: compact its main one"
        )
    envelope = {name: last[name] for name in ENVELOPE if name in last}
    results = {key: row for row in rows if speaks(row) for key in _single_result(row)}
    answer = next((mapping(row["message"]) for row in reversed(rows) if speaks(row) and _is_answer(row)), {})

    def line(number: int, parent: str | None, fields: Json) -> Json:
        uuid = new_uuid(compaction, last.get("sessionId"), len(rows), number)
        common = {"uuid": uuid, "timestamp": timestamp(compaction, number), **envelope}
        return {"parentUuid": parent, "isSidechain": False, **fields, **common}

    metadata = {
        "trigger": "manual",
        "preTokens": compaction.before,
        "postTokens": compaction.after,
        OURS: compaction.plan,
    }
    boundary = {
        "logicalParentUuid": last.get("uuid"),
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "isMeta": False,
        "level": "info",
        "compactMetadata": metadata,
    }
    lines = [line(0, None, boundary)]
    newest = max((at for at, each in enumerate(messages) if each["role"] == "assistant"), default=-1)
    for at, message in enumerate(messages):
        if message["role"] == "assistant":
            usage = {**EMPTY_USAGE, "input_tokens": compaction.after if at == newest else 0}
            new = [_answer_fields(message, answer, usage, new_uuid(compaction, len(rows), at))]
        else:
            new = [_user_fields(content, results) for content in _split(message["content"])]
        for fields in new:
            lines.append(line(len(lines), lines[-1]["uuid"], fields))
    if prompt := next((row for row in reversed(rows) if row.get("type") == "last-prompt"), None):
        lines.append({**prompt, "leafUuid": lines[-1]["uuid"]})
    return lines


def _answer_fields(message: Json, like: Json, usage: Json, id: str) -> Json:
    """Return a line of the assistant; `usage` of the last one is by which the client knows the size."""
    content = blocks_of(message["content"])
    calls = any(block.get("type") == "tool_use" for block in objects(content))
    fields = {
        "id": f"{WRITTEN_BACK}{id.replace('-', '')}",
        "type": "message",
        "role": "assistant",
        "model": like.get("model", "<synthetic>"),
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }
    return {"message": fields, "type": "assistant"}


def _user_fields(content: Any, results: dict[str, Json]) -> Json:
    """Return a line of the user; a result that stays as it was keeps what the client shows of it."""
    fields: Json = {"type": "user", "message": {"role": "user", "content": content}}
    blocks = listing(content)
    original = results.get(canonical(blocks[0])) if len(blocks) == 1 else None
    if original is not None and "toolUseResult" in original:
        fields["toolUseResult"] = original["toolUseResult"]
    return fields


def _split(content: Any) -> list[Any]:
    """Return the content of a user's message a result a line; what follows the last result goes with it."""
    if not isinstance(content, list):
        return [content]
    last = max((at for at, block in enumerate(content) if _is_result(block)), default=-1)
    if last < 0 or not all(map(_is_result, content[:last])):
        return [content]
    return [*([block] for block in content[:last]), content[last:]]


def _single_result(row: Json) -> list[str]:
    blocks = listing(row["message"]["content"])
    return [canonical(blocks[0])] if len(blocks) == 1 and _is_result(blocks[0]) else []


def _is_result(block: object) -> bool:
    return mapping(block).get("type") == "tool_result"


def _is_answer(row: Json) -> bool:
    return row["type"] == "assistant" and bool(row["message"].get("model") != "<synthetic>")


def _is_boundary(row: Json) -> bool:
    return row.get("subtype") == "compact_boundary" and not row.get("isSidechain")
