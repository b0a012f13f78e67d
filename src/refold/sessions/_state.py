"""The state of a session: the fold of its entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from refold.core.edits import Hide, Insert, Rewrite
from refold.core.plan import tags
from refold.core.transcript import ROOT
from refold.sessions._entries import (
    Appended,
    Configured,
    Entry,
    Planned,
    Position,
    Renewed,
    Rewound,
    UsageEntry,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.core.messages import MessageId
    from refold.core.plan import Plan, PlanId, Tag

__all__ = ["Billed", "SessionState", "inserted_ids", "without_dangling_edits"]


class Billed(Struct, frozen=True, omit_defaults=True):
    """What all calls of a session were billed together, in tokens; `prompt` includes cached input."""

    calls: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0


class SessionState:
    """The current position of a session and everything its log ever contained; `apply` folds in one more entry.

    `ids` are the messages that are not rewound, `under` what each message was produced under (plans, and a digest of
    system prompt and tools), `active` the active plans, `undone` the positions that `forward` can return to, `usage`
    the last report on the current context (none after a plan or a rewind, O03), `settings` the saved settings.
    """

    def __init__(self) -> None:
        self.ids: list[MessageId] = []
        self.parents: dict[MessageId, MessageId] = {}
        self.under: dict[MessageId, tuple[tuple[PlanId, ...], str]] = {}
        self.plans: dict[PlanId, Plan] = {}
        self.after: dict[PlanId, Position] = {}
        self.active: tuple[PlanId, ...] = ()
        self.undone: tuple[Position, ...] = ()
        self.usage: UsageEntry | None = None
        self.billed = Billed()
        self.next = ""
        self.settings: dict[str, Any] = {}

    @property
    def position(self) -> Position:
        """The current position."""
        return Position(self.tip, len(self.ids), self.active)

    @property
    def tip(self) -> MessageId:
        """The newest message, or the root."""
        return self.ids[-1] if self.ids else ROOT

    @property
    def active_plans(self) -> tuple[Plan, ...]:
        """The active plans, oldest first."""
        return tuple(self.plans[id] for id in self.active)

    def apply(self, entry: Entry) -> None:
        """Fold in an entry."""
        match entry:
            case Appended(ids=ids, under=under, settings=settings):
                produced = (self.active if under is None else under, settings)
                for id in ids:
                    self.under[id] = produced
                    self.parents[id] = self.tip
                    self.ids.append(id)
                self.undone = ()
            case Planned():
                self.activate(entry.read())
            case Rewound(to=to, forward=forward):
                self.undone = self.undone[:-1] if forward else (*self.undone, self.position)
                prefix = self.ids[: to.length]
                is_prefix = to.length == 0 or (len(prefix) == to.length and prefix[-1] == to.tip)
                self.ids = prefix if is_prefix else list(self.chain(to.tip))
                self.active = to.plans
                self.usage = None
            case UsageEntry(prompt=prompt, completion=completion, cached=cached, aside=aside):
                self.usage = self.usage if aside else entry
                so_far = self.billed
                self.billed = Billed(
                    so_far.calls + 1, so_far.prompt + prompt, so_far.completion + completion, so_far.cached + cached
                )
            case Configured(settings=settings):
                self.settings = {name: value for name, value in (self.settings | settings).items() if value is not None}
            case Renewed(session=session):
                self.next = session
            case _:
                pass

    def activate(self, plan: Plan) -> None:
        """Fold in the entry of a plan."""
        self.plans[plan.id] = plan
        self.active = (*self.active, plan.id)
        self.after[plan.id] = self.position
        self.undone = ()
        self.usage = None

    def chain(self, tip: MessageId) -> list[MessageId]:
        """Return the ids from the first message to this one."""
        if self.tip == tip:
            return self.ids
        chain = []
        while tip != ROOT:
            chain.append(tip)
            tip = self.parents[tip]
        return chain[::-1]

    def without(self, plan: PlanId) -> Position:
        """Return the position without one plan."""
        return Position(self.tip, len(self.ids), tuple(id for id in self.active if id != plan))

    def before(self, count: int) -> Position:
        """Return the position with so many plans, negative from the end."""
        return Position(
            self.tip, len(self.ids), self.active[: count if count >= 0 else max(len(self.active) + count, 0)]
        )

    def at_plan(self, plan: PlanId) -> Position:
        """Return the position with this plan as the newest, with all messages there are where they fit it."""
        if plan in self.active:
            return Position(self.tip, len(self.ids), self.active[: self.active.index(plan) + 1])
        then = self.after[plan]
        here = len(self.ids) >= then.length and (then.length == 0 or self.ids[then.length - 1] == then.tip)
        return Position(self.tip, len(self.ids), then.plans) if here else then

    def at_message(self, message: MessageId) -> Position:
        """Return the position with this message as the newest, and the plans that were made without later ones."""
        ids = self.chain(message)
        length = ids.index(message) + 1 if ids is self.ids else len(ids)
        return Position(message, length, self._fitting(ids[:length]))

    def tags(self) -> dict[MessageId, Tag]:
        """Return how each message is condensed or truncated by the active plans."""
        return {id: tag for plan in self.active_plans for id, tag in tags(plan).items()}

    def _fitting(self, ids: Sequence[MessageId]) -> tuple[PlanId, ...]:
        def fits(plan: Plan) -> bool:
            length = plan.base.length
            return length <= len(ids) and (length == 0 or ids[length - 1] == plan.base.tip)

        return tuple(id for id in self.active if fits(self.plans[id]))


def without_dangling_edits(plans: Iterable[Plan], known: Iterable[MessageId]) -> tuple[Plan, ...]:
    """Return plans without the edits of messages that a plan had inserted which is no longer active."""
    present = set(known)
    out: list[Plan] = []
    for plan in plans:
        present |= inserted_ids(plan)
        edits = tuple(edit for edit in plan.edits if _named_ids(edit) <= present)
        out.append(plan if len(edits) == len(plan.edits) else replace(plan, edits=edits, steps=()))
    return tuple(out)


def inserted_ids(plan: Plan) -> set[MessageId]:
    """Return the ids of the messages that a plan inserts."""
    return {edit.message.id for edit in plan.edits if isinstance(edit, Insert)}


def _named_ids(edit: Rewrite | Hide | Insert) -> set[MessageId]:
    match edit:
        case Rewrite(message=id):
            return {id}
        case Hide(messages=ids):
            return set(ids)
        case Insert(before=anchor):
            return set() if anchor is None else {anchor}
