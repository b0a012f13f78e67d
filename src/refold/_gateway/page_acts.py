"""Acts of the page on conversations of a gateway: those in memory change at once, so that the next request is other."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold import policies
from refold._gateway.conversations.conversation import within
from refold._gateway.conversations.lookup import CompactionWish
from refold._gateway.conversations.planner import CompactionAborted
from refold._gateway.server.asgi import GatewayError
from refold._gateway.server.request_headers import RequestOptions
from refold._page.acts import STAND_IN, StoreActs, preview_of
from refold.core.messages import MessageId
from refold.errors import UsageError, WriteConflict
from refold.sessions._saved_settings import CHOSEN
from refold.sessions._stores.protocol import GATEWAY_IDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.conversations.lookup import ConversationLookup
    from refold._gateway.conversations.plan_store import PlanStore
    from refold._gateway.conversations.planner import Planner
    from refold._gateway.conversations.plugin import CompactionTarget
    from refold._page.acts import CompactionForm, Preview
    from refold._page.history import History
    from refold.handlers import Handlers
    from refold.sessions import Store
    from refold.sessions._entries import Position

__all__ = ["GatewayActs"]

PATIENCE = 10.0  # seconds for which an act waits until a request under way has its conversation


class GatewayActs:
    """Acts on the conversations of a gateway, and on the other sessions of its store."""

    def __init__(
        self, store: Store, keeper: PlanStore, planner: Planner, lookup: ConversationLookup, handlers: Handlers
    ) -> None:
        self._keeper = keeper
        self._planner = planner
        self._lookup = lookup
        self._handlers = handlers
        self._sessions = StoreActs(store, handlers=handlers)

    async def preview(self, history: History, form: CompactionForm) -> Preview | None:
        """Plan a compaction; a summary is stood for by an outline of about its length."""
        if not self._is_ours(history):
            return await self._sessions.preview(history, form)
        target = await self._target(history, form.model)
        conversation = target.conversation
        handlers = STAND_IN if self._handlers.summarize is not None else None
        policy = policies.find(form.policy) if form.policy else None
        async with self._reserved(conversation):
            await self._planner.recognize(target)
            earlier = conversation.plans
            try:
                plan = await self._planner.preview(target, policy, form.focus, form.goal, handlers)
            except CompactionAborted:
                return None
            messages = conversation.transcript.messages
        return await asyncio.to_thread(preview_of, messages, earlier, plan)

    async def compact(self, history: History, form: CompactionForm, by: str) -> str:
        """Compact a conversation with the policy that is in force for it, or that of the form."""
        if not self._is_ours(history):
            return await self._sessions.compact(history, form, by)
        target = replace(await self._target(history, form.model), actor=by)
        async with self._reserved(target.conversation):
            pass  # a viewer is told that requests have it; `forced` waits for them as long as they take
        policy = policies.find(form.policy) if form.policy else None
        try:
            plan = await self._lookup.forced(target, CompactionWish(form.focus, None, form.goal, policy))
        except CompactionAborted:
            return ""
        except GatewayError as error:
            raise UsageError(str(error)) from None
        return "" if plan is None else target.conversation.session_id or target.conversation.id

    async def rewind(self, history: History, to: Position, by: str, *, forward: bool) -> None:
        """Put the plans of a position in force; a client sends all messages again, so these stay."""
        conversation = self._in_memory(history)
        if conversation is None:
            await self._sessions.rewind(history, to, by, forward=forward)
            return
        async with self._reserved(conversation):
            if conversation.unsaved:
                raise WriteConflict("the store has failed: plans of this conversation are still to be written")
            known = {plan.id: plan for plan in conversation.plans}
            missing = [id for id in to.plans if id not in known]
            if missing:
                known |= {plan.id: plan for plan in await self._keeper.known_plans(conversation.session_id, missing)}
            plans = tuple(known[id] for id in to.plans if id in known)
            if plans != within(plans, len(conversation.body.raws)) or len(plans) < len(to.plans):
                raise UsageError("the client has changed what these compactions were made for")
            revision = None
            if conversation.session_id:
                revision = await self._keeper.rewound(conversation.session_id, to.plans, by, forward=forward)
            conversation.rewind(plans, revision, stored=bool(conversation.session_id))
            await self._lookup.rest(conversation)

    async def configure(self, history: History, settings: dict[str, Any], by: str) -> None:
        """Choose a policy for a conversation, or pin messages of it: its messages are stored from then on."""
        conversation = self._in_memory(history)
        if conversation is None:
            await self._sessions.configure(history, settings, by)
            return
        target = await self._target(history)
        async with self._reserved(conversation):
            await self._planner.recognize(target)
            ids = settings.get("pinned", conversation.pinned) or ()
            policy = settings.get(CHOSEN, conversation.policy) or ""
            stored = {message.id for message in conversation.transcript.messages}
            if not stored.issuperset(ids):
                ids = [_read_id(conversation, id) for id in ids]
                settings = settings | {"pinned": list(ids)}
            await self._keeper.configure(conversation, settings, by)
            conversation.configure(policy, tuple(map(MessageId, ids)))

    def _in_memory(self, history: History) -> Conversation | None:
        return self._lookup.find(history.head.id, None)

    def _is_ours(self, history: History) -> bool:
        return self._in_memory(history) is not None or history.head.id.startswith(GATEWAY_IDS)

    async def _target(self, history: History, model: str = "") -> CompactionTarget:
        target = await self._lookup.target(history.head.id, None, RequestOptions(), model)
        if target is None:
            raise UsageError("the model of this conversation is not known here: name it")
        return target

    @asynccontextmanager
    async def _reserved(self, conversation: Conversation) -> AsyncIterator[None]:
        """Hold the lock of a conversation.

        Raises:
            WriteConflict: requests under way hold it.
        """
        try:
            await asyncio.wait_for(conversation.lock.acquire(), PATIENCE)
        except TimeoutError:
            raise WriteConflict("the gateway is at work on this conversation") from None
        try:
            yield
        finally:
            conversation.lock.release()


def _read_id(conversation: Conversation, id: str) -> str:
    """Return the id of a message that the page has named by its place, since it was not read then."""
    place = id.removeprefix("live:")
    messages = conversation.transcript.messages
    return messages[int(place)].id if place.isdecimal() and int(place) < len(messages) else id
