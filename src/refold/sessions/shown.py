"""What the model is shown now, kept from turn to turn: a longer conversation is added to, not folded again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold import formats
from refold.core.transcript import Transcript
from refold.result import folded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.core.plan import Plan
    from refold.formats import Format

__all__ = ["Shown"]


class Shown:
    """The native messages of a view. Those that stay are the same objects from call to call, so a meter knows them."""

    def __init__(self) -> None:
        self.natives: list[Any] = []
        self._folded: list[Message] = []
        self._seen = Transcript()
        self._plans: tuple[Plan, ...] = ()

    def follow(self, format: Format, transcript: Transcript, plans: Sequence[Plan]) -> list[Any]:
        """Return the view of a transcript under plans."""
        known = len(self._seen)
        same = tuple(plans) == self._plans and len(transcript) >= known
        grown = same and (known == 0 or transcript.messages[known - 1].id == self._seen.tip)
        if grown and known and _plain(self._folded):
            self._grow(format, transcript.messages[known:])
        elif not (grown and known == len(transcript)):
            self._folded = list(folded(transcript, plans))
            self.natives = formats.assemble(format, self._folded)
        self._seen, self._plans = transcript, tuple(plans)
        return self.natives

    def _grow(self, format: Format, more: Sequence[Message]) -> None:
        """Add messages that no plan knows; they stand after one that nothing was done to, so nothing is joined."""
        if more:
            self.natives += formats.assemble(format, [self._folded[-1], *more])[1:]
            self._folded += more


def _plain(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].native is not None and not messages[-1].patches
