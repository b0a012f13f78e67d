"""The conversations of a gateway by their ids, in memory or in the store, for those who act on them by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._gateway.conversations.planner import CompactionAborted
from refold._gateway.server.asgi import GatewayError
from refold._gateway.server.request_headers import RequestOptions
from refold._gateway.wire.routes import DIALECTS
from refold._gateway.wire.routes import Route as ProviderRoute
from refold.core.view import Cause

if TYPE_CHECKING:
    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.conversations.plan_store import PlanStore
    from refold._gateway.conversations.planner import Planner
    from refold._gateway.conversations.plugin import CompactionTarget
    from refold._gateway.conversations.tracker import ConversationTracker
    from refold._gateway.proxy import Exchanges
    from refold._gateway.wire.routes import Dialect
    from refold.core.plan import Plan
    from refold.core.policy import Policy

__all__ = ["CompactionWish", "ConversationLookup", "dialect_of"]


class CompactionWish(Struct, frozen=True):
    """What a client asks of a compaction: words for the summary, and how many tokens of the newest messages stay.

    `goal` is the size of the request afterwards, `policy` one other than the conversation's own.
    """

    instructions: str = ""
    keep_recent: int | None = None
    goal: int | None = None
    policy: Policy | None = None


class ConversationLookup:
    """Finds conversations by their ids, and compacts them by hand."""

    def __init__(self, tracker: ConversationTracker, keeper: PlanStore, planner: Planner, exchanges: Exchanges) -> None:
        self._tracks = tracker
        self._keeper = keeper
        self._planner = planner
        self._exchanges = exchanges

    def find(self, id: str, owner: str | None) -> Conversation | None:
        """Return the conversation in memory of an owner by its id, or its session's."""
        return next((each for each in self.visible(owner) if id and id in (each.id, each.session_id)), None)

    async def current(self, id: str, owner: str | None) -> Conversation | None:
        """Return what `find` does, unless another process has deleted it, which is forgotten here then."""
        conversation = self.find(id, owner)
        if conversation is not None and await self._keeper.is_deleted(conversation):
            self._tracks.forget(conversation.id, deleted=True)
            return None
        return conversation

    def visible(self, owner: str | None) -> list[Conversation]:
        """Return the conversations in memory of an owner, or of all."""
        return [each for each in self._tracks.all() if owner in (None, each.owner)]

    async def target(
        self, id: str, owner: str | None, options: RequestOptions, model: str = ""
    ) -> CompactionTarget | None:
        """Return a conversation of the gateway, in memory or in the store; None where its model is not known.

        Raises:
            SessionNotFound: the owner has none of that id.
        """
        conversation = await self.current(id, owner)
        if conversation is not None:
            return self._bound(conversation, options, model)
        head = await self._keeper.head(id, owner)
        messages = await self._keeper.messages(id)
        route = ProviderRoute(dialect_of(head.format), "compact", model or "stored")
        raw = b'{"%s":[%s]}' % (route.dialect.messages.encode(), messages)
        return await self._exchanges.target(route, replace(options, owner=head.owner), raw)

    async def forced(self, target: CompactionTarget, wish: CompactionWish) -> Plan | None:
        """Compact a conversation whatever its size, and return the plan; None where there is nothing to compact.

        Raises:
            GatewayError: the compaction failed, and the conversation exceeds the window (422).
        """
        conversation = target.conversation
        async with conversation.lock:
            await self._planner.read(target)
            if await self._keeper.sync_plans(conversation):
                conversation.render(target.bound)
            try:
                return await self._planner.compact(
                    target, Cause.MANUAL, wish.policy, instructions=wish.instructions, keep_recent=wish.keep_recent,
                    goal=wish.goal,
                )  # fmt: skip
            except CompactionAborted as failed:
                size = conversation.measure(target.bound, conversation.fixed_part(target.dialect, target.bound))
                if size <= target.bound.budget.input:
                    return None
                raise GatewayError(422, f"the conversation could not be compacted: {failed}", "compaction") from None

    async def rest(self, conversation: Conversation) -> None:
        """Let a conversation that was rewound be compacted again only when it has grown, or does not fit.

        The caller holds its lock. The rewind is done: the store is not asked, and may have the conversation no more.
        """
        target = self._bound(conversation, RequestOptions())
        if target is not None:
            await self._planner.read(target)
            bound = target.bound
            tokens = conversation.measure(bound, conversation.fixed_part(target.dialect, bound))
            conversation.begin_cooldown(tokens, bound.budget.window)

    def _bound(self, conversation: Conversation, options: RequestOptions, model: str = "") -> CompactionTarget | None:
        route = ProviderRoute(dialect_of(conversation.format.name), "compact", model)
        return self._exchanges.bind(conversation, route, options)


def dialect_of(format: str) -> Dialect:
    return next(each for each in DIALECTS.values() if each.format == format)
