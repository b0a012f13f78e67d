"""Titles of conversations: the first words that a user typed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from refold import formats
from refold._text.printable import clean
from refold.core._speakers import words_of_user
from refold.core.messages import text_of
from refold.sessions._entries import Appended

if TYPE_CHECKING:
    from collections.abc import Iterable

    from refold.core.messages import Message, MessageId
    from refold.sessions import Head, Store
    from refold.sessions._entries import Entry

__all__ = ["OPENING", "first_words", "title"]

LONGEST = 72  # characters
OPENING = 8  # entries and messages in which the user is expected to have spoken, behind what the harness puts first


def title(store: Store, head: Head) -> str:
    """Return the first words of the user of a session."""
    first = head
    while first.parent:
        first = store.load(first.parent, 0, 1).head
    ids = [id for each in store.entries(first.id, ("appended",), upto=OPENING) for id in _ids(each.entry)][:OPENING]
    natives, shape = store.natives(ids, head.owner), formats.find(head.format)
    return first_words(shape.read(json.loads(natives[id]), id) for id in ids)


def first_words(messages: Iterable[Message]) -> str:
    """Return the beginning of what a user typed first; where none has typed, that of the harness's first text."""
    of_users = [message for message in messages if message.role == "user"]
    for words_of in (words_of_user, text_of):
        for message in of_users:
            if words := words_of(message).strip():
                return clean(words, LONGEST)
    return ""


def _ids(entry: Entry) -> tuple[MessageId, ...]:
    return entry.ids if isinstance(entry, Appended) else ()
