"""Titles of stored sessions: the first words of the user."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from refold import formats
from refold._text.printable import clean
from refold.core.messages import text_of
from refold.sessions._entries import Appended

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.core.messages import MessageId
    from refold.sessions import Head, Store
    from refold.sessions._entries import Entry

__all__ = ["title"]

LONGEST = 72  # characters
OPENING = 4  # entries and messages in which the user is expected to have spoken


def title(store: Store, head: Head, opened: Callable[[str], str] = str) -> str:
    """Return the first words of the first user message of a session; `opened` decrypts what the store holds."""
    first = head
    while first.parent:
        first = store.load(first.parent, 0, 1).head
    ids = [id for each in store.entries(first.id, ("appended",), upto=OPENING) for id in _ids(each.entry)][:OPENING]
    natives, shape = store.natives(ids, head.owner), formats.find(head.format)
    for id in ids:
        message = shape.read(json.loads(opened(natives[id])), id)
        if message.role == "user" and (words := text_of(message).strip()):
            return clean(words, LONGEST)
    return ""


def _ids(entry: Entry) -> tuple[MessageId, ...]:
    return entry.ids if isinstance(entry, Appended) else ()
