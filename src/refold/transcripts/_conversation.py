"""The result of a reader: conversations, and the usage that the provider reported."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from refold.core.budget import Usage

__all__ = ["RecordedConversation", "RecordedUsage", "beginning_at", "context_start", "last_report"]


class RecordedUsage(Struct, frozen=True):
    """One usage report of the provider, in tokens.

    `covers` is how many leading messages were in the prompt of that call (the reply is not among
    them); `prompt` is all input, what the cache gave or took included.
    """

    covers: int
    prompt: int
    completion: int
    cache_read: int = 0
    cache_write: int = 0


def usage_reports(
    covers: int, prompt: int, completion: int, cache_read: int = 0, cache_write: int = 0
) -> tuple[RecordedUsage, ...]:
    """Return the figures of one call as a report, none where they are all zero."""
    return (RecordedUsage(covers, prompt, completion, cache_read, cache_write),) if prompt + completion else ()


class RecordedConversation(Struct, frozen=True):
    """One conversation found in a file, as the model saw it and ready to be sent.

    `kind` is the reader's name and `format` the shape of `messages` (openai-chat, openai-responses,
    anthropic, gemini, bedrock). `name` tells several conversations of one file apart. `notes` says
    what was left aside and why. `boundaries` are the indexes of the messages from which on the
    model no longer saw what came before, because the session had been compacted there; with
    `earlier_stays` it was still sent parts of that, as it is after a compaction of refold.
    """

    kind: str
    format: str
    messages: list[Any]
    system: Any = None
    tools: list[Any] | None = None
    model: str | None = None
    window: int | None = None
    usage: tuple[RecordedUsage, ...] = ()
    name: str = ""
    path: str = ""
    notes: tuple[str, ...] = ()
    boundaries: tuple[int, ...] = ()
    earlier_stays: bool = False


def context_start(conversation: RecordedConversation) -> int:
    """Return the first message that the model still sees: that after the session's last compaction."""
    return 0 if conversation.earlier_stays else max(conversation.boundaries, default=0)


def beginning_at(conversation: RecordedConversation, start: int) -> RecordedConversation:
    """Return a conversation without its first messages, and with the reports that cover what is left."""
    usage = tuple(replace(each, covers=each.covers - start) for each in conversation.usage if each.covers >= start)
    later = tuple(at - start for at in conversation.boundaries if at > start)
    return replace(conversation, messages=conversation.messages[start:], usage=usage, boundaries=later)


def last_report(conversation: RecordedConversation) -> Usage | None:
    """Return the provider's last report, None where it does not cover all messages from the first one on.

    After a compaction of the session's own it does not: `beginning_at` its `context_start` it does again.
    """
    if not conversation.usage or conversation.boundaries:
        return None
    last = conversation.usage[-1]
    return Usage(last.prompt, last.completion, last.cache_read, last.covers)
