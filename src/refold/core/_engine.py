"""The generator that runs a policy over a view: it yields needs, receives answers, and returns a plan."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold.core._preserved_thinking import removals
from refold.core.budget import Never
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

__all__ = ["PlannedView", "Planning", "due", "planning", "sizes_of", "without_ignored"]

LEADING = (When.EVERY_CALL, When.FIRST)  # before it is decided whether the others run


class PlannedView(Struct, frozen=True):
    """What planning ends with: the plan, and the view under it (without the messages that the provider ignores)."""

    plan: Plan
    view: View


Planning: TypeAlias = Generator[tuple[Need, ...], tuple[Answer, ...], PlannedView]


def due(policy: Policy, view: View) -> bool:
    """Tell whether a compaction should start: someone demands it, or the trigger or the input budget is reached.

    A trigger above the input budget (V01's 200,000 on a small window) would never fire; a policy that is switched
    off stays off.
    """
    if view.cause is not Cause.THRESHOLD:
        return True
    if isinstance(policy.trigger, Never):
        return False
    size, budget = view.decisive.count, view.limits.budget if view.limits else view.budget
    return policy.trigger.reached(size, budget, _fixed(view)) or size > budget.input


def planning(
    policy: Policy, view: View, *, is_due: bool | None = None, format: str = "", earlier: Sequence[PlanId] = ()
) -> Planning:
    """Run a policy's steps over a view; yield what each needs, take the answers, return the plan and the view under it.

    `is_due` is what `due` returns for the view, where the caller knows it already.
    A step whose edits would make the view larger although it should shrink it is not done. Whether a compaction is
    due is decided after the leading steps of every call and those that run first, which may have made it unnecessary
    (L02, L03). Last, for a model that binds thinking, what stands behind the first change loses it.
    """
    start = view
    due_at_start = due(policy, view) if is_due is None else is_due
    started, leading = due_at_start, True
    records: list[StepRecord] = []
    counted: ReportedTokens | None = None
    for step in policy.steps:
        leading = leading and step.when in LEADING
        if not _runs(step, started, view):
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
                )
            )
        if after is not view:  # the count was of other messages
            counted = None
        if leading and after is not view:
            started = due(policy, after)
        view = after
    if view.binds_thinking and (edits := removals(view)):
        after, counted = view.after(edits), None
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
    plan = sealed(
        Plan(
            policy=policy.name,
            fingerprint=policy.fingerprint,
            cause=start.cause,
            base=base_of(view),
            sizes=sizes_of(start, view, counted),
            edits=edits,
            steps=tuple(records),
            format=format,
            earlier=tuple(earlier),
            binds_thinking=view.binds_thinking,
        )
    )
    return PlannedView(plan, view)


def sizes_of(start: View, view: View, counted: ReportedTokens | None = None) -> Sizes:
    """Return the sizes of a run from its first view to its last, as the provider counts them.

    `counted` is its own count of the last view, where a step has asked for it (V08).
    """
    limits = view.limits
    if limits is None:
        goal, most = view.goal_tokens, view.budget.input
    else:
        most = limits.budget.input
        goal = min(limits.goal.tokens(limits.budget, _fixed(view)), most)
    after, calibrated = counted or view.reported, view.ratio.known or counted is not None
    return Sizes(start.reported.count, after.count, goal, most, _fixed(view), calibrated=calibrated)


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
    after = view.after(edits, guard=not isinstance(step.stage, TakesState))
    if view.messages and not after.messages:
        return view, "it would have left no message"
    if edits and not step.stage.grows and after.estimated >= view.estimated:
        return view, "it would not have made the view smaller"
    return after, ""
