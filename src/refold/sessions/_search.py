"""Bringing originals back: by id, by the plan or summary that stands in their place, or by their words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from refold import formats
from refold.core.edits import Hide, Insert, Rewrite
from refold.core.messages import MessageId
from refold.core.plan import PlanId
from refold.errors import UsageError
from refold.sessions._context_stats import Recalled
from refold.sessions._message_json import words_in
from refold.sessions._stores.search_terms import excerpt

if TYPE_CHECKING:
    from refold.core.plan import Plan
    from refold.sessions._log import Log
    from refold.sessions._state import SessionState
    from refold.sessions._stores.protocol import Hit, Store

__all__ = ["behind", "named", "recall", "search"]


def recall(log: Log, what: str, limit: int) -> tuple[Recalled, ...]:
    """Return the message of an id, the messages that a plan or a summary stands for, or those that hold the words."""
    state = log.state
    if what in log.natives:
        return _by_id(log, (MessageId(what),))
    if what in state.plans:
        return _by_id(log, behind(state, state.plans[PlanId(what)]))
    maker = next((plan for plan in state.plans.values() if what in _made(plan)), None)
    if maker is not None:
        return _by_id(log, behind(state, maker))
    return search(log.store, what, log.lineage, limit)


def search(store: Store, query: str, sessions: tuple[str, ...] = (), limit: int = 20) -> tuple[Recalled, ...]:
    """Return the originals that hold all words of a query, newest first; in the given sessions, or in all."""
    shapes = {head.id: head.format for head in store.sessions()}
    return tuple(_found(hit, shapes.get(hit.session, ""), query) for hit in store.search(query, sessions, limit))


def behind(state: SessionState, plan: Plan) -> tuple[MessageId, ...]:
    """Return the originals that a plan hid or shortened, those behind the summaries that it hid included, in order."""
    touched: set[str] = set()
    seen: set[str] = set()
    waiting = [plan]
    while waiting:
        for edit in waiting.pop().edits:
            if isinstance(edit, Hide):
                touched.update(edit.messages)
            elif isinstance(edit, Rewrite):
                touched.add(edit.message)
        inner = [other for other in state.plans.values() if other.id not in seen and _made(other) & touched]
        seen.update(other.id for other in inner)
        waiting += [other for other in inner if other.id != plan.id]
    return tuple(id for id in state.parents if id in touched)


def named(state: SessionState, what: str) -> PlanId | MessageId:
    """Return the plan or message of an id, of the beginning of one, or of a summary's id.

    Raises:
        UsageError: there is none, or several begin so.
    """
    known: set[str] = {*state.plans, *state.parents}
    if what in known:
        return MessageId(what)
    maker = next((plan.id for plan in state.plans.values() if what in _made(plan)), None)
    if maker is not None:
        return maker
    like = [id for id in known if what and (id.startswith(what) or id.partition(":")[2].startswith(what))]
    if len(like) != 1:
        many = f"{len(like):,} begin so, give more of it" if like else "name an id that the session lists"
        raise UsageError(f"no plan or message is called {what!r}: {many}")
    return MessageId(like[0])


def _by_id(log: Log, ids: tuple[MessageId, ...]) -> tuple[Recalled, ...]:
    return tuple(Recalled(id, log.natives[id], log.session) for id in ids)


def _found(hit: Hit, format: str, query: str) -> Recalled:
    native = json.loads(hit.native)
    words = words_in(formats.find(format).read(native, hit.id)) if format else ""
    return Recalled(hit.id, native, hit.session, excerpt(words, query))


def _made(plan: Plan) -> set[str]:
    return {edit.message.id for edit in plan.edits if isinstance(edit, Insert)}
