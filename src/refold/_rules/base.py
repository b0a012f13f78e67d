"""The base of rules that no cut can break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message

__all__ = ["CutAnywhere"]


class CutAnywhere(Struct, frozen=True):
    """A rule on single messages, on ids, on neighbors, or on who speaks first.

    Neighbors that a cut makes are joined when they are written, and what a range leaves is preceded by the user's
    message that stands for the range.
    """

    def cuts(self, messages: Sequence[Message]) -> set[int]:
        """Return every position."""
        return set(range(len(messages) + 1))
