"""Plain messages of any format: a list, a request body, a message a line, or a request a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from refold.core._json import Json, mapping, objects, string
from refold.errors import UnreadableTranscript
from refold.transcripts._bodies import body_of, format_of, is_message
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_FIELDS = frozenset({"content", "parts", "name", "tool_calls", "tool_call_id"})


def matches(document: Document) -> bool:
    """Tell by a message or a body among the first rows; nothing else has to be known about the file."""
    return any(is_message(row) or body_of(mapping(row)) for _, row in document.lines[:50])


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield one conversation of a list, a body, or lines of messages; one a request of lines of requests."""
    aside = SkippedItems()
    conversations: list[RecordedConversation] = []
    messages: list[Any] = []
    for count, (number, row) in enumerate(document.lines, 1):
        body = body_of(row) if isinstance(row, dict) and not is_message(row) else None
        if body is not None:
            name = "main" if len(document.values) == 1 else f"request {count}"
            conversations.append(RecordedConversation("plain", name=name, **body))
        elif is_message(row) or _lacks_role(row):
            messages.append(row)
        elif not isinstance(row, dict) or "role" in row:
            _damaged(document, f"line {number}" if number else f"entry {count - 1}", row, aside)
        else:
            aside.add(f"object with the keys {', '.join(list(row)[:5]) or '(none)'}, no message", number)
    if messages:
        conversations.insert(
            0, RecordedConversation("plain", format_of(messages) or "openai-chat", messages, name="main")
        )
    conversations = [_with_ids(item) for item in conversations]
    for at, item in enumerate(conversations):
        yield item if at else replace(item, notes=item.notes + aside.notes())


def _lacks_role(row: object) -> bool:
    """Tell whether an object is a message but for who speaks, which is told where messages are used."""
    return isinstance(row, dict) and row.keys() <= _FIELDS and not row.keys().isdisjoint(("content", "parts"))


def _with_ids(item: RecordedConversation) -> RecordedConversation:
    """Return a chat conversation in which a tool's message without an id has that of the call it answers.

    Servers that pair by order leave the ids out: a message answers the first open call of its name, else the first.
    """
    if item.format != "openai-chat":
        return item
    open_: list[tuple[str, str]] = []
    messages: list[Any] = []
    assigned = 0
    for message in item.messages:
        if not isinstance(message, dict):
            pass  # which is refused, or left out, by its place
        elif message.get("role") == "assistant":
            open_ = list(_calls(message))
        elif message.get("role") == "tool" and (id := message.get("tool_call_id")):
            open_ = [call for call in open_ if call[0] != id]
        elif message.get("role") == "tool" and open_:
            call = next((call for call in open_ if call[1] == message.get("name")), open_[0])
            open_.remove(call)
            message = {**message, "tool_call_id": call[0]}
            assigned += 1
        messages.append(message)
    if not assigned:
        return item
    note = f"{assigned} tool messages without an id: each answers the call that stands in its place"
    return replace(item, messages=messages, notes=(*item.notes, note))


def _calls(message: Json) -> Iterator[tuple[str, str]]:
    """Yield id and name of each call of an answer."""
    for call in objects(message.get("tool_calls")):
        if id := string(call, "id"):
            yield id, str(mapping(call.get("function")).get("name", ""))


def _damaged(document: Document, place: str, row: object, aside: SkippedItems) -> None:
    """Refuse what was meant to be a message and is none, or note it where reading is lenient."""
    what = f"an object with the keys {', '.join(list(row)[:5])}" if isinstance(row, dict) else f"a {type(row).__name__}"
    if not document.lenient:
        raise UnreadableTranscript(
            f"{document.path}: {place} is no message of any format but {what}; repair or remove it, or read leniently"
        )
    aside.add(f"{place} is no message but {what}, skipped")
