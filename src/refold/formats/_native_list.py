"""Messages as a native list: untouched ones are the same objects, and where roles alternate neighbors are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.core.messages import Message, MessageId, Text
from refold.core.transcript import chain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.formats._registry import Format

__all__ = ["assemble", "assemble_with_sources"]

FILLER = Message(MessageId(""), "assistant", (Text("Understood."),))  # V07


def assemble(format: Format, messages: Sequence[Message], *, alternate: bool = False) -> list[Any]:
    """Return the native list of messages.

    Where the provider wants roles to alternate, neighbors of one speaker are joined into one native object, except
    two untouched ones that stood side by side in the conversation already: a list in which nothing was edited comes
    out as the very same objects. A message of which edits left nothing is not written.

    `alternate` joins all neighbors of one speaker, in any format, and has the assistant say a word between two users
    with nothing but tool traffic between them: some servers' chat templates skip that traffic and then want turns.
    """
    return assemble_with_sources(format, messages, alternate=alternate)[0]


def assemble_with_sources(
    format: Format, messages: Sequence[Message], *, alternate: bool = False
) -> tuple[list[Any], list[MessageId]]:
    """Return the native list of messages, and for each entry the id of the message that it was written from.

    An entry that was joined from several has the id of the first that a client sent, or of the first of ours.
    """
    natives: list[Any] = []
    sources: list[MessageId] = []
    newest: Any = None  # the last entry as JSON
    sent = False  # the last entry has a part that a client sent
    last: Message | None = None
    pieces = _pieces(format, messages)
    for piece in _in_turns(pieces) if alternate and not format.traits.alternates else pieces:
        written = format.write(piece)
        native = written if piece.sdk_object is None or piece.patches else piece.native
        if (
            last is not None
            and (alternate or format.traits.alternates)
            and (speaker := format.speaker(native))
            and format.speaker(newest) == speaker
            and (alternate or not _neighbors(format, last, piece))
        ):
            newest = natives[-1] = format.join(newest, native)
            if piece.native is not None and not sent:
                sources[-1], sent = piece.id, True
        else:
            natives.append(written)
            newest = native
            sources.append(piece.id)
            sent = piece.native is not None
        last = piece
    return natives, sources


def _pieces(format: Format, messages: Sequence[Message]) -> Iterator[Message]:
    for message in messages:
        if message.parts or not message.patches:
            yield from format.spread(message) if message.native is None else (message,)


def _in_turns(messages: Iterator[Message]) -> Iterator[Message]:
    """Yield messages, with a word of the assistant where a user follows tool traffic that a user began."""
    open_request, before = False, ""  # `asked`: a user spoke, and no words of the assistant came since
    for message in messages:
        if message.role == "user" and open_request and before == "tool":
            yield FILLER
        yield message
        answered = message.role == "assistant" and not message.calls
        open_request, before = message.role == "user" or (open_request and not answered), message.role


def _neighbors(format: Format, last: Message, message: Message) -> bool:
    """Tell whether two messages stood side by side from the start, which their chained ids show, and still may."""
    if last.native is None or message.native is None:
        return False
    if (last.patches or message.patches) and not format.apart(last.native, message.native):
        return False
    return message.id == chain(last.id, format.identity(message.native))
