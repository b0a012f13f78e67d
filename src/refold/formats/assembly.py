"""Messages as a native list: untouched ones are the same objects, and where roles alternate neighbours are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.core.transcript import canonical, chain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.formats import Format

__all__ = ["assemble"]


def assemble(format: Format, messages: Sequence[Message]) -> list[Any]:
    """Return the native list of messages.

    Where the provider wants roles to alternate, neighbours of one speaker are joined into one native object, except
    two untouched ones that stood side by side in the conversation already: a list in which nothing was edited comes
    out as the very same objects. A message of which an edit left nothing is not written.
    """
    natives: list[Any] = []
    last: Message | None = None
    alternates = format.traits.alternates
    for message in messages:
        if message.patches and not message.parts:
            continue
        pieces = format.spread(message) if message.native is None else (message,)
        for piece in pieces:
            native = format.write(piece)
            if alternates and last is not None and _joins(format, natives[-1], native, last, piece):
                natives[-1] = format.join(natives[-1], native)
            else:
                natives.append(native)
            last = piece
    return natives


def _joins(format: Format, before: Any, native: Any, last: Message, message: Message) -> bool:
    if format.speaker(before) != format.speaker(native):
        return False
    if last.native is None or message.native is None or last.patches or message.patches:
        return True
    return message.id != chain(last.id, canonical(message.native, format.volatile))
