"""How a message of ours is known again when a client sends it back as one of its own.

A note is stored next to a message, never inside the native object, so a list that was compacted and is sent again has
lost it. Our texts begin with openings of their own: a message with nothing but such a text gets its note back, and one
that was joined with a user's words has that part marked as ours. Only a user's or a system message is looked at: text
from tools never becomes a note.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold.core.messages import Message, Note, Text

if TYPE_CHECKING:
    from refold.core.messages import NoteKind, Part

__all__ = ["OPENINGS", "recovered"]

OPENINGS: dict[str, NoteKind] = {
    "[Digest of earlier messages: background, not a new request]": "digest",
    "[Compaction Summary]": "summary",  # W10
    "[Compaction Notice:": "notice",  # W10
    "[Conversation summary — older messages were compacted]": "summary",  # O09
    "[Conversation summary — everything before it was compacted]": "summary",  # V05
    "[Conversation compressed]": "summary",  # L04
    "Previous conversation summary:": "summary",  # N05
    "[Earlier conversation history was truncated": "marker",  # N06
    "[Older messages were left out here": "marker",
    "[Older messages were left out to make room]": "marker",
    "[The user speaks: turn ": "notice",
    "[Not the user: ": "notice",
}
_OPENINGS = tuple(OPENINGS)
_FILES = re.compile(r"<(read|modified)-files>\n(.*?)\n</\1-files>", re.S)  # O06, O10


def recovered(message: Message) -> Message:
    """Return the message with its note, or with the parts of our making marked, where there are any."""
    if message.role not in ("user", "system"):
        return message
    kinds = [_kind(part) for part in message.parts]
    if not any(kinds):
        return message
    kind = "summary" if "summary" in kinds else kinds[0]
    if kind is not None and all(kinds) and ("digest" not in kinds or kinds.count("digest") == len(kinds)):
        text = "\n".join(part.text for part in message.parts if isinstance(part, Text))
        files = {which: tuple(names.split("\n")) for which, names in _FILES.findall(text)}
        return replace(message, note=Note(kind, files.get("read", ()), files.get("modified", ())))
    parts = (
        replace(part, ours=True) if kind is not None and isinstance(part, Text) else part
        for part, kind in zip(message.parts, kinds, strict=True)
    )
    return replace(message, parts=tuple(parts))


def _kind(part: Part) -> NoteKind | None:
    if not isinstance(part, Text):
        return None
    return next((OPENINGS[opening] for opening in _OPENINGS if part.text.startswith(opening)), None)
