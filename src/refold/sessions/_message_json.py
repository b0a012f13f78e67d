"""Native messages as they are handed in, as what a store keeps: JSON text that loses nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from refold.core.messages import texts
from refold.errors import BadMessages
from refold.sessions._stores.protocol import StoredMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message

__all__ = ["answers_late", "given", "received", "words_in"]


def given(messages: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """Return native objects and their JSON text; JSON text is kept as it is, objects are written as ASCII.

    Raises:
        BadMessages: no list, or a message that is not JSON.
    """
    if isinstance(messages, str | bytes | dict):
        raise BadMessages(f"append takes a list of messages, not one {type(messages).__name__}")
    natives, written = [], []
    for place, message in enumerate(messages):
        try:
            native, text = _given(message)
        except (TypeError, ValueError, RecursionError) as error:
            how = "; give its .model_dump(exclude_none=True)" if hasattr(message, "model_dump") else ""
            raise BadMessages(f"message {place} cannot be kept as JSON: {error}{how}") from error
        natives.append(native)
        written.append(text)
    return natives, written


def answers_late(messages: Sequence[Message], start: int) -> bool:
    """Tell whether messages from a position on hold a result of a call that was not just made.

    In time are the calls since the last message that is neither a result nor the assistant's.
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


def received(messages: Sequence[Message], written: Sequence[str]) -> list[StoredMessage]:
    """Return messages with their ids and words, as a store takes them."""
    return [StoredMessage(message.id, text, words_in(message)) for message, text in zip(messages, written, strict=True)]


def words_in(message: Message) -> str:
    """Return what a search over a message looks through: words, tool output and arguments, not reasoning."""
    return "\n".join(texts(message))


def _given(message: Any) -> tuple[Any, str]:
    if isinstance(message, str | bytes):
        native = json.loads(message)
        text = message if isinstance(message, str) else message.decode()
        return native, text if text.isascii() or _clean(text) else json.dumps(native)
    text = json.dumps(message)  # ASCII: half a surrogate pair and NUL are text like any other
    # tuples, keys that are numbers, halves of one sign: the conversation is what is read back, here as after a reload
    back = json.loads(text)
    return (message if back == message else back), text


def _clean(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
