"""Pictures and files leave a request that is too large in bytes; a marker says what stood there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.view_positions import unseen
from refold.core.edits import Rewrite
from refold.core.messages import File, Image, Text, ToolResult
from refold.core.policy import Pure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.edits import Edit
    from refold.core.messages import Message, Part
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["StripMedia"]


class StripMedia(Pure, frozen=True):
    """Replace every picture and file by a marker; those the model has not seen yet only where there are no others."""

    def edits(self, view: View, answers: tuple[Answer, ...] = ()) -> tuple[Edit, ...]:
        """Return a marker in the place of each picture and file."""
        seen = unseen(view)
        return tuple(_of(view.messages[:seen])) or tuple(_of(view.messages[seen:]))


def _of(messages: Sequence[Message]) -> Iterator[Edit]:
    for message in messages:
        for part in message.parts:
            inner: Sequence[Part] = part.content if isinstance(part, ToolResult) else (part,)
            for media in inner:
                if isinstance(media, (Image, File)) and media.at:
                    yield Rewrite(message.id, media.at, Text(_marker(media)))


def _marker(media: Image | File) -> str:
    match media:
        case Image():
            return "[A picture was left out: the request was too large]"
        case File(kind=kind, name=name):
            return f"[A {kind}{f' named {name}' if name else ''} was left out: the request was too large]"
