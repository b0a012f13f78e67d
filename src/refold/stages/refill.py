"""Filling the room that is left: what gave way last comes back first, the newest output partly if not whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.core.messages import Patch, Text
from refold.stages.moves import Cleared, original_result
from refold.stages.replacing import with_words
from refold.stages.shorten import shorten

if TYPE_CHECKING:
    from refold.stages.draft import Draft
    from refold.stages.shrink import Trail

__all__ = ["refill"]

SLACK = 0.01  # of the goal that may stay empty
WORTH = 80  # tokens from which part of an output is worth its place
TRIES = 40  # parts of outputs and texts


def refill(draft: Draft, trail: Trail, room: int) -> None:
    """Put back whole users' turns, batches and outputs, newest first, then parts of outputs, while they fit."""
    enough = room - int(room * SLACK)
    for place in reversed(trail.users):
        if draft.total + draft.sizes[place] <= room:
            draft.show([place])
    for segment in reversed(trail.segments):
        if draft.total + draft.size(segment) <= room:
            draft.show(segment)
    tries = TRIES
    for cleared in reversed(trail.cleared):
        if draft.total >= enough or not tries:
            break
        if draft.hidden[cleared.place]:
            continue
        if draft.total + cleared.saved > room or not _put_back(draft, cleared, room):
            tries -= 1
            _put_part(draft, cleared, room)
    if draft.total < enough:
        _part_of_segment(draft, trail, room)


def _put_back(draft: Draft, cleared: Cleared, room: int) -> bool:
    """Show an output as it was before this run, if it fits; tell whether it does."""
    before = draft.changed(cleared.place, cleared.patches)
    draft.undo(cleared.place, before)
    if draft.total > room:
        draft.restore(cleared.place, before)
    return draft.total <= room and draft.changed(cleared.place, cleared.patches) != before


def _put_part(draft: Draft, cleared: Cleared, room: int) -> None:
    """Show as many whole lines of a cleared output as there is room for."""
    count = draft.view.counter.text
    said = original_result(draft, cleared.place, cleared.result)
    before = draft.changed(cleared.place, cleared.patches)
    if not any(isinstance(part, Text) for part in before.values()):
        return
    words = next((part.text for part in before.values() if isinstance(part, Text)), "")
    limit = room - draft.total + count(words) - 2
    if limit < WORTH:
        return
    draft.change(cleared.place, with_words(cleared.result, shorten(said.text, limit, count)))
    if draft.total > room:
        draft.restore(cleared.place, before)


def _part_of_segment(draft: Draft, trail: Trail, room: int) -> None:
    """Show the newest hidden message that is words alone, cut to the room there is."""
    count = draft.view.counter.text
    hidden = (segment[0] for segment in reversed(trail.segments) if len(segment) == 1)
    place = next((place for place in hidden if draft.hidden[place]), -1)
    parts = draft.messages[place].parts if place >= 0 else ()
    if len(parts) != 1 or not isinstance(parts[0], Text):
        return
    text = parts[0]
    limit = room - draft.total - (draft.sizes[place] - count(text.text)) - 2
    if limit >= WORTH:
        draft.change(place, [Patch(text.at, Text(shorten(text.text, limit, count)))])
        draft.show([place])
        if draft.total > room:
            draft.hide([place])
            draft.undo(place, [text.at])
