"""What a conversation takes, and what its compactions cost and save: the figures of the list and of the plot.

Sizes between two known ones (a provider's report, a plan) are estimated from the characters of the messages, by the
ratio that the known ones show. So no message is read for them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold._compaction.request import budget_for
from refold._page.history import apply
from refold.errors import RefoldError
from refold.models import _catalog as catalog
from refold.sessions._entries import Appended, Rewound, UsageEntry
from refold.sessions._saved_settings import resolve_settings
from refold.sessions._state import SessionState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refold._page.history import History
    from refold.core.messages import MessageId
    from refold.core.plan import Plan

__all__ = [
    "PER_CHARACTER",
    "REMEMBERED",
    "ContextLimits",
    "Figures",
    "Paid",
    "SizePoint",
    "calls_between",
    "figures_of",
    "limits_of",
    "points_of",
    "size_at",
]

PER_CHARACTER = 0.25  # tokens, where nothing is known of a conversation
MILLION = 1_000_000
REMEMBERED = 8  # histories, as many as are remembered themselves


class ContextLimits(Struct, frozen=True):
    """What bounds a conversation, in tokens; None where nothing tells it."""

    policy: str
    model: str
    window: int | None
    trigger: int | None
    goal: int | None


class Paid(Struct, frozen=True):
    """What an active plan has cost and saved so far, in tokens of input; `calls` were made since."""

    plan: Plan
    calls: int
    cost: int
    saved: int

    @property
    def net(self) -> int:
        """What is saved beyond the cost."""
        return self.saved - self.cost

    @property
    def pays_from(self) -> int | None:
        """The call from which on it pays, counted from the plan."""
        return self.plan.break_even.calls if self.plan.break_even is not None else None


class Figures(Struct, frozen=True):
    """The figures of a conversation now; `dollars` are saved by prices with caching, None where no price is known."""

    limits: ContextLimits
    tokens: int
    reported: bool
    messages: int
    active: int
    ever: int
    removed: int
    paid: tuple[Paid, ...]
    dollars: float | None
    exact_calls: bool

    @property
    def share(self) -> float | None:
        """How full the window is."""
        return self.tokens / self.limits.window if self.limits.window else None


class SizePoint(Struct, frozen=True):
    """The size of the next request after a step of the log; `plan` is there where the step made one active."""

    step: int
    at: float
    messages: int
    tokens: int
    kind: str
    calls: int
    plan: Plan | None = None


def limits_of(history: History) -> ContextLimits:
    """Return what bounds a conversation: its saved settings, else what its newest plan tells."""
    settings, plans = history.state.settings, list(history.state.plans.values())
    newest = history.plans[-1] if history.plans else plans[-1] if plans else None
    model = settings.get("model") or ""
    try:
        options = resolve_settings(settings, {}, history.head.format)
        budget = budget_for(options.policy, options)  # type: ignore[arg-type] # resolved to a policy
    except RefoldError:
        limit = newest.sizes.limit if newest is not None else None
        return ContextLimits(
            newest.policy if newest else "", str(model), limit, None, newest.sizes.goal if newest else None
        )
    policy: Any = options.policy
    saved = settings.get("trigger")  # of a gateway, which may have one of its own
    trigger = saved if isinstance(saved, int) else min(policy.trigger.tokens(budget), budget.input)
    goal = newest.sizes.goal if newest is not None else policy.goal.tokens(budget)
    return ContextLimits(policy.name, str(model), budget.window, trigger, goal)


@lru_cache(REMEMBERED)
def points_of(history: History) -> Sequence[SizePoint]:
    """Return the size of the conversation after each step of its log; it is remembered for some histories."""
    ratio, fixed = _calibrated(history)
    state, points = SessionState(), list[SizePoint]()
    total = 0  # characters
    known, at = float(fixed), 0  # tokens at so many characters
    calls = 0
    for step, event in enumerate(history.events, 1):
        apply(state, event)
        match event.entry:
            case Appended(ids=ids):
                total += _characters(history.sizes, ids)
                kind = "messages"
            case Rewound():
                total = _characters(history.sizes, state.ids)
                known, at = _after_newest(state, history.sizes, fixed)
                kind = "rewound"
            case UsageEntry(aside=False):
                known, at = event.entry.prompt + event.entry.completion, total
                calls += 1
                kind = "reported"
            case _ if event.plan is not None:
                points.append(SizePoint(step, event.at, len(state.ids), event.plan.sizes.before, "before", calls))
                known, at = _after_newest(state, history.sizes, fixed)
                kind = "plan"
            case _:
                continue
        points.append(
            SizePoint(step, event.at, len(state.ids), round(known + ratio * (total - at)), kind, calls, event.plan)
        )
    return points


def figures_of(history: History, points: Sequence[SizePoint] | None = None) -> Figures:
    """Return the figures of a conversation now."""
    points = points_of(history) if points is None else points
    limits, state, plans = limits_of(history), history.state, history.plans
    exact = any(point.kind == "reported" for point in points)
    paid = tuple(_paid(plan, points, exact=exact) for plan in plans)
    prices = catalog.prices(limits.model) if limits.model else None
    known = prices is not None and all(each.plan.break_even is not None for each in paid)
    return Figures(
        limits=limits,
        tokens=points[-1].tokens if points else 0,
        reported=bool(points) and points[-1].kind == "reported",
        messages=len(state.ids),
        active=len(plans),
        ever=len(state.plans),
        removed=sum(plan.sizes.saved for plan in plans),
        paid=paid,
        dollars=sum(each.net for each in paid) * prices.input / MILLION if known and prices is not None else None,
        exact_calls=exact,
    )


def calls_between(first: SizePoint, last: SizePoint, *, exact: bool) -> int:
    """Return the calls between two points: those that were reported, else one for every two messages."""
    return last.calls - first.calls if exact else max(last.messages - first.messages, 0) // 2


def _paid(plan: Plan, points: Sequence[SizePoint], *, exact: bool) -> Paid:
    start = next((point for point in reversed(points) if point.plan is not None and point.plan.id == plan.id), None)
    calls = calls_between(start, points[-1], exact=exact) if start is not None else 0
    economy = plan.break_even
    return Paid(plan, calls, economy.cost if economy else 0, economy.saving * calls if economy else 0)


def _calibrated(history: History) -> tuple[float, int]:
    """Return the tokens for each character of the messages' JSON, and the tokens of what stands apart them."""
    plans = list(history.state.plans.values())
    apart = {name: history.state.settings[name] for name in ("system", "tools") if name in history.state.settings}
    fixed = plans[0].sizes.fixed if plans else round(len(json.dumps(apart)) * PER_CHARACTER) if apart else 0
    state, total = SessionState(), 0
    for event in history.events:
        apply(state, event)
        tokens = 0
        match event.entry:
            case Appended(ids=ids):
                total += _characters(history.sizes, ids)
            case UsageEntry(aside=False):
                tokens = event.entry.prompt + event.entry.completion
            case _ if event.plan is not None:
                tokens = event.plan.sizes.before
            case _:
                return PER_CHARACTER, fixed
        if tokens > fixed and total:
            return (tokens - fixed) / total, fixed
    return PER_CHARACTER, fixed


def _after_newest(state: SessionState, sizes: Mapping[MessageId, int], fixed: int) -> tuple[float, int]:
    """Return the tokens that the newest plan left, and the characters of the messages it was made for."""
    if not state.active:
        return fixed, 0
    plan = state.plans[state.active[-1]]
    return plan.sizes.after, _characters(sizes, state.ids[: plan.base.length])


def _characters(sizes: Mapping[MessageId, int], ids: Sequence[MessageId]) -> int:
    return sum(sizes.get(id, 0) for id in ids)


def size_at(history: History, state: SessionState) -> tuple[int, float, int]:
    """Return the tokens of the next request in a state, with the tokens for each character and those apart them."""
    ratio, fixed = _calibrated(history)
    known, at = _after_newest(state, history.sizes, fixed)
    return round(known + ratio * (_characters(history.sizes, state.ids) - at)), ratio, fixed
