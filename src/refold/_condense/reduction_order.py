"""The order in which a fit reduces a view: the least valuable content first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.reductions import (
    Reduction,
    clear_harness,
    clear_results,
    cut_results,
    cut_texts,
    drop_reasoning,
    hide_repeats,
    hide_segments,
    hide_users,
    shorten_calls,
    strip_images,
    strip_seen_images,
)
from refold._condense.regions import opens_turn
from refold._condense.sentences import cut_to_sentences
from refold.core._speakers import is_recap, speech

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._condense.fit_draft import Draft
    from refold._condense.regions import Regions
    from refold.core.view import View

__all__ = ["ROOMY", "ReductionLog", "goal_of_whole_request", "reduce_parts", "shrink", "stays_whole"]

# Chosen by hand: a text of 400 tokens still reads as a text, one of 48 as a hint of what was there.
ROOMY, TIGHT = 400, 48  # tokens to which one text is cut, at first and at last
SHORT = 80  # characters of a long argument or an output in the newest batch, at last
NEWEST = 0.3  # of the goal: what the newest request has whole, for no output and no digest is worth a sentence of it
# Of what fixed content leaves of a goal: the rest is for the first request, the digest, and the newest output.
LARGEST = 0.7


class ReductionLog(Struct):
    """What a fit has done that can be taken back, each in the order it was done."""

    moves: list[Reduction] = []
    segments: list[range] = []
    users: list[range] = []


def shrink(draft: Draft, areas: Regions, target: int, users: int, log: ReductionLog) -> None:
    """Make the draft smaller until it meets the target; `users` is what users' turns may have in tokens.

    `log` takes down what was done.

    First pictures that were answered, all but the newest: they are the dearest and the model has said what it saw.
    Old: output, arguments, reasoning, pictures, errors, whole batches. Then users beyond their share, the largest
    of the newest part, the rest of it, older users' turns, the newest batch, and at the very last users' words. The
    newest request, where it is not long, is cut only if even a view without a digest would be too large.
    """
    every = range(len(draft.base))
    old, newer = range(areas.tail), range(areas.tail, len(every))
    strip_seen_images(draft, areas.fresh)
    calm = [position for position in newer if position not in areas.fresh]
    reduce_parts(draft, old, target, log, areas)
    log.segments += hide_segments(draft, areas, old, target)
    log.segments += hide_segments(draft, areas, old, target, inner=True)
    log.users += hide_repeats(draft, areas, target)
    _limit_users(draft, areas, target, users, log)
    log.moves += cut_results(draft, newer, target, ROOMY)
    log.moves += shorten_calls(draft, newer, target, areas.loop)
    log.moves += cut_texts(draft, _assistants(draft, every), target, ROOMY)
    reduce_parts(draft, calm, target, log, areas)
    log.segments += hide_segments(draft, areas, every, target)
    log.segments += hide_segments(draft, areas, every, target, inner=True)
    log.users += hide_users(draft, areas, target)
    fresh = sorted(areas.fresh)
    log.moves += drop_reasoning(draft, fresh, target, areas.loop)
    log.moves += cut_results(draft, fresh, target, TIGHT)
    log.moves += strip_images(draft, every, target)
    log.moves += clear_results(draft, fresh, target, worth=SHORT)
    log.moves += clear_harness(draft, every, target)
    log.moves += shorten_calls(draft, fresh, target, areas.loop, SHORT)
    log.moves += cut_texts(draft, _assistants(draft, every), target, TIGHT)
    log.moves += cut_texts(draft, areas.users[:-1], target, TIGHT)
    if areas.whole:
        return
    newest = areas.users[-1:]
    if not stays_whole(draft, newest):
        log.moves += cut_texts(draft, newest, target, TIGHT)
        return
    goal = draft.view.goal_tokens  # the digest gives way
    last = cut_texts(draft, newest, goal, TIGHT)
    if draft.total > goal:  # it does not help
        for reduction in last:
            draft.undo(reduction.position, (patch.at for patch in reduction.patches))
        last = []
    log.moves += last


def stays_whole(draft: Draft, newest: Sequence[int]) -> bool:
    """Tell whether the newest request of a user is short enough to stay whole, whatever else has to leave."""
    return draft.size(newest) <= draft.view.goal_tokens * NEWEST


def goal_of_whole_request(view: View) -> int:
    """Return a goal at which a newest request too long for `stays_whole` may stay whole; 0 where there is none.

    A request that the goal has no room for raises it, at most halfway to the input budget and to what there is.
    """
    request = next((message for message in reversed(view.messages) if opens_turn(message)), None)
    goal, most = view.goal_tokens, min(view.tokens, view.budget.input)
    if request is None or is_recap(request) or view.size(request) <= goal * NEWEST:
        return 0
    fixed = view.overhead.total + sum(
        view.size(message)
        for message in view.messages
        if message.role == "system" or (message.id in view.pinned and message is not request)
    )
    needed = fixed + int(view.counter.text(speech(request).typed) / LARGEST)
    return max(goal, needed) if needed <= (goal + most) // 2 else 0


def reduce_parts(draft: Draft, positions: Sequence[int], target: int, log: ReductionLog, areas: Regions) -> None:
    """Make places lighter, cheapest loss first, until the draft meets the target."""
    log.moves += clear_results(draft, positions, target)
    log.moves += clear_harness(draft, positions, target, areas.standing)
    log.moves += shorten_calls(draft, positions, target, areas.loop)
    log.moves += drop_reasoning(draft, positions, target, areas.loop)
    log.moves += strip_images(draft, positions, target)
    log.moves += clear_results(draft, positions, target, errors=True)


def _limit_users(draft: Draft, areas: Regions, target: int, share: int, log: ReductionLog) -> None:
    """Cut users' turns beyond their share to what tells most, let the rest leave, then cut what is left."""
    cut_to_sentences(draft, areas, target, share, log)
    older = areas.users[:-1]
    beyond = draft.size([position for position in older if not draft.hidden[position]]) - share
    if beyond > 0:
        log.users += hide_users(draft, areas, max(target, draft.total - beyond))
        beyond = draft.size([position for position in older if not draft.hidden[position]]) - share
        log.moves += cut_texts(draft, older, max(target, draft.total - beyond), ROOMY)


def _assistants(draft: Draft, positions: Sequence[int]) -> list[int]:
    return [position for position in positions if draft.base[position].role == "assistant"]
