"""Native messages as a store takes them: JSON text that loses nothing, ids, and searchable text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from refold.core._native import as_json
from refold.core.messages import texts
from refold.errors import BadMessages
from refold.sessions._stores.protocol import StoredMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message

__all__ = ["has_late_results", "native_and_json", "searchable_text", "stored_messages"]


def native_and_json(messages: Sequence[object]) -> tuple[list[Any], list[str]]:
    """Return native objects and their JSON text; JSON text stays as it is, objects are written as ASCII.

    An object of an SDK is kept as the JSON that the SDK sends.

    Raises:
        BadMessages: it is not a list, or a message is not JSON.
    """
    if isinstance(messages, str | bytes | dict):
        raise BadMessages(f"append takes a list of messages, not one {type(messages).__name__}")
    natives, written = [], []
    for place, message in enumerate(messages):
        try:
            native, text = _native_and_json(message)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadMessages(f"message {place} cannot be stored as JSON: {error}") from error
        natives.append(native)
        written.append(text)
    return natives, written


def has_late_results(messages: Sequence[Message], start: int) -> bool:
    """Tell whether messages from a position on contain a late result.

    A result is late unless its call came after the last message of another role than assistant or tool.
    """
    recent: set[str] = set()
    place = start
    while place and messages[place - 1].role in ("assistant", "tool"):
        place -= 1
    for message in messages[place:]:
        if message.role not in ("assistant", "tool"):
            recent.clear()
        recent.update(call.call_id or call.name for call in message.calls)
        place += 1
        if place > start and any((result.call_id or result.name) not in recent for result in message.results):
            return True
    return False


def stored_messages(messages: Sequence[Message], written: Sequence[str]) -> list[StoredMessage]:
    """Return messages with their ids and searchable text, as a store takes them."""
    return [
        StoredMessage(message.id, text, searchable_text(message))
        for message, text in zip(messages, written, strict=True)
    ]


def searchable_text(message: Message) -> str:
    """Return the text of a message that a search covers: text, tool output and arguments, not reasoning."""
    return "\n".join(texts(message))


def _native_and_json(message: object) -> tuple[Any, str]:
    if isinstance(message, str | bytes):
        native = json.loads(message)
        text = message if isinstance(message, str) else message.decode()
        return native, text if text.isascii() or _is_utf8(text) else json.dumps(native)
    message = as_json(message)
    text = json.dumps(message)  # ASCII: a lone surrogate and NUL are text like any other
    # tuples, keys that are numbers, lone surrogates: the conversation is what is read back, as after a reload
    back = json.loads(text)
    return (message if back == message else back), text


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
