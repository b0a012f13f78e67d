"""Archives the whole conversation before any of it is removed from the view."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from refold.core import needs

if TYPE_CHECKING:
    from refold.core.edits import Edit
    from refold.core.needs import Answer, Need
    from refold.core.view import View

__all__ = ["Archive"]


class Archive(Struct, frozen=True):  # L04
    """Request that the transcript be archived; changes nothing itself, and continues without an archive.

    The originals stay in the transcript and in the plan either way.
    """

    grows: ClassVar[bool] = False

    label: str = "transcript"

    def needs(self, view: View) -> tuple[Need, ...]:
        """Ask for the messages as they were said to be written away."""
        return (needs.ArchiveNeed(view.transcript.messages, self.label),) if view.messages else ()

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return nothing: archiving is not an edit."""
        return ()
