"""The user's last request inside a summary of ours: how it is written there, and read back.

A summary that replaces the last request quotes it after its own words. A client that keeps no plans sends that summary
back as a message. The quotation is then all that is left of the request, so the next compaction takes it from there.
What is quoted begins at the first of the two leads: `before_quote` sees to it that the summary's words contain none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold.core.messages import Text

if TYPE_CHECKING:
    from refold.core.messages import Message

__all__ = ["LAST_REQUEST", "REQUESTED", "SUMMARIES", "before_quote", "quoted_request", "without_quote"]

SUMMARIES = frozenset({"summary", "outline", "digest"})  # kinds of notes that stand for what was said
LAST_REQUEST = "Last request from user was: "  # V05
REQUESTED = "The last request of the user, word for word:"
_LEAD = re.compile(rf"\n\n(?:{LAST_REQUEST}|{REQUESTED}\n\n)")
_IMITATED = re.compile(rf"\n+(?={LAST_REQUEST}|{REQUESTED})")
_FILES = re.compile(r"(?:\n\n<(read|modified)-files>\n[^<]*\n</\1-files>)+\Z")


def before_quote(text: str) -> str:
    """Return the text of a summary with nothing in it that reads like the beginning of the quotation."""
    return _IMITATED.sub("\n", text)


def quoted_request(message: Message) -> str:
    """Return the request that a summary of ours quotes; nothing for any other message."""
    own = message.note is not None and message.note.kind in SUMMARIES
    for part in reversed(message.parts) if own or message.note is None else ():
        if isinstance(part, Text) and (own or part.ours):
            _, *quoted = _LEAD.split(_FILES.sub("", part.text), maxsplit=1)
            if quoted:
                return quoted[0]
    return ""


def without_quote(text: str) -> str:
    """Return the text of a summary without the request that it quotes, and without what follows."""
    return _LEAD.split(text, maxsplit=1)[0]
