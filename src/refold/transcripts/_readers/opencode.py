"""opencode sessions: one document in which a call and its result are one part of a response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping, string
from refold.transcripts._anthropic_builder import ConversationBuilder
from refold.transcripts._conversation import RecordedConversation, RecordedUsage, usage_reports
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document


def matches(document: Document) -> bool:
    """Tell by messages that are made of `info` and `parts`."""
    rows = document.entries
    return any(_is_message(row) for row in rows[:5])


def _is_message(row: object) -> bool:
    return isinstance(row, dict) and isinstance(row.get("info"), dict) and isinstance(row.get("parts"), list)


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a session."""
    session = _OpenCodeSession()
    for row in document.entries:
        if not _is_message(row):
            session.aside.add("entry without info and parts")
        elif row["info"].get("role") == "user":
            session.user_message(row)
        else:
            session.answered(row["info"], row["parts"])
    yield RecordedConversation(
        "opencode",
        "anthropic",
        session.talk.messages,
        model=session.model,
        usage=tuple(session.usage),
        name="main",
        notes=(*session.notes, *session.aside.notes()),
        boundaries=tuple(session.boundaries),
    )


class _OpenCodeSession:
    """What has been read so far."""

    def __init__(self) -> None:
        self.talk = ConversationBuilder()
        self.aside = SkippedItems()
        self.usage: list[RecordedUsage] = []
        self.notes: list[str] = []
        self.boundaries: list[int] = []
        self.model: str | None = None
        self._ids: dict[str, int] = {}

    def user_message(self, row: Json) -> None:
        """Take in a user message."""
        blocks: list[Any] = []
        for part in row["parts"]:
            block = _file(part) if part.get("type") == "file" else None
            if part.get("type") == "text" and not part.get("ignored"):
                blocks.append({"type": "text", "text": part.get("text", "")})
            elif block is not None:
                blocks.append(block)
            else:
                self.aside.add(
                    f"user part of type {part.get('type')}{', which is not sent' if part.get('ignored') else ''}"
                )
        if blocks:
            self.talk.user(blocks)
        elif not row["parts"]:
            self.aside.add("user message without parts")

    def answered(self, info: Json, parts: list[Any]) -> None:
        """Take in an answer: every step of it is a call of the model, with its results after it."""
        self.model = info.get("modelID") or self.model
        if info.get("summary") is True:
            self.boundaries.append(len(self.talk.messages))
            self.notes.append(f"compacted before message {len(self.talk.messages)}, which is the summary")
        start = len(self.usage)
        step: list[Any] = []
        for part in parts:
            if part.get("type") == "step-start" and step:
                self._step(step, None)
                step = []
            if part.get("type") == "step-finish":
                self._step(step, part.get("tokens"))
                step = []
            else:
                step.append(part)
        self._step(step, info.get("tokens") if len(self.usage) == start else None)
        if info.get("error"):
            self.aside.add(f"answer that ended in {(info['error'] or {}).get('name', 'an error')}")

    def _step(self, parts: list[Any], tokens: object) -> None:
        self._count(tokens)
        blocks: list[Any] = []
        results: list[tuple[str, Json]] = []
        for part in parts:
            match part.get("type"):
                case "text":
                    blocks.append({"type": "text", "text": part.get("text", "")})
                case "reasoning" if signature := _signature(part):
                    blocks.append({"type": "thinking", "thinking": part.get("text", ""), "signature": signature})
                case "reasoning":
                    self.aside.add("reasoning without Anthropic's signature, which its messages cannot hold")
                case "tool":
                    id, state = self._id(part["callID"]), part.get("state") or {}
                    blocks.append(
                        {"type": "tool_use", "id": id, "name": part["tool"], "input": state.get("input") or {}}
                    )
                    results.append((id, state))
                case kind:
                    self.aside.add(f"part of type {kind}")
        if blocks:
            self.talk.assistant(blocks)
        for id, state in results:
            self._result(id, state)

    def _id(self, id: str) -> str:
        """Return an id that no earlier call has: call and result are one part here, so files get away with repeats."""
        self._ids[id] = count = self._ids.get(id, 0) + 1
        if count == 1:
            return id
        self.aside.add("call with the id of an earlier one, numbered to tell them apart")
        return f"{id}_{count}"

    def _result(self, call_id: str, state: Json) -> None:
        if state.get("status") == "error":
            self.talk.result(call_id, state.get("error") or "", is_error=True)
        elif "output" in state:
            pictures = [block for block in map(_file, state.get("attachments") or []) if block]
            text = state["output"]
            self.talk.result(call_id, [{"type": "text", "text": text}, *pictures] if pictures else text)
        else:
            self.aside.add(f"call without a result ({state.get('status')}), kept open")

    def _count(self, tokens: object) -> None:
        tokens = mapping(tokens)
        cache = tokens.get("cache") or {}
        read, write = cache.get("read") or 0, cache.get("write") or 0
        prompt, completion = (tokens.get("input") or 0) + read + write, tokens.get("output") or 0
        self.usage += usage_reports(len(self.talk.messages), prompt, completion, read, write)


def _signature(part: Json) -> str:
    """Return the signature of Claude's thinking, from whichever provider it came; other models have none."""
    signatures = (string(mapping(each), "signature") for each in mapping(part.get("metadata")).values())
    return next(filter(None, signatures), "")


def _file(part: Json) -> Json | None:
    """Return a picture or PDF whose bytes travel with the session; other files are in the session as text."""
    url = str(part.get("url") or "")
    media, _, data = url.removeprefix("data:").partition(";base64,")
    if not url.startswith("data:") or not data:
        return None
    if media.startswith("image/"):
        return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}
    if media == "application/pdf":
        return {"type": "document", "source": {"type": "base64", "media_type": media, "data": data}}
    return None
