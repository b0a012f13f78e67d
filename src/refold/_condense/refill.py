"""Fills the remaining room: restores what was reduced last first, and the newest output partly if not whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._condense.placeholders import text_replaced
from refold._condense.reductions import merged, only_text, original_result, shortened_words
from refold._condense.sentences import show_sentences
from refold._condense.shorten import shorten, shortening
from refold.core.messages import Patch, Text, ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._condense.fit_draft import Draft
    from refold._condense.reduction_order import ReductionLog
    from refold._condense.reductions import Reduction
    from refold._condense.regions import Regions

__all__ = ["refill"]

# Chosen by hand: they bound the time of a refill, and what is left unused.
SLACK = 0.01  # of the goal that may stay empty
REQUESTS = 0.6  # of the room that is left, for the request that opened the work, and then for the newest
WORTH = 80  # tokens from which part of an output is worth its place
CHARS = 6  # characters of arguments that a token holds at most, as a rule
TRIES = 40  # parts of outputs and texts


def refill(draft: Draft, areas: Regions, log: ReductionLog, room: int) -> None:
    """Put back users' turns, answers that end a turn, batches and outputs, newest first, then parts, while they fit."""
    enough = room - int(room * SLACK)
    if draft.total < enough:
        show_sentences(draft, log, room)
    closing = frozenset(areas.answers)
    answers = [segment for segment in reversed(log.segments) if segment[-1] in closing]
    log.moves[:] = merged(log.moves)
    _requests_first(draft, areas, log, room)
    _show_whole(draft, [*reversed(log.users), *answers, *reversed(log.segments)], room)
    tries = TRIES
    for reduction in reversed(log.moves):
        if draft.total >= enough or not tries:
            break
        if draft.hidden[reduction.position]:
            continue
        if draft.total + reduction.saved > room or not _put_back(draft, reduction, room):
            tries -= 1
            _put_part(draft, reduction, room)
    if draft.total < enough:
        _part_of_segment(draft, log, room)


def _requests_first(draft: Draft, areas: Regions, log: ReductionLog, room: int) -> None:
    """Show more of what the first and the newest request lost, in a share of the room that is left."""
    ends = {*areas.users[:1], *areas.users[-1:]}
    for reduction in log.moves:
        if (
            reduction.position in ends
            and reduction.words
            and not (reduction.harness or draft.hidden[reduction.position])
        ):
            within = draft.total + int((room - draft.total) * REQUESTS)
            if draft.total + reduction.saved > within or not _put_back(draft, reduction, within):
                _put_part(draft, reduction, within)


def _show_whole(draft: Draft, segments: Sequence[range], room: int) -> None:
    """Show turns and batches in this order while they fit; words that stand already come last."""
    standing = {words for message in draft.remaining() if (words := only_text(message))}
    repeated: list[range] = []
    for segment in segments:
        words = only_text(draft.messages[segment[0]]) if len(segment) == 1 else ""
        if words in standing:
            repeated.append(segment)
        elif draft.total + draft.size(segment) <= room:
            draft.show(segment)
            standing.update([words] if words else [])
    for segment in repeated:
        if draft.total + draft.size(segment) <= room:
            draft.show(segment)


def _put_back(draft: Draft, reduction: Reduction, room: int) -> bool:
    """Show an output as it was before this run, if it fits; tell whether it does."""
    before = draft.changed(reduction.position, reduction.patches)
    draft.undo(reduction.position, (patch.at for patch in reduction.patches))
    if draft.total > room:
        draft.restore(reduction.position, before)
    return draft.total <= room and draft.changed(reduction.position, reduction.patches) != before


def _put_part(draft: Draft, reduction: Reduction, room: int) -> None:
    """Show as many whole lines of a cut or cleared text as there is room for, or more of cut arguments."""
    before = draft.changed(reduction.position, reduction.patches)
    words = next((part.text for part in before.values() if isinstance(part, Text)), None)
    if words is None:
        _part_of_calls(draft, reduction, room)
        return
    count = draft.view.counter.text
    limit = room - draft.total + count(words) - 2
    if limit < WORTH or not (reduction.result or reduction.words):
        return
    if reduction.harness:
        if reduction.harness.alone:
            draft.change(
                reduction.position, [Patch(reduction.patches[0].at, Text(reduction.harness.cut_to(limit, count)))]
            )
    elif reduction.result:
        draft.undo(reduction.position, before)  # so that markers of its pictures stand beside its lines
        markers = [
            part for part in draft.changed(reduction.position, reduction.patches).values() if isinstance(part, Text)
        ]
        limit -= sum(count(marker.text) + 2 for marker in markers)
        longer = shorten(original_result(draft, reduction.position, reduction.result).text, limit, count)
        draft.change(reduction.position, text_replaced(reduction.result, longer))
    else:
        limit -= count(reduction.ending) if reduction.ending else 0
        longer = shortened_words(draft, reduction.position, reduction.words, limit) + reduction.ending
        draft.change(reduction.position, [Patch(reduction.patches[0].at, Text(longer))])
    if draft.total > room:
        draft.restore(reduction.position, before)


def _part_of_calls(draft: Draft, reduction: Reduction, room: int) -> None:
    """Show more of the long arguments that were cut: the longest that fits, found by halving."""
    before = {part.at: part for part in draft.base[reduction.position].parts if isinstance(part, ToolCall)}
    calls = [call for patch in reduction.patches if (call := before.get(patch.at))]
    shorter = [shortening(call.arguments, free_text=call.kind == "custom") for call in calls]
    best = draft.changed(reduction.position, reduction.patches)
    low, high = 0, CHARS * (room - draft.total)
    while calls and high - low > CHARS * WORTH:
        chars = (low + high) // 2
        each = chars // len(calls)
        cut = [replace(call, arguments=of(each)) for call, of in zip(calls, shorter, strict=True)]
        draft.change(reduction.position, [Patch(call.at, call) for call in cut])
        if draft.total <= room:
            low, best = chars, draft.changed(reduction.position, reduction.patches)
        else:
            high = chars
    draft.restore(reduction.position, best)


def _part_of_segment(draft: Draft, log: ReductionLog, room: int) -> None:
    """Show the newest hidden message that is words alone, cut to the room there is."""
    count = draft.view.counter.text
    hidden = (segment[0] for segment in reversed(log.segments) if len(segment) == 1)
    own = (position for position in hidden if draft.base[position].role == "assistant")
    position = next((position for position in own if draft.hidden[position]), -1)
    parts = draft.messages[position].parts if position >= 0 else ()
    if len(parts) != 1 or not isinstance(parts[0], Text):
        return
    text = parts[0]
    limit = room - draft.total - (draft.sizes[position] - count(text.text)) - 2
    if limit >= WORTH:
        draft.change(position, [Patch(text.at, Text(shorten(text.text, limit, count)))])
        draft.show([position])
        if draft.total > room:
            draft.hide([position])
            draft.undo(position, [text.at])
