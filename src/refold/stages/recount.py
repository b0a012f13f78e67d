"""Has the compacted request counted exactly, by the provider it will be sent to."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from refold.core.needs import CountNeed
from refold.core.policy import require_counts

if TYPE_CHECKING:
    from refold.core.edits import Edit
    from refold.core.needs import Answer, Need
    from refold.core.view import View

__all__ = ["Recount"]


class Recount(Struct, frozen=True):  # V08
    """Request an exact count of the view, by a real call of `max_tokens` or by an endpoint that counts.

    Changes nothing: the count replaces the usage report of the old messages.
    """

    grows: ClassVar[bool] = False

    max_tokens: int = 16  # V08

    def __post_init__(self) -> None:
        require_counts(self, "max_tokens", least=1)

    def needs(self, view: View) -> tuple[Need, ...]:
        """Ask for the count, in a run that has changed something."""
        return (CountNeed(view.messages, self.max_tokens),) if view.edits else ()

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return nothing: a count is not an edit."""
        return ()
