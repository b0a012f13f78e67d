"""Recorded HTTP traffic of a client (nock): a list of requests and responses."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from refold.core._json import Json
from refold.transcripts._bodies import body_of, reported
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document
from refold.transcripts._streams import AssembledReply, answer_of, whole


def matches(document: Document) -> bool:
    """Tell by the fields of a recorded exchange."""
    rows = document.objects
    return bool(rows) and all({"method", "path", "response"} <= row.keys() for _, row in rows[:5])


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield one conversation a model call: the request where it was recorded, and the answer."""
    aside = SkippedItems()
    conversations: list[RecordedConversation] = []
    for _, row in document.objects:
        body, answer = whole(row.get("body")), answer_of(row["response"])
        sent = body_of(body) if isinstance(body, dict) else None
        if answer is None and sent is None:
            aside.add(f"exchange with {row['method']} {row['path']}, no call of a model")
            continue
        conversations.append(_exchange(f"answer {len(conversations) + 1}", sent, answer))
    for at, item in enumerate(conversations):
        yield item if at else replace(item, notes=item.notes + aside.notes())


def _exchange(name: str, sent: Json | None, answer: AssembledReply | None) -> RecordedConversation:
    if answer is None:
        return RecordedConversation("http-recording", name=name, notes=("the request has no answer",), **(sent or {}))
    if sent is None or sent["format"] != answer.format:
        note = "the request was not recorded, only the answer"
        return RecordedConversation(
            "http-recording",
            answer.format,
            answer.messages,
            model=answer.model,
            usage=reported(0, answer.usage),
            name=name,
            notes=(note,),
        )
    fields = {**sent, "messages": [*sent["messages"], *answer.messages], "model": answer.model or sent["model"]}
    return RecordedConversation(
        "http-recording", name=name, usage=reported(len(sent["messages"]), answer.usage), **fields
    )
