"""Deferred recall: calls of the recall tool made together with client tool calls are answered in the next request.

An answer of the model can call the recall tool and tools of the client at once. The gateway cannot answer its own call
then, since the provider wants all results together: `remember` keeps it, the client sees its own calls only, and
`apply_pending` makes a plan for the client's next request that puts the call and its result back. It is the plug-in of
the planner (`conversations/plugin.py`) and knows nothing else of it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._gateway.conversations.failed import CompactionAborted, PlanConflict
from refold._gateway.recall.deferred_call import WORDS, RestoreOriginals, is_back, later, spot
from refold._gateway.recall.response_merger import asking
from refold._gateway.recall.tool import NAME
from refold._recall.search import ROOM, RemovedMessages, room_for
from refold.core.policy import Step
from refold.errors import StoreError

if TYPE_CHECKING:
    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.conversations.plan_store import PlanStore
    from refold._gateway.conversations.plugin import CompactionTarget, PlanActions
    from refold._gateway.observability.metrics import Metrics
    from refold._gateway.recall.deferred_call import DeferredCall
    from refold._gateway.recall.response_merger import RecallRound
    from refold._gateway.settings import GatewaySettings

__all__ = ["DeferredRecall"]

ENOUGH = 1_000  # tokens of originals a call that are worth no compaction


class DeferredRecall:
    """Remembers calls of the recall tool made together with client tool calls, and answers them a request later."""

    def __init__(self, settings: GatewaySettings, keeper: PlanStore, metrics: Metrics) -> None:
        self._settings = settings
        self._keeper = keeper
        self._metrics = metrics

    async def remember(self, target: CompactionTarget, recall_round: RecallRound, count: int) -> bool:
        """Remember the calls of a round for the next request; tell whether there is anything that it will bring.

        `count` are the messages of the request that was answered.
        """
        conversation = target.conversation
        pending = later(recall_round, count, conversation.id)
        if pending is None:
            return False
        await self._keeper.remember(conversation, pending)
        return True

    async def apply_pending(self, target: CompactionTarget, actions: PlanActions, *, patient: bool = False) -> bool:
        """Activate a plan that answers the pending calls; return whether there were any.

        The caller holds the conversation's lock, and a compaction that was due has been made. With `patient` it has
        not yet, and calls without room wait for it. Calls that fail are discarded; the request goes on without them.
        """
        conversation = target.conversation
        if self._settings.shadow or (
            conversation.pending_recall is None and (self._keeper.local or not conversation.plans)
        ):
            return False
        try:
            await actions.read(target)
            if not self._keeper.local and (
                conversation.pending_recall is not None or conversation.answers_unseen() > 1
            ):
                await actions.sync_plans(target)
            try:
                return await self._apply(target, actions, patient=patient)
            except PlanConflict:  # by a compaction, or by one that brings the same
                await actions.sync_plans(target)
                return await self._apply(target, actions, patient=patient)
        except Exception as error:  # whatever it is, the request goes on
            named = str(error) if isinstance(error, CompactionAborted) else type(error).__name__
            self._metrics.failed("store" if isinstance(error, StoreError) else named)
            self._discard(conversation)
            return False

    def has_pending(self, conversation: Conversation) -> bool:
        """Return whether calls of the recall tool still wait to be answered with this very request."""
        return self._waiting(conversation) is not None

    def _waiting(self, conversation: Conversation) -> DeferredCall | None:
        """Return what waits for this very request; what its conversation has gone past is let go."""
        pending = conversation.pending_recall
        if pending is None or spot(conversation.view, pending.client_calls) is not None:
            return pending
        if is_back(conversation.plans, pending):
            conversation.defer_recall(None)
        elif any(message.role == "assistant" for message in conversation.transcript.messages[pending.count :]):
            self._discard(conversation)
        return None

    async def _apply(self, target: CompactionTarget, actions: PlanActions, *, patient: bool) -> bool:
        conversation, bound = target.conversation, target.bound
        pending = self._waiting(conversation)
        if pending is None:
            return False
        room = self._room(target, pending, patient=patient)
        if room is None:
            return False
        queries = [asking(call.arguments) for call in pending.calls]
        originals = RemovedMessages(conversation.transcript.messages, conversation.plans, bound.counter)
        texts = tuple(await asyncio.to_thread(originals.answers, queries, room))
        stage = RestoreOriginals(pending.calls, texts, pending.client_calls, WORDS[conversation.format.name])
        policy = replace(bound.policy, name=NAME, steps=(Step(stage, label=NAME),), after_overflow=None)
        await actions.force(target, policy)
        conversation.defer_recall(None)
        self._metrics.recalled("deferred", len(pending.calls))
        return True

    def _room(self, target: CompactionTarget, pending: DeferredCall, *, patient: bool) -> int | None:
        """Return the tokens that originals may take; None where not even words that say so have room."""
        conversation, bound, count = target.conversation, target.bound, len(pending.calls)
        size = conversation.measure(bound, conversation.fixed_part(target.dialect, bound))
        room = room_for(bound.budget, size, self._settings.recall_tokens)
        if (below := (bound.trigger - size) // 2) >= ENOUGH * count:
            room = min(room, below)  # it stays in the conversation: the next request is not to be compacted for it
        if room // count >= ROOM:
            return room
        at_work = (
            conversation.compaction_task is not None and not conversation.compaction_task.done()
        )  # on a plan that would come to nothing by this one
        if not patient and not at_work and bound.budget.input - size >= ROOM * count:
            return room
        if not patient:
            self._discard(conversation)
        return None

    def _discard(self, conversation: Conversation) -> None:
        pending = conversation.pending_recall
        conversation.defer_recall(None)
        if pending is not None and pending.home == conversation.id:
            self._metrics.recalled("dropped", len(pending.calls))
