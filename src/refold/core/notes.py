"""How a message of ours is known again when a client sends it back as one of its own.

A note lives beside a message and never inside the native object, so a list that was compacted and is sent again has
lost it. Our texts begin with openings of their own; a message with nothing but such a text gets its note back. Only a
user's or a system message is looked at: text from tools never becomes a note.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold.core.messages import Message, Note, Text

if TYPE_CHECKING:
    from refold.core.messages import NoteKind

__all__ = ["OPENINGS", "recovered"]

OPENINGS: dict[str, NoteKind] = {
    "[Digest of earlier messages: background, not a new request]": "digest",
    "[Compaction Summary]": "summary",  # W10
    "[Compaction Notice:": "notice",  # W10
    "[Conversation summary": "summary",  # O09
    "[Conversation compressed]": "summary",  # L04
    "Previous conversation summary:": "summary",  # N05
    "[Earlier conversation history was truncated": "marker",  # N06
    "[Older messages were left out here": "marker",
}
_OPENINGS = tuple(OPENINGS)
_LAST_REQUEST = "\n\nLast request from user was: "  # V05: this summary has no opening, but always this end
_FILES = re.compile(r"<(read|modified)-files>\n(.*?)\n</\1-files>", re.S)  # O06, O10


def recovered(message: Message) -> Message:
    """Return the message with its note, where its only part is a text that opens as ours do."""
    if len(message.parts) != 1 or message.role not in ("user", "system"):
        return message
    part = message.parts[0]
    if not isinstance(part, Text) or not (part.text.startswith(_OPENINGS) or _LAST_REQUEST in part.text):
        return message
    kind: NoteKind = next((OPENINGS[opening] for opening in _OPENINGS if part.text.startswith(opening)), "summary")
    files = {which: tuple(names.split("\n")) for which, names in _FILES.findall(part.text)}
    return replace(message, note=Note(kind, files.get("read", ()), files.get("modified", ())))
