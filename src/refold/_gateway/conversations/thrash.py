"""Thrashing: system prompt, tools and pinned messages leave so little room that nearly every call is compacted.

Each compaction costs the prompt cache and loses detail, for a few calls of room. Where compactions follow each other
within `CLOSE` calls and each leaves the window nearly full, the next one waits until the room is used up, and its goal
lies the deeper the more there were: the calls between two compactions are then as many as the room allows. All is read
from the plans, so every replica decides alike.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._gateway.observability.metrics import NEW_OUTPUT, reason_of
from refold.core.view import Cause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.budget import Budget
    from refold.core.messages import Message
    from refold.core.plan import Plan

__all__ = ["Thrash", "crowded_goal", "goal_with_results", "thrash", "with_room"]

CLOSE = 5  # calls: fewer between two compactions are too few
CROWDED = 0.6  # of the input budget: what a plan leaves above that is for the most part what no plan removes
LOOKED_AT = 8  # compactions, the newest
SHARE = 0.35  # of the room that messages may have after a compaction
REQUEST_SHARE = 0.6  # of it, where the request that is worked on and results that the model has not seen need that much
LEAST = 300  # tokens of messages that a goal allows beside the request that is worked on: a digest, the newest result
DEEPEST = 3  # times that the share is halved


class Thrash(Struct, frozen=True):
    """How a conversation thrashes: compactions that came too close, tokens that none removes, tokens of room."""

    close: int
    fixed: int
    room: int


def thrash(plans: Sequence[Plan], messages: Sequence[Message], limit: int, fixed: int) -> Thrash | None:
    """Return how a conversation thrashes under an input budget, `fixed` tokens of it taken; None where it does not.

    Above a larger budget than that of its last plan there is room, whatever was before.
    """
    compactions = [plan for plan in plans[-2 * LOOKED_AT :] if _is_compaction(plan)][-LOOKED_AT:]
    if not compactions or compactions[-1].sizes.after <= limit * CROWDED:
        return None
    close = sum(
        two.cause is Cause.THRESHOLD and _is_crowded(one) and _calls(messages, one, two) < CLOSE
        for one, two in pairwise(compactions)
    )
    return Thrash(close, fixed, max(limit - fixed, 0)) if close else None


def crowded_goal(thrashing: Thrash | None, goal: int, limit: int, fixed: int, request: int) -> int | None:
    """Return the size to compact to, in tokens, where a goal cannot be reached or is not deep enough; else None.

    A goal below what no compaction removes would leave neither a digest nor the newest results. `request` are the
    tokens of the user's newest words and of results that no answer has followed yet: a model whose newest results are
    shortened makes the same calls again.
    """
    if fixed >= limit:
        return None
    room, needed = limit - fixed, LEAST + request
    most = max(int(room * SHARE), min(needed, int(room * REQUEST_SHARE)))
    least = min(most, needed)
    if thrashing is not None:
        return fixed + max(least, most >> min(thrashing.close - 1, DEEPEST))
    return fixed + most if goal < fixed + least else None


def goal_with_results(goal: int, limit: int, fixed: int, request: int, unseen: int) -> int:
    """Return a goal, in tokens; one that leaves too little for `unseen` results has a share of the rest beside them."""
    room = max(limit - fixed, 0)
    if not unseen or goal >= fixed + LEAST + request + unseen:
        return goal
    return max(goal, fixed + min(unseen + int(max(room - unseen, 0) * SHARE), int(room * REQUEST_SHARE)))


def with_room(budget: Budget, fixed: int, request: int) -> Budget:
    """Return a budget whose reserve for the answer leaves room for messages, where the window has any.

    For a request that names no longest answer the reserve is a guess, which `fixed` tokens and the user's newest words
    may exceed: the answer then has half of what these leave of the window.
    """
    least = fixed + LEAST + request
    if not budget.input < least < budget.window:
        return budget
    return replace(budget, output_reserve=(budget.window - least) // 2)


def _is_compaction(plan: Plan) -> bool:
    return plan.cause is not Cause.MANUAL and reason_of(plan) != NEW_OUTPUT


def _is_crowded(plan: Plan) -> bool:
    return plan.sizes.after > plan.sizes.limit * CROWDED


def _calls(messages: Sequence[Message], one: Plan, two: Plan) -> int:
    """Return how many answers of the model there were between two plans."""
    answers = [message.role == "assistant" for message in messages[one.base.length : two.base.length]]
    return sum(now and not before for before, now in zip([False, *answers], answers, strict=False))
