"""Removes the oldest messages, keeps the first exchange, and leaves a marker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.quoted_requests import SUMMARIES
from refold._condense.view_positions import (
    anchor,
    cut_after,
    last_settled_cut,
    leading,
    preserved_request,
    visible_request,
)
from refold.core.edits import Hide
from refold.core.messages import Note
from refold.core.policy import Pure, require_counts, require_shares

if TYPE_CHECKING:
    from refold.core.edits import Edit
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["Slide"]


class Slide(Pure, frozen=True):  # N06
    """Hide a share of the messages after the first `first`, an even number where cuts allow it.

    Nothing is done in a list of `skip_at` messages or fewer. System messages, leading summaries, and the last request
    are not counted and stay. With `to_goal` as many more are hidden as the goal needs. With `skip_if_met` nothing is
    done in a run that has already changed something and meets its goal.
    """

    marker: str
    share: float = 0.5  # N06
    first: int = 2  # N06
    skip_at: int = 4  # N06
    to_goal: bool = False
    skip_if_met: bool = False

    def __post_init__(self) -> None:
        require_shares(self, "share")
        require_counts(self, "first", "skip_at")

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the oldest hidden and the marker in their place."""
        if len(view.messages) - leading(view) <= self.skip_at or (
            self.skip_if_met and view.edits and view.over_goal <= 0
        ):
            return ()
        start = self._start(view)
        stop = self._stop(view, start) if start is not None else None
        if start is None or stop is None:
            return ()
        position = anchor(view, start, stop)
        stays, copies = preserved_request(view, view.messages[start:stop], visible_request(view), position)
        leaving = tuple(message.id for message in view.messages[start:stop] if message.id != stays)
        if not leaving:
            return ()
        marker = view.insert("user", self.marker, Note("marker"), before=position)
        return (marker, *copies, Hide(leaving))

    def _start(self, view: View) -> int | None:
        start = leading(view)
        while start < len(view.messages) and (note := view.messages[start].note) and note.kind in SUMMARIES:
            start += 1
        return start if not self.first and start in view.cuts else cut_after(view, start + self.first, start)

    def _stop(self, view: View, start: int) -> int | None:
        """Return the cut nearest to the wanted share from below, an even number of messages away if there is one."""
        count = int((len(view.messages) - start) * self.share)
        wanted = start + count - count % 2
        end = min(last_settled_cut(view), len(view.messages) - 1)
        cuts = [at for at in range(start + 1, end + 1) if at in view.cuts]
        if not cuts or (wanted == start and not self.to_goal):
            return None
        below = [at for at in cuts if at <= wanted]
        even = [at for at in below if (at - start) % 2 == 0]
        stop = even[-1] if even else below[-1] if below else cuts[0]
        return self._further(view, start, stop, cuts) if self.to_goal else stop

    def _further(self, view: View, start: int, stop: int, cuts: list[int]) -> int:
        request = visible_request(view)
        sizes = [
            0 if request and m.id == request.id else view.leaves(m) if m.opaques or m.id in view.stuck else size
            for m, size in zip(view.messages, view.sizes, strict=True)
        ]
        marker = view.insert("user", self.marker, Note("marker")).message
        saved = sum(sizes[start:stop]) - view.counter.message(marker)
        at = stop
        for cut in cuts:
            if cut > at and saved < view.over_goal:
                saved += sum(sizes[at:cut])
                at = cut
        return at
