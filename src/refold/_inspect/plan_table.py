"""Lists a plan message by message: what happens to each, why, and its tokens before and after."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold._compaction.driver import plan_request
from refold._compaction.request import request_for
from refold.core.edits import Hide, Insert, Rewrite, fold
from refold.core.messages import Message, texts
from refold.handlers import Handlers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._compaction.options import Options
    from refold._compaction.request import Request
    from refold.core.break_even import BreakEven
    from refold.core.messages import MessageId
    from refold.core.plan import Plan

__all__ = ["PLACEHOLDER", "Fate", "PlanRow", "economy_text", "planned", "rows"]

MILLION = 1_000_000
PLACEHOLDER = 400  # characters: what replaces a cleared text is a sentence or two


class Fate(StrEnum):
    """What a plan does to a message."""

    UNCHANGED = "kept"
    CLEARED = "cleared"
    SHORTENED = "shortened"
    HIDDEN = "hidden"
    INSERTED = "inserted"
    CHANGED = "changed"


class PlanRow(Struct, frozen=True):
    """One message under a plan; `position` is its place in the conversation, None for an inserted one."""

    position: int | None
    role: str
    before: int
    after: int
    fate: Fate
    why: str
    old: Message | None = None
    new: Message | None = None


def economy_text(economy: BreakEven, model: str | None) -> str:
    """Return what a compaction costs and saves, with US dollars where the model's prices are known."""
    from refold.models import _catalog as catalog

    prices = catalog.prices(model) if model else None
    if prices is None or economy.calls is None:
        return economy.sentence
    cost, saving = (tokens * prices.input / MILLION for tokens in (economy.cost, economy.saving))
    return f"{economy.sentence} (US$ {cost:.4f} and {saving:.4f} a call)"


def planned(messages: Sequence[Any], options: Options, handlers: Handlers | None = None) -> tuple[Request, Plan]:
    """Plan, and return the request with the counter that the plan's sizes are by."""
    run = plan_request(request_for(messages, options), handlers or Handlers())
    return run.request, run.plan


def rows(request: Request, plan: Plan) -> list[PlanRow]:
    """Return every message of the view before and after, in order."""
    view = request.view
    why = _reasons(plan)
    hidden = {id for edit in plan.edits if isinstance(edit, Hide) for id in edit.messages}
    visible_edits = [edit for edit in plan.edits if not isinstance(edit, Hide)]
    tip = view.start[-1].id if view.start else None
    olds = {message.id: message for message in view.start}
    table_rows: list[PlanRow] = []
    for new in fold(view.start, [visible_edits], [tip]):
        old = olds.get(new.id)
        removed = new.id in hidden
        if old is None and removed:
            continue
        before = view.size(old) if old else 0
        after = 0 if removed else view.size(new)
        fate = _fate(old, new, removed=removed)
        place = view.index[new.id] if old else None
        reason = ", ".join(why.get(new.id, ()))
        table_rows.append(PlanRow(place, new.role, before, after, fate, reason, old, None if removed else new))
    return table_rows


def _reasons(plan: Plan) -> dict[MessageId, dict[str, None]]:
    """Return the labels of the steps that touched each message, in order."""
    table_rows: dict[MessageId, dict[str, None]] = {}
    for step in plan.steps:
        for edit in plan.edits[step.start : step.stop]:
            match edit:
                case Rewrite(message=id):
                    touched: Sequence[MessageId] = (id,)
                case Insert(message=message):
                    touched = (message.id,)
                case Hide(messages=ids):
                    touched = ids
            for id in touched:
                if isinstance(edit, Hide):  # what an earlier step did to it no longer shows
                    table_rows[id] = {}
                table_rows.setdefault(id, {})[step.label] = None
    return table_rows


def _fate(old: Message | None, new: Message, *, removed: bool) -> Fate:
    if removed:
        return Fate.HIDDEN
    if old is None:
        return Fate.INSERTED
    if new is old:
        return Fate.UNCHANGED
    before, after = "".join(texts(old)), "".join(texts(new))
    if len(new.parts) > len(old.parts) or len(after) > len(before):
        return Fate.CHANGED
    if len(after) <= PLACEHOLDER and after[:20] != before[:20]:
        return Fate.CLEARED
    return Fate.SHORTENED
