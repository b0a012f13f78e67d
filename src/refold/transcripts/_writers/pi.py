"""pi sessions: the compacted messages as a branch of the tree, from where the conversation began.

pi's own `compaction` entry holds a summary and where the messages begin that stay as they were, so it cannot hold
messages that were shortened. A branch can, and `/tree` in pi goes back to the one that was left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.core._json import Json, mapping, objects
from refold.errors import UnreadableTranscript
from refold.transcripts._anthropic_builder import blocks_of
from refold.transcripts._readers.pi import call_id, converted, path_of
from refold.transcripts._writers.base import canonical, new_uuid, timestamp

if TYPE_CHECKING:
    from refold.transcripts._conversation import RecordedConversation
    from refold.transcripts._source import Document
    from refold.transcripts._writers.base import WrittenCompaction

__all__ = ["continued", "entries"]

SETTINGS = ("model_change", "thinking_level_change", "active_tools_change")
SPEAKERS = ("user", "assistant", "toolResult", "bashExecution")
NO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}


def continued(document: Document, recorded: RecordedConversation) -> int:
    """Return the first message that a compaction begins with: that of the newest branch, which the reader gives."""
    return 0


def entries(document: Document, messages: list[Any], compaction: WrittenCompaction) -> list[Json]:
    """Return the entries of the new branch: the settings in force, then the messages.

    Raises:
        UnreadableTranscript: the entries have no ids, as those of early versions.
    """
    rows = [row for _, row in document.objects]
    if not any("parentId" in row for row in rows):
        raise UnreadableTranscript(
            f"{document.path}: the entries of this session have no ids: open it once with pi, which adds them"
        )
    path = [rows[at] for at in sorted(path_of(document.objects)) if "parentId" in rows[at]]
    begun = next((at for at, row in enumerate(path) if _is_sent(row)), len(path))
    latest = {_setting(row): row for row in path[begun:] if _setting(row)}
    originals = _Originals([row["message"] for row in path[begun:] if _speaker(row) in SPEAKERS])
    bodies: list[Json] = [
        {key: value for key, value in row.items() if key not in ("id", "parentId", "timestamp")}
        for row in latest.values()
    ]
    newest = max((at for at, each in enumerate(messages) if each["role"] == "assistant"), default=-1)
    for at, message in enumerate(messages):
        tokens = compaction.after if at == newest else 0
        bodies += [{"type": "message", "message": each} for each in originals.restored(message, tokens)]
    taken = {row.get("id") for row in rows}
    parent = path[begun - 1]["id"] if begun else None
    lines: list[Json] = []
    for number, body in enumerate(bodies):
        id = next(
            short
            for attempt in range(1_000)
            if (short := new_uuid(compaction, len(rows), number, attempt)[:8]) not in taken
        )
        taken.add(id)
        when = timestamp(compaction, number)
        if (message := body.get("message")) and "timestamp" not in message:
            body = {**body, "message": {**message, "timestamp": int(compaction.at.timestamp() * 1000) + number}}
        lines.append({"type": body["type"], "id": id, "parentId": parent, "timestamp": when, **body})
        parent = id
    return lines


class _Originals:
    """The messages of the file, by what the reader makes of them: those that stay are written as they were."""

    def __init__(self, messages: list[Json]) -> None:
        self._results = {call_id(each["toolCallId"]): each for each in messages if each.get("role") == "toolResult"}
        self._answers = {_key(each): each for each in messages if each.get("role") == "assistant"}
        self._users = {_key(each): each for each in messages if each.get("role") == "user"}
        self._callers = {
            call_id(block["id"]): (each, block)
            for each in messages
            if each.get("role") == "assistant"
            for block in objects(each.get("content"))
            if block.get("type") == "toolCall" and "id" in block
        }
        self._last = next((each for each in reversed(messages) if each.get("role") == "assistant"), {})

    def restored(self, message: Json, tokens: int) -> list[Json]:
        """Return the messages of pi that a message stands for; `tokens` is the size that its answer reports."""
        blocks = blocks_of(message["content"])
        if message["role"] == "assistant":
            return [self._answer(blocks, tokens)]
        results = [block for block in objects(blocks) if block.get("type") == "tool_result"]
        others = [block for block in blocks if block not in results]
        words = [self._user(others)] if others else []
        return [*(self._result(block) for block in results), *words]

    def _answer(self, blocks: list[Any], tokens: int) -> Json:
        """Return an answer; its cost was paid where it was made, and is not counted again."""
        calls = [block.get("id") for block in objects(blocks) if block.get("type") == "tool_use"]
        same = self._answers.get(canonical({"content": blocks}))
        like = same or next((self._callers[id][0] for id in calls if id in self._callers), self._last)
        usage = {"input": tokens, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens, "cost": NO_COST}
        content = same["content"] if same else [self._call(_block(block)) for block in blocks]
        stop = "toolUse" if calls else "stop"
        return {**like, "role": "assistant", "content": content, "usage": usage, "stopReason": stop}

    def _call(self, block: Any) -> Any:
        """Return a block, a call with the id that it has in the file."""
        if mapping(block).get("type") != "toolCall" or block["id"] not in self._callers:
            return block
        return {**block, "id": self._callers[block["id"]][1]["id"]}

    def _result(self, block: Json) -> Json:
        id = block["tool_use_id"]
        original = self._results.get(id, {})
        content = blocks_of(block.get("content"))
        if original and converted(original.get("content")) == content:
            return original
        call = self._callers[id][1] if id in self._callers else {}
        return {
            "toolName": call.get("name", ""),
            **original,
            "role": "toolResult",
            "toolCallId": call.get("id", id),
            "content": [_block(each) for each in content],
            "isError": bool(block.get("is_error")),
        }

    def _user(self, blocks: list[Any]) -> Json:
        same = self._users.get(canonical({"content": blocks}))
        return same or {"role": "user", "content": [_block(block) for block in blocks]}


def _key(message: Json) -> str:
    return canonical({"content": converted(message.get("content"))})


def _block(block: Any) -> Any:
    """Return a block of Anthropic's in pi's shape; what is unknown goes through."""
    match block:
        case {"type": "thinking"}:
            signature = block.get("signature")
            return {"type": "thinking", "thinking": block.get("thinking", ""), "thinkingSignature": signature or ""}
        case {"type": "tool_use", "id": id, "name": name}:
            return {"type": "toolCall", "id": id, "name": name, "arguments": block.get("input") or {}}
        case {"type": "image", "source": {"type": "base64", "data": data, "media_type": media}}:
            return {"type": "image", "data": data, "mimeType": media}
        case _:
            return block


def _speaker(row: Json) -> Any:
    return mapping(row.get("message")).get("role") if row.get("type") == "message" else None


def _is_sent(row: Json) -> bool:
    return _speaker(row) in SPEAKERS or row.get("type") == "custom_message"


def _setting(row: Json) -> Any:
    return "system" if _speaker(row) == "system" else row.get("type") if row.get("type") in SETTINGS else None
