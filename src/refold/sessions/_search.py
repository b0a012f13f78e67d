"""Recall of originals: by id, by the plan or summary that replaced them, or by text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from refold import formats
from refold.core.edits import Hide, Rewrite
from refold.core.messages import MessageId
from refold.core.plan import PlanId
from refold.errors import UsageError
from refold.sessions._context_stats import Recalled
from refold.sessions._encrypted_search import search_encrypted
from refold.sessions._message_json import searchable_text
from refold.sessions._state import inserted_ids
from refold.sessions._stores.search_terms import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.core.plan import Plan
    from refold.sessions._log import Log
    from refold.sessions._state import SessionState
    from refold.sessions._stores.protocol import Hit, Store

__all__ = ["behind", "recall", "resolve_id", "search", "search_opened"]


def recall(log: Log, what: str, limit: int) -> tuple[Recalled, ...]:
    """Return the message of an id, the messages that a plan or summary replaced, or those that contain the words."""
    state = log.state
    if what in log.natives:
        return _by_id(log, (MessageId(what),))
    if what in state.plans:
        return _by_id(log, behind(state, state.plans[PlanId(what)]))
    maker = next((plan for plan in state.plans.values() if what in inserted_ids(plan)), None)
    if maker is not None:
        return _by_id(log, behind(state, maker))
    return search(log.store, what, log.lineage, limit)


def search(store: Store, query: str, sessions: tuple[str, ...] = (), limit: int = 20) -> tuple[Recalled, ...]:
    """Return up to `limit` originals that contain all words of a query, newest first; in some sessions, or in all."""
    formats_by_session = {head.id: head.format for head in store.sessions()}
    return tuple(
        _recalled(hit, formats_by_session.get(hit.session, ""), query) for hit in store.search(query, sessions, limit)
    )


def search_opened(
    store: Store, opened: Callable[[object], Any], query: str, sessions: tuple[str, ...] = (), limit: int = 20
) -> tuple[tuple[Recalled, ...], bool]:
    """Return what `search` does of messages that are encrypted, and whether all were looked at."""
    formats_by_session = {head.id: head.format for head in store.sessions()}
    hits, whole = search_encrypted(store, opened, query, sessions, limit)
    return tuple(_recalled(hit, formats_by_session.get(hit.session, ""), query) for hit in hits), whole


def behind(state: SessionState, plan: Plan) -> tuple[MessageId, ...]:
    """Return the originals that a plan hid or shortened, in order; for hidden summaries, the originals behind them."""
    touched: set[str] = set()
    seen: set[str] = set()
    waiting = [plan]
    while waiting:
        for edit in waiting.pop().edits:
            if isinstance(edit, Hide):
                touched.update(edit.messages)
            elif isinstance(edit, Rewrite):
                touched.add(edit.message)
        inner = [other for other in state.plans.values() if other.id not in seen and inserted_ids(other) & touched]
        seen.update(other.id for other in inner)
        waiting += [other for other in inner if other.id != plan.id]
    return tuple(id for id in state.parents if id in touched)


def resolve_id(state: SessionState, what: str) -> PlanId | MessageId:
    """Return the plan or message id that an id, a unique prefix of one, or a summary's id stands for.

    Raises:
        UsageError: there is none, or the prefix is not unique.
    """
    known: set[str] = {*state.plans, *state.parents}
    if what in known:
        return MessageId(what)
    maker = next((plan.id for plan in state.plans.values() if what in inserted_ids(plan)), None)
    if maker is not None:
        return maker
    like = [id for id in known if what and (id.startswith(what) or id.partition(":")[2].startswith(what))]
    if len(like) != 1:
        many = f"{len(like):,} ids start with it, give more characters" if like else "give an id that the session lists"
        raise UsageError(f"there is no plan or message {what!r}: {many}")
    return MessageId(like[0])


def _by_id(log: Log, ids: tuple[MessageId, ...]) -> tuple[Recalled, ...]:
    return tuple(Recalled(id, log.natives[id], log.session) for id in ids)


def _recalled(hit: Hit, format: str, query: str) -> Recalled:
    native = json.loads(hit.native)
    readable = format and isinstance(native, dict)  # a gateway with a store key encrypts messages
    words = searchable_text(formats.find(format).read(native, hit.id)) if readable else ""
    return Recalled(hit.id, native, hit.session, excerpt(words, query))
