"""Pictures leave tool results once the model has seen them (W06)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.view_positions import unseen
from refold.core.edits import Rewrite
from refold.core.messages import Image, Text
from refold.core.policy import Pure

if TYPE_CHECKING:
    from refold.core.edits import Edit
    from refold.core.messages import Message, ToolResult
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["StripImages"]


class StripImages(Pure, frozen=True):
    """Replace the pictures of each tool result by one marker, never a second one.

    Results after the newest assistant message keep theirs: no model has seen those yet.
    """

    marker: str = "[Screenshot analyzed — image omitted from context]"  # W06

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the first picture of each result as the marker, the others gone."""
        found: list[Edit] = []
        for message in view.messages[: unseen(view)]:
            for result in message.results:
                found.extend(self._stripped(message, result))
        return tuple(found)

    def _stripped(self, message: Message, result: ToolResult) -> list[Edit]:
        images = [part for part in result.content if isinstance(part, Image)]
        marked = any(isinstance(part, Text) and self.marker in part.text for part in result.content)
        return [
            Rewrite(message.id, image.at, Text(self.marker) if number == 0 and not marked else None)
            for number, image in enumerate(images)
        ]
