"""The generator that runs a policy over a view: it yields needs, receives answers, and returns a plan."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold.core._preserved_thinking import bound_parts, first_change, removals
from refold.core.break_even import BreakEven, break_even, reason_to_wait
from refold.core.budget import Never, WhenItPays
from refold.core.edits import Edit, Hide
from refold.core.needs import Answer, CountNeed, Need, Provided, Refused
from refold.core.plan import (
    Plan,
    PlanId,
    Sizes,
    StepRecord,
    base_of,
    sealed,
)
from refold.core.policy import AsksAgain, Policy, Step, TakesState, When
from refold.core.token_units import EstimatedTokens, ReportedTokens
from refold.core.view import Cause, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message

__all__ = ["PlannedView", "Planning", "due", "planning", "sizes_of", "waiting", "without_ignored"]

CHARS = 4  # characters a token of thinking, which is often encrypted
LEADING = (When.EVERY_CALL, When.FIRST)  # before it is decided whether the others run


class PlannedView(Struct, frozen=True):
    """What planning ends with: the plan, and the view under it (without the messages that the provider ignores)."""

    plan: Plan
    view: View


Planning: TypeAlias = Generator[tuple[Need, ...], tuple[Answer, ...], PlannedView]


def due(policy: Policy, view: View) -> bool:
    """Tell whether a compaction should start: someone demands it, or the trigger or the input budget is reached.

    A trigger above the input budget (V01's 200,000 on a small window) would never fire; a policy that is switched
    off stays off. Inside the input budget a compaction may wait until it pays.
    """
    if view.cause is not Cause.THRESHOLD:
        return True
    if isinstance(policy.trigger, Never):
        return False
    size, budget = view.decisive.count, view.limits.budget if view.limits else view.budget
    if size > budget.input:
        return True
    return policy.trigger.reached(size, budget, _fixed(view)) and waiting(policy, view) is None


def waiting(policy: Policy, view: View) -> BreakEven | None:
    """Return what a compaction would cost and save that waits until it pays, and why; None where none waits.

    It is taken to reach the goal and to leave nothing of the messages as it was.
    """
    trigger, size = policy.trigger, view.decisive.count
    budget = view.limits.budget if view.limits else view.budget
    if not isinstance(trigger, WhenItPays) or view.cause is not Cause.THRESHOLD or size > budget.input:
        return None
    fixed = _fixed(view)
    if not trigger.reached(size, budget, fixed):
        return None
    course, prices = view.course, view.prices
    economy = break_even(size, _goal(view), fixed, prices, course, thinking=_open_thinking(view.start, view, 0))
    reason = reason_to_wait(economy, trigger, course, prices, size=size, fixed=fixed, limit=budget.input)
    return replace(economy, waits=reason) if reason else None


def _open_thinking(messages: Sequence[Message], view: View, start: int) -> int:
    """Return the tokens of bound thinking from a position on in the open turn; none where the model binds nothing."""
    if not view.binds_thinking:
        return 0
    characters = 0
    for position in range(len(messages) - 1, start - 1, -1):
        message = messages[position]
        if message.role == "user" and message.note is None and not message.results:
            break
        characters += sum(len(part.text) + part.size for part in bound_parts(message))
    return characters // CHARS


def planning(
    policy: Policy, view: View, *, is_due: bool | None = None, format: str = "", earlier: Sequence[PlanId] = ()
) -> Planning:
    """Run a policy's steps over a view; yield what each needs, take the answers, return the plan and the view under it.

    `is_due` is what `due` returns for the view, where the caller knows it already.
    A step whose edits would make the view larger although it should shrink it is not done. Whether a compaction is
    due is decided after the leading steps of every call and those that run first, which may have made it unnecessary
    (L02, L03). Steps that run first also run while a compaction waits until it pays: they change nothing that was sent.
    Last, for a model that binds thinking, what stands behind the first change loses it.
    """
    start = view
    due_at_start = due(policy, view) if is_due is None else is_due
    waits = None if due_at_start else waiting(policy, view)
    started, leading = due_at_start, True
    records: list[StepRecord] = []
    counted: ReportedTokens | None = None
    for step in policy.steps:
        leading = leading and step.when in LEADING
        if not _runs(step, started, view) and not (step.when is When.FIRST and waits):
            continue
        needs = step.stage.needs(view)
        answers = (yield needs) if needs else ()
        while answers and isinstance(step.stage, AsksAgain) and (needs := step.stage.more(view, answers)):
            answers += yield needs
        for need, answer in zip(needs, answers, strict=False):
            if isinstance(need, CountNeed) and isinstance(answer, Provided) and answer.count:  # V08
                counted = ReportedTokens(answer.count)
        edits = step.stage.edits(view, answers)
        after, refused = _after(step, view, edits)
        refused = refused or "; ".join(answer.reason for answer in answers if isinstance(answer, Refused))
        judged = [answer.guard for answer in answers if isinstance(answer, Provided) and answer.guard]
        if edits or refused:
            records.append(
                StepRecord(
                    step.name,
                    type(step.stage).__name__,
                    len(view.edits),
                    len(after.edits),
                    view.reported.count,
                    after.reported.count,
                    refused,
                    "; ".join(dict.fromkeys(judged)),
                )
            )
        if after is not view:  # the count was of other messages
            counted = None
        if leading and after is not view:
            started = due(policy, after)
        view = after
    if view.binds_thinking and (edits := removals(view)):
        after, counted = view.after(edits, pins=False), None
        records.append(
            StepRecord(
                "drop thinking",
                "removals",
                len(view.edits),
                len(after.edits),
                view.reported.count,
                after.reported.count,
            )
        )
        view = after
    edits = view.edits
    if _leaves_out(view, compacts=due_at_start and not isinstance(policy.trigger, Never)):
        edits = (*edits, Hide(view.ignored))
        size = view.reported.count
        records.append(StepRecord("ignored", "Hide", len(view.edits), len(edits), size, size))
    sizes = sizes_of(start, view, counted)
    plan = sealed(
        Plan(
            policy=policy.name,
            fingerprint=policy.fingerprint,
            cause=start.cause,
            base=base_of(view),
            sizes=sizes,
            edits=edits,
            steps=tuple(records),
            format=format,
            earlier=tuple(earlier),
            binds_thinking=view.binds_thinking,
            break_even=_economy(sizes, view) if view.edits else waits,
        )
    )
    return PlannedView(plan, view)


def _economy(sizes: Sizes, view: View) -> BreakEven | None:
    """Return what the edits of a view cost and save; None where they save nothing."""
    if not sizes.saved:
        return None
    messages = view.messages
    same = first_change(view.start, messages)
    unsent = next((place + 1 for place in range(len(messages) - 1, -1, -1) if messages[place].role == "assistant"), 0)
    cached_or_new = sum(view.sizes[:same]) + sum(view.sizes[max(unsent, same) :])
    prefix = sizes.fixed + view.scale.reported(EstimatedTokens(cached_or_new)).count
    thinking = _open_thinking(view.start, view, same)
    return break_even(sizes.before, sizes.after, prefix, view.prices, view.course, thinking=thinking)


def sizes_of(start: View, view: View, counted: ReportedTokens | None = None) -> Sizes:
    """Return the sizes of a run from its first view to its last, as the provider counts them.

    `counted` is its own count of the last view, where a step has asked for it (V08).
    """
    most = (view.limits.budget if view.limits else view.budget).input
    after, calibrated = counted or view.reported, view.ratio.known or counted is not None
    return Sizes(start.reported.count, after.count, _goal(view), most, _fixed(view), calibrated=calibrated)


def _goal(view: View) -> int:
    """Return the goal as the provider counts."""
    limits = view.limits
    if limits is None:
        return view.goal_tokens
    return min(limits.goal.tokens(limits.budget, _fixed(view)), limits.budget.input)


def _fixed(view: View) -> int:
    """Return the part of a request that no compaction shrinks, as the provider counts it."""
    return view.scale.reported(EstimatedTokens(view.overhead.total)).count


def without_ignored(plan: Plan, view: View) -> Plan:
    """Return an empty plan as one that hides what stands before the anchor of its view."""
    return sealed(replace(plan, edits=(Hide(view.ignored),)))


def _leaves_out(view: View, *, compacts: bool) -> bool:
    """Tell whether a plan hides what the provider no longer reads: it edits something, or a compaction is due.

    A policy without trigger compacts nothing (a repair leaves what is healthy alone). Where the anchor has left the
    view, the provider reads again what was before it.
    """
    return bool(view.ignored) and (bool(view.edits) or compacts) and any(message.anchor for message in view.messages)


def _runs(step: Step, started: bool, view: View) -> bool:
    match step.when:
        case When.EVERY_CALL:
            return True
        case When.FIRST | When.DUE:
            return started
        case When.OVER_GOAL:
            return started and view.over_goal > 0
        case When.OVER_BUDGET:
            return started and view.tokens > view.budget.input


def _after(step: Step, view: View, edits: tuple[Edit, ...]) -> tuple[View, str]:
    after = view.after(edits, guard=not isinstance(step.stage, TakesState), pins=not step.stage.grows)
    if view.messages and not after.messages:
        return view, "it would have left no message"
    if edits and not step.stage.grows and after.estimated >= view.estimated:
        return view, "it would not have made the view smaller"
    return after, ""
