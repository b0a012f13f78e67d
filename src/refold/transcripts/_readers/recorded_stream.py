"""A provider's event stream, one event per line: a single response, or several in a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping
from refold.transcripts._bodies import reported
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems, type_of
from refold.transcripts._source import Document
from refold.transcripts._streams import answers

_EVENTS = (
    "message_start",
    "message_delta",
    "message_stop",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "ping",
)


def matches(document: Document) -> bool:
    """Tell by the first event of a stream."""
    return any(_is_event(row) for _, row in document.objects[:5])


def _is_event(row: Json) -> bool:
    kind = str(row.get("type", ""))
    opens = kind == "message_start" and isinstance(row.get("message"), dict)
    return (
        opens
        or kind.startswith("response.")
        or row.get("object") == "chat.completion.chunk"
        or kind == "content_block_start"
    )


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield each answer as a conversation of its own: the request is not in such a file."""
    aside = SkippedItems()
    events: list[Any] = []
    for number, row in document.lines:
        if _is_event(mapping(row)) or mapping(row).get("type") in _EVENTS:
            events.append(row)
        else:
            aside.add(f"line of type {type_of(row)}, no event of the provider", number)
    for count, answer in enumerate(answers(events), 1):
        note = "the request is not in the file, only the answer"
        yield RecordedConversation(
            "recorded-stream",
            answer.format,
            answer.messages,
            system=answer.system,
            tools=answer.tools,
            model=answer.model,
            usage=reported(0, answer.usage),
            name=f"answer {count}",
            notes=(note, *(aside.notes() if count == 1 else ())),
        )
