"""Messages as a native list: untouched ones are the same objects, and where roles alternate neighbours are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.core.transcript import chain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.formats.finding import Format

__all__ = ["assemble"]


def assemble(format: Format, messages: Sequence[Message], *, alternate: bool = False) -> list[Any]:
    """Return the native list of messages.

    Where the provider wants roles to alternate, neighbours of one speaker are joined into one native object, except
    two untouched ones that stood side by side in the conversation already: a list in which nothing was edited comes
    out as the very same objects. `alternate` joins all neighbours of one speaker, in any format. A message of which
    edits left nothing is not written.
    """
    natives: list[Any] = []
    last: Message | None = None
    joins = alternate or format.traits.alternates
    for message in messages:
        if message.patches and not message.parts:
            continue
        for piece in format.spread(message) if message.native is None else (message,):
            native = format.write(piece)
            speaker = format.speaker(native) if joins and last is not None else ""
            if (
                speaker
                and last is not None
                and format.speaker(natives[-1]) == speaker
                and (alternate or not _neighbors(format, last, piece))
            ):
                natives[-1] = format.join(natives[-1], native)
            else:
                natives.append(native)
            last = piece
    return natives


def _neighbors(format: Format, last: Message, message: Message) -> bool:
    """Tell whether two untouched messages stood side by side from the start, which their chained ids show."""
    if last.native is None or message.native is None or last.patches or message.patches:
        return False
    return message.id == chain(last.id, format.identity(message.native))
