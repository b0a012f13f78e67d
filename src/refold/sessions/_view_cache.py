"""What the model is shown now, kept from turn to turn: a longer conversation is added to, not folded again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold import formats
from refold._compaction.result import fold_plans
from refold.core.edits import Insert, fold
from refold.core.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.core.plan import Plan
    from refold.formats import Format
    from refold.sessions._provenance import Provenance

__all__ = ["ViewCache"]


class ViewCache:
    """The native messages of a view. Those that stay are the same objects from call to call, so a meter knows them."""

    def __init__(self) -> None:
        self.natives: list[Any] = []
        self.messages: list[Message] = []
        self._seen = Transcript()
        self._plans: tuple[Plan, ...] = ()
        self._settings: str | None = None

    def follow(
        self, format: Format, transcript: Transcript, plans: Sequence[Plan], provenance: Provenance | None = None
    ) -> list[Any]:
        """Return the view of a transcript under plans; `provenance` is given where the model binds thinking."""
        plans, known = tuple(plans), len(self._seen)
        grown = len(transcript) >= known and (known == 0 or transcript.messages[known - 1].id == self._seen.tip)
        settings = None if provenance is None else provenance.settings
        same, more = grown and plans == self._plans and settings == self._settings, len(transcript) - known
        fresh = transcript.messages[known:]
        in_order = provenance is None or provenance.in_order(fresh, transcript, plans)
        if same and known and more and in_order and _plain(self.messages):
            self._grow(format, fresh)
        elif not (same and not more):
            newest = plans[-1] if plans and grown and not more and known and plans[:-1] == self._plans else None
            folded_on = None if newest is None or settings != self._settings else self._folded_on(newest)
            view = fold_plans(transcript, plans) if folded_on is None else folded_on
            self.messages = list(view if provenance is None else provenance.preserved(view, transcript, plans))
            self.natives = formats.assemble(format, self.messages)
        self._seen, self._plans, self._settings = transcript, plans, settings
        return self.natives

    def _folded_on(self, plan: Plan) -> tuple[Message, ...] | None:
        """Return the view under one plan more; None where that plan was made without the newest messages.

        An insert before a message that is hidden already can be placed by folding everything only.
        """
        if plan.base.length != len(self._seen):
            return None
        visible = {message.id for message in self.messages}
        for edit in plan.edits:
            if isinstance(edit, Insert):
                if edit.before is not None and edit.before not in visible:
                    return None
                visible.add(edit.message.id)
        return fold(self.messages, [plan.edits])

    def _grow(self, format: Format, more: Sequence[Message]) -> None:
        """Add messages that no plan knows; they stand after one that nothing was done to, so nothing is joined."""
        if more:
            self.natives += formats.assemble(format, [self.messages[-1], *more])[1:]
            self.messages += more


def _plain(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].native is not None and not messages[-1].patches
