"""What a viewer does to a conversation: compact, rewind, pin, change the policy; and over a store how that is done.

Each act is an entry of the session's log with who did it, so it is in the history and can be undone from there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from refold._page.parts import status_of
from refold.core.edits import fold
from refold.errors import UsageError, WriteConflict
from refold.handlers import Handlers
from refold.replay._fake_summarizer import outlined
from refold.sessions import Session
from refold.sessions._entries import Configured, Rewound
from refold.sessions._leases import compaction_lease
from refold.sessions._stores.protocol import Write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold._page.history import History
    from refold.core.messages import Message
    from refold.core.plan import Plan
    from refold.sessions import Store
    from refold.sessions._entries import Position
    from refold.sessions._session_options import SessionSettings

__all__ = ["STAND_IN", "Acts", "CompactionForm", "Preview", "StoreActs", "preview_of"]

STAND_IN = Handlers(summarize=outlined)  # for a preview, which asks no model
PREVIEWS = 2  # compactions planned for previews at a time


class CompactionForm(Struct, frozen=True):
    """What a viewer fills in for a compaction: words for the summary, the size afterwards, another policy or model."""

    focus: str = ""
    goal: int | None = None
    policy: str = ""
    model: str = ""


class Preview(Struct, frozen=True):
    """The plan of a compaction that was not made yet, and how many messages have which status under it."""

    plan: Plan
    statuses: dict[str, int]


class Acts(Protocol):
    """Carries out what a viewer does; `by` is who it is, and what `history` is of may be seen by the viewer.

    Raises (all methods):
        WriteConflict: somebody else works on the conversation, or has changed it since.
        StoreError: the store cannot be written; nothing has changed.
        RefoldError: it cannot be done.
    """

    async def preview(self, history: History, form: CompactionForm) -> Preview | None:
        """Return what a compaction would do; None where there is nothing to compact."""

    async def compact(self, history: History, form: CompactionForm, by: str) -> str:
        """Compact, and return the id under which the conversation goes on; empty where there was nothing to compact."""

    async def rewind(self, history: History, to: Position, by: str, *, forward: bool) -> None:
        """Go to a position."""

    async def configure(self, history: History, settings: dict[str, Any], by: str) -> None:
        """Change the policy or the pinned messages; None takes a setting back."""


class StoreActs:
    """Acts on the sessions of a store; `sealed`: their texts are encrypted, and only a gateway compacts them."""

    def __init__(self, store: Store, *, sealed: bool = False, handlers: Handlers | None = None) -> None:
        self._store = store
        self._sealed = sealed
        self._handlers = Handlers() if handlers is None else handlers
        self._previews = asyncio.Semaphore(PREVIEWS)

    async def preview(self, history: History, form: CompactionForm) -> Preview | None:
        """Plan a compaction; a summary is stood for by an outline of about its length."""

        def work() -> Preview | None:
            session = self._session(history, form)
            handlers = STAND_IN if self._handlers.summarize is not None else self._handlers
            plan = session.plan(form.focus or None, force=True, handlers=handlers)
            messages = history.messages(session.ids)
            return preview_of([messages[id] for id in session.ids], session.plans, plan)

        async with self._previews:
            return await asyncio.to_thread(work)

    async def compact(self, history: History, form: CompactionForm, by: str) -> str:
        """Compact a session with its own settings."""

        def work() -> str:
            session = self._session(history, form, by)
            done = session.compact(form.focus or None, force=True, handlers=self._handlers)
            return session.id if done is not None and done.compacted else ""

        return await asyncio.to_thread(work)

    async def rewind(self, history: History, to: Position, by: str, *, forward: bool) -> None:
        """Write that the session went to a position, unless it has moved since it was read."""
        head = history.head
        await self._write(history, Write(Rewound(to, forward, by), tip=head.tip, revision=head.revision))

    async def configure(self, history: History, settings: dict[str, Any], by: str) -> None:
        """Write settings."""
        await self._write(history, Write(Configured(settings, by)))

    async def _write(self, history: History, write: Write) -> None:
        def work() -> None:
            with compaction_lease(self._store, history.head.id):
                self._store.write(history.head.id, (write,))

        await asyncio.to_thread(work)

    def _session(self, history: History, form: CompactionForm, by: str = "") -> Session:
        """Return the session with what the form says of this one compaction."""
        if self._sealed:
            raise UsageError("the store is encrypted: compact this conversation at the page of its gateway")
        session = Session(self._store, history.head.id, must_exist=True, actor=by)
        if session.head is None or session.head.seq != history.head.seq:
            raise WriteConflict(f"session {history.head.id} has changed since: look at it again")
        settings: SessionSettings = {}
        if form.policy:
            settings["policy"] = form.policy
        if form.goal is not None:
            settings["goal"] = form.goal
        if form.model:
            settings["model"] = form.model
        session.configure(remember=False, **settings)
        return session


def preview_of(messages: Sequence[Message], earlier: Sequence[Plan], plan: Plan) -> Preview | None:
    """Return what a plan does to the messages that are visible under the earlier plans; None where it does nothing."""
    if plan.empty:
        return None
    before, after = (_folded(messages, plans) for plans in (earlier, [*earlier, plan]))
    visible = {message.id for message in before}
    left = {message.id: message for message in after}
    originals = {message.id: message for message in before}
    statuses: dict[str, int] = {}
    for id in [*visible, *(id for id in left if id not in visible)]:
        status = status_of(originals.get(id), left.get(id, originals.get(id)), hidden=id not in left)  # type: ignore[arg-type]
        statuses[status.name] = statuses.get(status.name, 0) + 1
    return Preview(plan, statuses)


def _folded(messages: Iterable[Message], plans: Sequence[Plan]) -> tuple[Message, ...]:
    return fold(tuple(messages), [plan.edits for plan in plans], [plan.base.tip for plan in plans])
