"""The four needs: all that a compaction can ask its caller for, as values, and the answers to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from refold.core.messages import Message

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = [
    "Answer",
    "ArchiveNeed",
    "CountNeed",
    "FileNeed",
    "Lengths",
    "Need",
    "Provided",
    "Refused",
    "Summarizer",
    "SummaryNeed",
]


class Lengths(Struct, frozen=True):
    """The most characters of each sort of part that a summarizer is shown; None for all of it."""

    text: int | None = None
    arguments: int | None = None
    result: int | None = None


class SummaryNeed(Struct, frozen=True, omit_defaults=True, tag="summarize"):
    """A summary of messages, by a model or a function.

    `text` is the transcript as fenced data, `prompt` the name of the prompt file, `instructions` the whole
    instruction text (the user's focus included), `previous` an earlier summary to update that is not part of `text`,
    `max_tokens` the longest response, `language` the language of the conversation, `lengths` how far the parts of the
    messages are shortened in `text`. With `judged`, a response that the guard rejects counts as a refusal,
    and invented identifiers are left to the stage that asks, which drops the sentences that name them.
    """

    messages: tuple[Message, ...]
    text: str
    prompt: str = ""
    instructions: str = ""
    previous: str | None = None
    max_tokens: int | None = None
    language: str = ""
    label: str = "summary"
    judged: bool = False
    lengths: Lengths | None = None


class FileNeed(Struct, frozen=True, omit_defaults=True, tag="read_file"):
    """A file's present content, cut to `max_tokens`."""

    path: str
    max_tokens: int


class ArchiveNeed(Struct, frozen=True, omit_defaults=True, tag="archive"):
    """Messages to be written somewhere safe before they leave the view."""

    messages: tuple[Message, ...]
    label: str = "transcript"


class CountNeed(Struct, frozen=True, omit_defaults=True, tag="count"):
    """The provider's own count of what will be sent."""

    messages: tuple[Message, ...]
    max_tokens: int = 16  # V08


Need: TypeAlias = SummaryNeed | FileNeed | ArchiveNeed | CountNeed


class Provided(Struct, frozen=True, omit_defaults=True, tag="given"):
    """A need was met: the text of a summary or file, the location of an archive, or a count.

    `guard` is what the guard says of a summary, empty where none has judged it.
    """

    text: str = ""
    count: int = 0
    place: str = ""
    guard: str = ""


class Refused(Struct, frozen=True, omit_defaults=True, tag="refused"):
    """A need was not met. `absent` means that no handler was passed for it."""

    reason: str
    kind: Literal["absent", "failed", "empty", "overflow", "rejected"] = "failed"

    @property
    def absent(self) -> bool:
        """Tell whether there was no handler, which is not a failure."""
        return self.kind == "absent"


Answer: TypeAlias = Provided | Refused


class Summarizer(Protocol):
    """A function, sync or async, that writes a summary; it may also return `Refused`, or raise, which is a refusal.

    Added in 0.1.0.
    """

    def __call__(self, need: SummaryNeed, /) -> str | Refused | Awaitable[str | Refused]:
        """Return the summary that the need describes."""
