"""Removes images and files: from tool results the model has seen, or from a request that is too large in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.view_positions import first_unseen
from refold.core.edits import Rewrite
from refold.core.messages import File, Image, Text, ToolResult
from refold.core.policy import Pure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.edits import Edit
    from refold.core.messages import Message, Part
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["StripImages", "StripMedia"]


class StripImages(Pure, frozen=True):
    """Replace the images of each tool result by one marker, never a second one.

    Results after the newest assistant message keep theirs, because no model has seen them yet.
    """

    marker: str = "[Screenshot analyzed — image omitted from context]"  # W06

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the first image of each result as the marker, the others removed."""
        return tuple(
            edit
            for message in view.messages[: first_unseen(view)]
            for result in message.results
            for edit in self._stripped(message, result)
        )

    def _stripped(self, message: Message, result: ToolResult) -> list[Edit]:
        images = [part for part in result.content if isinstance(part, Image)]
        marked = any(isinstance(part, Text) and self.marker in part.text for part in result.content)
        return [
            Rewrite(message.id, image.at, Text(self.marker) if number == 0 and not marked else None)
            for number, image in enumerate(images)
        ]


class StripMedia(Pure, frozen=True):
    """Replace every image and file by a marker; those the model has not seen yet only if there are no others."""

    def edits(self, view: View, answers: tuple[Answer, ...] = ()) -> tuple[Edit, ...]:
        """Return a marker in the place of each image and file."""
        seen = first_unseen(view)
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
