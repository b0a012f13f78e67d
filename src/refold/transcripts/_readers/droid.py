"""Factory Droid sessions: JSON lines of messages in Anthropic's shape after a session header."""

from __future__ import annotations

from collections.abc import Iterator

from refold.core._json import mapping
from refold.transcripts._anthropic_builder import ConversationBuilder
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems, type_of
from refold.transcripts._source import Document


def matches(document: Document) -> bool:
    """Tell by the session header, with nothing of pi's in the messages."""
    rows = [row for _, row in document.objects[:20]]
    return any(row.get("type") == "session_start" for row in rows)


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a session."""
    talk, aside = ConversationBuilder(), SkippedItems()
    for number, row in document.lines:
        message = row.get("message") if mapping(row).get("type") == "message" else None
        if not isinstance(message, dict):
            aside.add(f"line of type {type_of(row)}", number)
        elif message["role"] == "assistant":
            talk.assistant(message["content"])
        else:
            talk.user(message["content"])
    yield RecordedConversation("droid", "anthropic", talk.messages, name="main", notes=aside.notes())
