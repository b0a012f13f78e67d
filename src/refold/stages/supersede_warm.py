"""Superseded output leaves a cached conversation early, but only where that is sure to pay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold.core.budget import Never
from refold.core.edits import Edit, Rewrite, patched
from refold.core.messages import Patch
from refold.core.policy import Pure, require_counts, require_shares
from refold.stages.supersede import Supersede

if TYPE_CHECKING:
    from refold.core.budget import Budget
    from refold.core.messages import MessageId
    from refold.core.view import View

__all__ = ["SupersedeWarm"]


class SupersedeWarm(Pure, frozen=True):
    """Replace what `Supersede` replaces before a compaction is due, if the coming calls pay for the cache miss.

    Removing D tokens before X others writes X again and saves D at each call: it pays after (write - read) / read * X
    / D calls. As many calls are expected as there were, but no more than until the size `at` (a share of the input
    budget) is reached, where a compaction writes all again anyway; they must be `sure` times that number. Prices are
    shares of the price of input. The newest part that pays most is changed, nothing before it.
    """

    read: float = 0.10
    write: float = 1.25
    sure: float = 2.0
    at: float = 0.8
    least: int = 2_000  # new tokens between two looks

    def __post_init__(self) -> None:
        require_shares(self, "at")
        require_counts(self, "read", "write", "sure", "least")

    def wakes(self, budget: Budget) -> int:
        """Return the new tokens between two looks."""
        return self.least

    def edits(self, view: View, answers: tuple[object, ...] = ()) -> tuple[Edit, ...]:
        """Return rewrites from one place on, or nothing."""
        calls = sum(message.role == "assistant" for message in view.messages)
        grown = sum(view.sizes)
        left = view.budget.input * self.at - view.tokens
        if not calls or left <= 0:
            return ()
        expected = min(calls, left * calls / max(grown, 1))
        superseded = _by_message(Supersede().edits(replace(view, goal=Never())), view) if expected >= self.sure else []
        best: tuple[float, int] = (0.0, len(view.messages))
        behind = saved = 0
        position = len(view.messages)
        for at, _, size in reversed(superseded):
            behind += sum(view.sizes[at:position]) - size
            saved, position = saved + size, at
            gain = expected * self.read * saved - self.sure * (self.write - self.read) * behind
            best = max(best, (gain, at), key=lambda each: each[0])
        return tuple(edit for at, edits, _ in superseded if at >= best[1] for edit in edits)


def _by_message(edits: tuple[Edit, ...], view: View) -> list[tuple[int, list[Rewrite], int]]:
    """Return place, rewrites and tokens saved of each message, in order."""
    by: dict[MessageId, list[Rewrite]] = {}
    for edit in edits:
        if isinstance(edit, Rewrite):
            by.setdefault(edit.message, []).append(edit)
    superseded = []
    for id, some in by.items():
        position = view.index[id]
        changed = patched(view.messages[position], [Patch(edit.at, edit.to) for edit in some])
        superseded.append((position, some, view.sizes[position] - view.counter.message(changed)))
    return sorted(superseded, key=lambda each: each[0])
