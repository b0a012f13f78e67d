"""The three edits that a plan consists of, and the fold that applies plans to a transcript.

Theory of operation. A transcript is never changed. A plan is a list of edits, and a view is a fold: all edits of all
plans in force, applied to the messages in one pass. So a rewind is a fold with fewer plans, and no edit needs an
inverse.

- Edits name messages by id and parts by path, never by position: an edit means the same whatever other edits do. A path
  leads into the provider's own object, and a removed entry keeps its place until the object is written, so paths do
  not move either.
- An edit whose message is not there is void. A hidden message wins over a rewrite of it.
- An insert stands before a message, or at the end as the plan knew it (`tips`): messages that came later stand behind
  it. Several inserts at one place keep the order of the plans. An insert may stand before another insert; that is why
  placing is recursive.
- A message that no edit names comes out as the very same object, which is what makes untouched history cheap, and
  keeps a provider's cache valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold.core.messages import (
    Content,
    Message,
    MessageId,
    Part,
    Patch,
    Path,
    ToolResult,
)
from refold.errors import BadValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

__all__ = ["Edit", "Hide", "Insert", "Rewrite", "fold"]


class Rewrite(Struct, frozen=True, omit_defaults=True, tag="rewrite"):
    """The part of a message at a path becomes another part, or goes (`to=None`).

    A path that ends one past the last entry of a list appends a part.

    Raises:
        BadValue: `to` is no part of a message.
    """

    message: MessageId
    at: Path
    to: Part | None = None

    def __post_init__(self) -> None:
        if self.to is not None and not isinstance(self.to, Part):
            raise BadValue(f"a rewrite puts a part of a message, not a value of type {type(self.to).__name__}")


class Hide(Struct, frozen=True, omit_defaults=True, tag="hide"):
    """Messages leave the view; they stay in the transcript.

    Raises:
        BadValue: it hides nothing.
    """

    messages: tuple[MessageId, ...]

    def __post_init__(self) -> None:
        if not self.messages:
            raise BadValue("a Hide names at least one message: return no edit where there is nothing to hide")


class Insert(Struct, frozen=True, omit_defaults=True, tag="insert"):
    """A message of ours joins the view before another one, or at the end as the plan knew it (`before=None`)."""

    message: Message
    before: MessageId | None = None


Edit: TypeAlias = Rewrite | Hide | Insert


def fold(
    messages: Sequence[Message], edits: Iterable[Sequence[Edit]], tips: Iterable[MessageId | None] = ()
) -> tuple[Message, ...]:
    """Apply runs of edits, one run a plan, to messages in order; unknown ids are void.

    `tips` gives for each run the message after which its end inserts go (None: the end of the list).
    """
    hidden: set[MessageId] = set()
    patches: dict[MessageId, list[Patch]] = {}
    before: dict[MessageId, list[Message]] = {}
    after: dict[MessageId | None, list[Message]] = {}
    tip_of = iter(tips)
    for run in edits:
        tip = next(tip_of, None)
        for edit in run:
            match edit:
                case Rewrite(message=id, at=at, to=to):
                    patches.setdefault(id, []).append(Patch(at, to))
                case Hide(messages=ids):
                    hidden.update(ids)
                case Insert(message=message, before=None):
                    after.setdefault(tip, []).append(message)
                case Insert(message=message, before=anchor):
                    assert anchor is not None
                    before.setdefault(anchor, []).append(message)
    if not (hidden or patches or before or after):
        return tuple(messages)
    out: list[Message] = []
    for message in messages:
        id = message.id
        if id in before or id in after:
            _position(message, out, hidden, patches, before, after)
        elif id not in hidden:
            changes = patches.get(id)
            out.append(patched(message, changes) if changes else message)
    for extra in after.get(None, ()):
        _position(extra, out, hidden, patches, before, after)
    return tuple(out)


def _position(
    message: Message,
    out: list[Message],
    hidden: AbstractSet[MessageId],
    patches: Mapping[MessageId, Sequence[Patch]],
    before: Mapping[MessageId, Sequence[Message]],
    after: Mapping[MessageId | None, Sequence[Message]],
) -> None:
    """Append a message with what is inserted around it.

    A function within `fold` that called itself would be a reference cycle, which holds all messages of a conversation
    until the next search for garbage.
    """
    for extra in before.get(message.id, ()):
        _position(extra, out, hidden, patches, before, after)
    if message.id not in hidden:
        changes = patches.get(message.id)
        out.append(patched(message, changes) if changes else message)
    for extra in after.get(message.id, ()):
        _position(extra, out, hidden, patches, before, after)


def patched(message: Message, changes: Sequence[Patch]) -> Message:
    """Return the message with its parts changed; the native object is left for the format to write."""
    parts = message.parts
    for change in changes:
        parts = _put(parts, change)
    return replace(message, parts=parts, patches=(*message.patches, *changes))


def _put(parts: tuple[Part, ...], change: Patch) -> tuple[Part, ...]:
    at, to = change.at, change.to
    out: list[Part] = []
    replaced = False
    for part in parts:
        if part.at == at:
            replaced = True
            if to is not None:
                out.append(replace(to, at=at))
        elif isinstance(part, ToolResult) and any(inner.at == at for inner in part.content):
            replaced = True
            out.append(replace(part, content=_put_content(part.content, change)))
        else:
            out.append(part)
    if not replaced and to is not None:
        out.append(replace(to, at=at))
    return tuple(out)


def _put_content(content: tuple[Content, ...], change: Patch) -> tuple[Content, ...]:
    contents: list[Content] = []
    for inner in content:
        if inner.at != change.at:
            contents.append(inner)
        elif change.to is not None:
            if not isinstance(change.to, Content):
                raise BadValue(
                    f"a tool result holds text, images, files or unknown blocks, not a {type(change.to).__name__}"
                )
            contents.append(replace(change.to, at=change.at))
    return tuple(contents)
