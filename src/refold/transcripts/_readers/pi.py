"""pi sessions: JSON lines of entries, messages among them, in newer files a tree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping
from refold.transcripts._anthropic_builder import ConversationBuilder, blocks_of
from refold.transcripts._conversation import RecordedConversation, RecordedUsage, usage_reports
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

Row = tuple[int, Json]
REFUSED = re.compile(r"[^a-zA-Z0-9_-]")  # in an id, by Anthropic; of OpenAI pi joins two ids with a bar
_ROLES = ("user", "assistant", "toolResult", "bashExecution")


def matches(document: Document) -> bool:
    """Tell by the session header, or by a message in pi's own roles."""
    rows = [row for _, row in document.objects[:50]]
    if not rows:
        return False
    messages = [row["message"] for row in rows if row.get("type") == "message" and isinstance(row.get("message"), dict)]
    header = rows[0].get("type") == "session" and "cwd" in rows[0]
    return (header and (len(rows) == 1 or bool(messages))) or any(
        message.get("role") == "toolResult" or ("stopReason" in message and "usage" in message) for message in messages
    )


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a session: in a tree, the path to the newest entry."""
    aside = SkippedItems()
    session = _PiSession(aside)
    path = path_of(document.objects)
    for at, (number, row) in enumerate(document.objects):
        if at in path:
            session.take(number, row)
        else:
            aside.add("entry on a branch that was left", number)
    yield RecordedConversation(
        "pi",
        "anthropic",
        session.talk.messages,
        model=session.model,
        usage=tuple(session.usage),
        name="main",
        notes=(*session.notes, *aside.notes()),
        boundaries=tuple(session.boundaries),
    )


def path_of(rows: list[Row]) -> set[int]:
    """Return the entries from the newest one up to the root; all of them in a file without a tree."""
    places = {row["id"]: at for at, (_, row) in enumerate(rows) if isinstance(row.get("id"), str) and "parentId" in row}
    if not places:
        return set(range(len(rows)))
    path = {at for at, (_, row) in enumerate(rows) if "parentId" not in row}
    at: int | None = max(places.values())
    while at is not None and at not in path:
        path.add(at)
        at = places.get(rows[at][1].get("parentId") or "")
    return path


class _PiSession:
    """What has been read so far."""

    def __init__(self, aside: SkippedItems) -> None:
        self.talk = ConversationBuilder()
        self.aside = aside
        self.usage: list[RecordedUsage] = []
        self.notes: list[str] = []
        self.boundaries: list[int] = []
        self.model: str | None = None

    def take(self, number: int, row: Json) -> None:
        """Take in one entry."""
        message = row.get("message")
        if row.get("type") == "message" and isinstance(message, dict) and message.get("role") in _ROLES:
            self._message(number, message)
            return
        if row.get("type") == "custom_message" and (content := converted(row.get("content"))):
            self.talk.user(content)  # of an extension; pi sends it as a user's
            return
        if row.get("type") == "compaction":
            at = len(self.talk.messages)
            self.boundaries.append(at)
            self.notes.append(
                f"line {number}: compacted before message {at} ({row.get('tokensBefore', 'unknown')} tokens)"
            )
            return
        role = f"/{message.get('role')}" if isinstance(message, dict) else ""
        self.aside.add(f"line of type {row.get('type')}{role}", number)

    def _message(self, number: int, message: Json) -> None:
        content = message.get("content")
        match message["role"]:
            case "user":
                self.talk.user(content if isinstance(content, str) else converted(content))
            case "toolResult":
                self.talk.result(
                    call_id(message["toolCallId"]), converted(content), is_error=bool(message.get("isError"))
                )
            case "bashExecution":
                self._command(number, message)
            case _:
                self._answer(number, message, converted(content))

    def _command(self, number: int, message: Json) -> None:
        if message.get("excludeFromContext"):
            self.aside.add("command of the user, kept from the model", number)
            return
        end = f"\n\nCommand exited with code {code}" if (code := message.get("exitCode")) else ""
        self.talk.user(f"Ran `{message.get('command')}`\n```\n{message.get('output')}\n```{end}")

    def _answer(self, number: int, message: Json, blocks: list[Any]) -> None:
        usage = message.get("usage") or {}
        cached, written = usage.get("cacheRead") or 0, usage.get("cacheWrite") or 0
        prompt, completion = (usage.get("input") or 0) + cached + written, usage.get("output") or 0
        if completion or (usage.get("cost") or {}).get("total"):  # else a size that a compaction wrote, and no call's
            self.usage += usage_reports(len(self.talk.messages), prompt, completion, cached, written)
        self.model = message.get("model") or self.model
        if len(blocks) < len(blocks_of(message.get("content"))):
            self.aside.add("answer whose thinking has no signature, kept without it", number)
        if not blocks:
            self.aside.add(f"answer without content ({message.get('stopReason')})", number)
            return
        if message.get("stopReason") in ("aborted", "error"):
            self.aside.add(f"answer that was cut off ({message['stopReason']}), kept with its open calls", number)
        self.talk.assistant(blocks)


def call_id(id: str) -> str:
    """Return the id of a call as Anthropic takes it, the same for the same."""
    return REFUSED.sub("_", id)


def converted(content: object) -> list[Any]:
    """Return pi's content in Anthropic's shape, without thinking that no provider signed: no request can hold it."""
    blocks = [_converted_block(block) for block in blocks_of(content)]
    return [block for block in blocks if mapping(block).get("type") != "thinking" or block["signature"]]


def _converted_block(block: Any) -> Any:
    """Return pi's block in Anthropic's shape; what is unknown goes through."""
    match block:
        case {"type": "thinking"}:
            return {
                "type": "thinking",
                "thinking": block.get("thinking", ""),
                "signature": block.get("thinkingSignature") or "",
            }
        case {"type": "toolCall", "id": id, "name": name}:
            arguments = block.get("arguments")
            values = json.loads(arguments) if isinstance(arguments, str) and arguments else arguments
            return {"type": "tool_use", "id": call_id(id), "name": name, "input": values or {}}
        case {"type": "image", "data": data, "mimeType": media}:
            return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}
        case {"type": "text", "text": text} if "textSignature" in block:
            return {"type": "text", "text": text}
        case _:
            return block
