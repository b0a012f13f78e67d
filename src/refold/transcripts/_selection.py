"""Chooses conversations of a file that holds several, and the format of their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold import formats
from refold.errors import UnreadableTranscript, UsageError

if TYPE_CHECKING:
    from refold.transcripts._conversation import RecordedConversation

__all__ = ["selected", "with_format"]

ALL = "all"


def selected(conversations: list[RecordedConversation], select: str | None, label: str) -> list[RecordedConversation]:
    """Return the conversations that `select` names: a number from 1, a name, `all`, or None for the first.

    Raises:
        UnreadableTranscript: there is none of that name or number; the message begins with `label`.
    """
    if select is None:
        return conversations[:1]
    if select == ALL:
        return conversations
    if select.isdecimal() and 0 < int(select) <= len(conversations):
        return [conversations[int(select) - 1]]
    matching = [item for item in conversations if item.name == select]
    if matching:
        return matching[:1]
    names = ", ".join(f"{number} {item.name}" for number, item in enumerate(conversations[:12], 1))
    raise UnreadableTranscript(
        f"{label}: no conversation {select!r} in {len(conversations)} ({names}): select one of these"
    )


def with_format(conversation: RecordedConversation, named: str | None, label: str) -> RecordedConversation:
    """Return a conversation with the format that the user named; None leaves the detected one.

    Raises:
        UnknownFormat: there is no such format.
        UsageError: the messages are of another one; the message begins with `label`.
    """
    if named is None:
        return conversation
    wanted, detected = formats.find(named), formats.find(conversation.format)
    if wanted.name != detected.name and any(map(detected.recognizes, conversation.messages)):
        raise UsageError(f"{label}: these messages are {detected.name}, not {named}: leave out --format")
    return replace(conversation, format=wanted.name)
