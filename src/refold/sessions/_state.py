"""What a session is now: the fold of its entries."""

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

__all__ = ["Billed", "SessionState", "voided"]


class Billed(Struct, frozen=True, omit_defaults=True):
    """What all calls of a session were billed together, in tokens (O01); cached input is contained in `prompt`."""

    calls: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0


class SessionState:
    """Where a session stands, and what it ever held; `take` folds in one entry more.

    `ids` are the messages that are not rewound, `under` what each message was produced under (plans, and a digest of
    system prompt and tools), `live` the plans in force, `undone` the positions that can be gone forward to, `usage` the
    last report on what is in the context now (none since a plan or a rewind, O03), `settings` what is remembered.
    """

    def __init__(self) -> None:
        self.ids: list[MessageId] = []
        self.parents: dict[MessageId, MessageId] = {}
        self.under: dict[MessageId, tuple[tuple[PlanId, ...], str]] = {}
        self.plans: dict[PlanId, Plan] = {}
        self.after: dict[PlanId, Position] = {}
        self.live: tuple[PlanId, ...] = ()
        self.undone: tuple[Position, ...] = ()
        self.usage: UsageEntry | None = None
        self.billed = Billed()
        self.next = ""
        self.settings: dict[str, Any] = {}

    @property
    def position(self) -> Position:
        """Where the session stands."""
        return Position(self.tip, len(self.ids), self.live)

    @property
    def tip(self) -> MessageId:
        """The newest message, or the root."""
        return self.ids[-1] if self.ids else ROOT

    @property
    def in_force(self) -> tuple[Plan, ...]:
        """The plans in force, oldest first."""
        return tuple(self.plans[id] for id in self.live)

    def take(self, entry: Entry) -> None:
        """Fold in an entry."""
        match entry:
            case Appended(ids=ids, under=under, settings=settings):
                produced = (self.live if under is None else under, settings)
                for id in ids:
                    self.under[id] = produced
                    self.parents[id] = self.tip
                    self.ids.append(id)
                self.undone = ()
            case Planned():
                self._plan(entry.read())
            case Rewound(to=to, forward=forward):
                self.undone = self.undone[:-1] if forward else (*self.undone, self.position)
                self._go(to)
            case UsageEntry(prompt=prompt, completion=completion, cached=cached):
                self.usage = entry
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

    def chain(self, tip: MessageId) -> list[MessageId]:
        """Return the ids from the first message to this one."""
        if self.tip == tip:
            return self.ids
        found = []
        while tip != ROOT:
            found.append(tip)
            tip = self.parents[tip]
        return found[::-1]

    def without(self, plan: PlanId) -> Position:
        """Return the position with one plan taken off and all others left."""
        return Position(self.tip, len(self.ids), tuple(id for id in self.live if id != plan))

    def before(self, count: int) -> Position:
        """Return the position with so many plans left, negative from the end."""
        return Position(self.tip, len(self.ids), self.live[: count if count >= 0 else max(len(self.live) + count, 0)])

    def at_plan(self, plan: PlanId) -> Position:
        """Return the position with this plan as the newest, with all messages there are where they fit it."""
        if plan in self.live:
            return Position(self.tip, len(self.ids), self.live[: self.live.index(plan) + 1])
        then = self.after[plan]
        here = len(self.ids) >= then.length and (then.length == 0 or self.ids[then.length - 1] == then.tip)
        return Position(self.tip, len(self.ids), then.plans) if here else then

    def at_message(self, message: MessageId) -> Position:
        """Return the position with this message as the newest, and the plans that were made without later ones."""
        ids = self.chain(message)
        length = ids.index(message) + 1 if ids is self.ids else len(ids)
        return Position(message, length, self._fitting(ids[:length]))

    def tags(self) -> dict[MessageId, Tag]:
        """Return how each message is condensed or truncated by the plans in force (N07)."""
        return {id: tag for plan in self.in_force for id, tag in tags(plan).items()}

    def maker(self, message: MessageId) -> PlanId | None:
        """Return the plan in force that inserted a message."""
        return next((plan.id for plan in reversed(self.in_force) if message in _made(plan)), None)

    def _fitting(self, ids: Sequence[MessageId]) -> tuple[PlanId, ...]:
        def fits(plan: Plan) -> bool:
            length = plan.base.length
            return length <= len(ids) and (length == 0 or ids[length - 1] == plan.base.tip)

        return tuple(id for id in self.live if fits(self.plans[id]))

    def _plan(self, plan: Plan) -> None:
        self.plans[plan.id] = plan
        self.live = (*self.live, plan.id)
        self.after[plan.id] = self.position
        self.undone = ()
        self.usage = None

    def _go(self, to: Position) -> None:
        kept = self.ids[: to.length]
        held = to.length == 0 or (len(kept) == to.length and kept[-1] == to.tip)
        self.ids = kept if held else list(self.chain(to.tip))
        self.live = to.plans
        self.usage = None


def voided(plans: Iterable[Plan], known: Iterable[MessageId]) -> tuple[Plan, ...]:
    """Return plans without the edits that name a message which went when the plan that made it was taken off."""
    present = set(known)
    out: list[Plan] = []
    for plan in plans:
        present |= _made(plan)
        edits = tuple(edit for edit in plan.edits if _named(edit) <= present)
        out.append(plan if len(edits) == len(plan.edits) else replace(plan, edits=edits, steps=()))
    return tuple(out)


def _made(plan: Plan) -> set[MessageId]:
    return {edit.message.id for edit in plan.edits if isinstance(edit, Insert)}


def _named(edit: Rewrite | Hide | Insert) -> set[MessageId]:
    match edit:
        case Rewrite(message=id):
            return {id}
        case Hide(messages=ids):
            return set(ids)
        case Insert(before=anchor):
            return set() if anchor is None else {anchor}
