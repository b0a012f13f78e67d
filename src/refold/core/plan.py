"""A plan: the edits of one run of a policy, as a value that can be printed, stored, compared and applied again."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NewType

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from refold.core.break_even import BreakEven, PastCompaction
from refold.core.budget import Usage
from refold.core.edits import Edit, Hide, Insert, Rewrite
from refold.core.messages import Message, MessageId, ToolResult
from refold.core.transcript import ROOT, Transcript
from refold.core.view import Cause, View
from refold.errors import StalePlan, UsageError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

__all__ = [
    "Base",
    "Plan",
    "PlanId",
    "Sizes",
    "StepRecord",
    "Tag",
    "base_of",
    "checked",
    "past_compactions",
    "remaining_plans",
    "sealed",
    "tags",
    "usage_after",
]

PlanId = NewType("PlanId", str)


class Base(Struct, frozen=True):
    """The transcript a plan was made for: how many messages, and the id of the last."""

    length: int
    tip: MessageId


def base_of(view: View) -> Base:
    """Return what a plan made for a view is based on."""
    return Base(view.skipped + len(view.transcript), view.transcript.tip)


class StepRecord(Struct, frozen=True, omit_defaults=True):
    """The record of one step: its edits as a range of the plan's, tokens before and after, and why it did nothing.

    `guard` is what the guard said of a summary that the step has used, empty where none has judged one.
    """

    label: str
    stage: str
    start: int
    stop: int
    before: int
    after: int
    refused: str = ""
    guard: str = ""


class Sizes(Struct, frozen=True, omit_defaults=True):
    """Tokens of the whole request before and after, the goal, the input budget, and the part that is fixed.

    All are as the provider counts, as far as that is known: with `calibrated`, a report has shown how it counts, or it
    has counted the request afterwards; else they are the estimate of the policy's counter.
    """

    before: int
    after: int
    goal: int
    limit: int
    fixed: int = 0
    calibrated: bool = False

    @property
    def saved(self) -> int:  # N02
        """Tokens saved; never negative."""
        return max(self.before - self.after, 0)


class Plan(Struct, frozen=True, omit_defaults=True):
    """The edits of one run, in order, on what transcript, by which policy, and why.

    No clock and no randomness: planning twice gives equal plans with equal ids. `binds_thinking`: it was made for a
    model that takes thinking only behind the prefix it was produced under, so it removes what stood behind its changes.
    `break_even`: what it costs and saves; of a plan without edits, why a compaction waits that the trigger has started.

    Added in 0.1.0.
    """

    policy: str
    fingerprint: str
    cause: Cause
    base: Base
    sizes: Sizes
    edits: tuple[Edit, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    format: str = ""
    earlier: tuple[PlanId, ...] = ()
    binds_thinking: bool = False
    break_even: BreakEven | None = None
    id: PlanId = PlanId("")

    def __repr__(self) -> str:
        sizes = self.sizes
        done = f"{len(self.edits):,} edits, {sizes.before:,} -> {sizes.after:,} tokens" if self.edits else "no edits"
        return f"<Plan {self.id} by {self.policy}: {done}, goal {sizes.goal:,}>"

    @property
    def stages_used(self) -> tuple[str, ...]:  # N02
        """The labels of the steps that changed something, in order."""
        return tuple(step.label for step in self.steps if step.stop > step.start)

    @property
    def repaired_pairs(self) -> int:  # N16
        """The number of tool calls and results that got the half they had lost."""
        completed: set[str] = set()
        for edit in self._edits_by("CloseCalls"):
            match edit:
                case Insert(message=message):
                    completed.update(call.call_id for call in message.calls)
                    completed.update(result.call_id for result in message.results)
                case Rewrite(to=ToolResult(call_id=call_id)):
                    completed.add(call_id)
        return len(completed)

    @property
    def deduplicated_files(self) -> int:  # N04
        """The number of files of which earlier reads were replaced by a reference to the latest."""
        references: set[str] = set()  # each names its file
        for edit in self._edits_by("DeduplicateReads"):
            match edit:
                case Rewrite(to=ToolResult(text=reference)):
                    references.add(reference)
        return len(references)

    @property
    def empty(self) -> bool:
        """Tell whether the plan changes nothing."""
        return not self.edits

    def _edits_by(self, stage: str) -> Iterator[Edit]:
        return (edit for step in self.steps if step.stage == stage for edit in self.edits[step.start : step.stop])


class Tag(Struct, frozen=True, omit_defaults=True):  # N07
    """How one message is marked by a plan; a message may carry a group of its own, a parent, or both."""

    condense_id: str | None = None
    condense_parent: str | None = None
    truncation_id: str | None = None
    truncation_parent: str | None = None
    is_truncation_marker: bool = False


def past_compactions(plans: Iterable[Plan]) -> tuple[tuple[int, PastCompaction], ...]:
    """Return what plans in force tell of a session's course, each with the messages it was made for.

    Plans that made nothing smaller (repairs, recalled originals) are no compactions.
    """
    return tuple(
        (
            plan.base.length,
            PastCompaction(
                0, plan.sizes.before, plan.sizes.after,
                plan.break_even.cost if plan.break_even else 0, plan.break_even.saving if plan.break_even else 0,
            ),
        )
        for plan in plans
        if plan.sizes.saved
    )  # fmt: skip


def sealed(plan: Plan) -> Plan:
    """Return the plan with the id that its content gives."""
    body = msgspec.json.encode(replace(plan, id=PlanId("")))
    return replace(plan, id=PlanId("plan:" + blake2b(body, digest_size=10).hexdigest()))


def checked(plan: Plan, transcript: Transcript, known: Container[MessageId] = ()) -> Plan:
    """Return the plan if it may be applied to this transcript.

    `known` are the messages that earlier plans inserted.

    Raises:
        StalePlan: the transcript is shorter, other, or lacks a message the plan names.
    """
    length = plan.base.length
    tip = transcript.messages[length - 1].id if 0 < length <= len(transcript) else ROOT
    if length > len(transcript) or tip != plan.base.tip:
        raise StalePlan(
            f"plan {plan.id} was made for {length:,} messages ending in {plan.base.tip}, and these are other messages: "
            "make a new plan for them"
        )
    present: set[MessageId] = set()
    for edit in plan.edits:
        match edit:
            case Insert(message=message, before=anchor):
                named: tuple[MessageId, ...] = () if anchor is None else (anchor,)
                present.add(message.id)
            case Rewrite(message=id):
                named = (id,)
            case Hide(messages=ids):
                named = ids
        for id in named:
            if id not in transcript.index and id not in present and id not in known:
                raise StalePlan(f"plan {plan.id} names message {id}, which is not here: make a new plan")
    return plan


def usage_after(plan: Plan, later: Container[MessageId], view: Sequence[Message]) -> Usage | None:
    """Return the size after a plan as a report on the view under it; None where the plan was not calibrated.

    `later` are the messages that came after those the plan was made for. Until the provider reports again, this is
    what is known of how it counts.
    """
    if not plan.sizes.calibrated:
        return None
    return Usage(plan.sizes.after, covers=sum(message.id not in later for message in view))


def remaining_plans(count: int, to: int) -> int:
    """Return how many of `count` plans stay when a caller goes back `to` a number of them, negative from the end.

    Raises:
        UsageError: there are not so many. To take back one of none is no error: the originals are what is there.
    """
    if not -max(count, 1) <= to <= count:
        plans = "1 plan is" if count == 1 else f"{count} plans are"
        raise UsageError(
            f"to={to}, but {plans} in force: give how many stay, or a negative number of those to take back"
        )
    return to if to >= 0 else max(count + to, 0)


def tags(plan: Plan) -> dict[MessageId, Tag]:  # N07
    """Read off a plan how each message is condensed or truncated, in NeuroLink's words."""
    tags: dict[MessageId, Tag] = {}
    for step in plan.steps:
        edits = plan.edits[step.start : step.stop]
        groups = [edit.message for edit in edits if isinstance(edit, Insert) and edit.message.note is not None]
        if not groups:
            continue
        group = groups[0]
        marker = group.note is not None and group.note.kind == "marker"
        hidden = [id for edit in edits if isinstance(edit, Hide) for id in edit.messages]
        if marker:
            tags[group.id] = Tag(truncation_id=group.id, is_truncation_marker=True)
            tags |= {id: replace(tags.get(id, Tag()), truncation_parent=group.id) for id in hidden}
        else:
            tags[group.id] = Tag(condense_id=group.id)
            tags |= {id: replace(tags.get(id, Tag()), condense_parent=group.id) for id in hidden}
    return tags
