"""Plans compactions: before a request, in the background, or after a provider error; one at a time per conversation."""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext, suppress
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._compaction.options import Options
from refold._gateway.conversations.best_plan import PlanningInput
from refold._gateway.conversations.failed import CompactionAborted, PlanConflict
from refold._gateway.conversations.planning import Planning, PlanningHung
from refold._gateway.conversations.store_access import finished
from refold._gateway.conversations.thrash import crowded_goal, goal_with_results, with_room
from refold._gateway.observability.logs import log_event
from refold._gateway.observability.metrics import NOTHING, reason_of
from refold._gateway.observability.tracing import compaction_span
from refold.core.budget import Share, Usage
from refold.core.plan import Base, Plan
from refold.core.policy import Policy
from refold.core.view import Cause
from refold.errors import RefoldError, StoreError, WriteConflict
from refold.models._thinking import SIGNED_BLOCKS
from refold.policies._internal import REPAIR_REQUEST, STRIP_MEDIA, drop_reasoning
from refold.sessions._session_options import with_keep_recent

if TYPE_CHECKING:
    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.conversations.plan_store import PlanStore
    from refold._gateway.conversations.plugin import CompactionTarget, RequestPlugin
    from refold._gateway.conversations.provenance import StaleThinking
    from refold._gateway.observability.metrics import Metrics
    from refold._gateway.settings import GatewaySettings
    from refold.core.budget import Budget
    from refold.handlers import Handlers
    from refold.models.provider_errors import ProviderError
    from refold.sessions._context_stats import CompactionStats

__all__ = ["CompactionAborted", "Planner", "RunningCompaction"]

MEASURED = 256  # plans whose time is remembered until they are in force
WAITING = "waiting"  # why a compaction that the trigger has started did not take place
AT_ONCE = 64 * 1024  # bytes that are read without leaving the event loop
PLAUSIBLE = 2  # a likely overflow is one where the request, as counted, fills at least one part in two of the window


class RunningCompaction(Struct, frozen=True):
    """A compaction that is planned now: by which policy, of how many messages, results of tools, and tokens."""

    policy: str
    messages: int
    targets: int
    tokens: int


class Planner:
    """Compacts conversations, each by one plan at a time."""

    def __init__(
        self,
        settings: GatewaySettings,
        handlers: Handlers,
        keeper: PlanStore,
        metrics: Metrics,
        lost: StaleThinking,
        plugin: RequestPlugin | None = None,
        *,
        apart: bool = False,
    ) -> None:
        self._settings = settings
        self._handlers = handlers
        self._planning = Planning(summarizes=handlers.summarize is not None, apart=apart)
        self._keeper = keeper
        self._metrics = metrics
        self._lost = lost
        self._plugin = plugin
        self.follows = not (settings.shadow or keeper.local)  # other processes may change a conversation
        self._works: set[asyncio.Task[None]] = set()
        self.running: dict[str, RunningCompaction] = {}  # by the id of the conversation
        self._seconds: dict[str, float] = {}  # that plans took which are not in force yet, by id

    async def compact_if_due(self, target: CompactionTarget, *, at_once: bool = False, instructions: str = "") -> str:
        """Measure a conversation and compact it where that is due; return why it was, or nothing.

        The caller holds the conversation's lock. Below the hard limit the work goes on beside the traffic, but not
        `at_once`.

        Raises:
            CompactionAborted: the compaction was due and came to nothing.
        """
        await self.read(target)
        if not target.conversation.is_current:
            await self.sync_plans(target)
        target = _with_room(target)
        conversation, bound = target.conversation, target.bound
        fixed_part = conversation.fixed_part(target.dialect, bound)
        tokens, limit = conversation.measure(bound, fixed_part), bound.budget.input
        waits = conversation.weigh(bound, fixed_part)
        thrashes = conversation.look_for_thrash(bound, fixed_part) is not None and not conversation.window_was_full
        if (
            waits
            or not (conversation.window_was_full or bound.due(tokens))
            or ((thrashes or tokens < conversation.cooldown_tokens) and tokens <= limit)
        ):
            early = not self._settings.shadow and (
                conversation.has_oversized_output(bound, bound.wakes)
                or (waits and conversation.has_oversized_output(bound, bound.first))
            )
            return (await self._early(target) if early else "") or (WAITING if waits else "")
        if self._settings.shadow:
            await self.compact(target, _cause(conversation))
            return "shadow"
        if self._settings.background and tokens <= limit and not (conversation.window_was_full or at_once):
            large = conversation.has_oversized_output(bound, bound.first) or conversation.has_oversized_output(
                bound, bound.wakes
            )
            if not large:  # which is cut before it is sent for the first time
                return await self._compact_in_background(target)
        return reason_of(await self.compact(target, _cause(conversation), instructions=instructions))

    async def _compact_in_background(self, target: CompactionTarget) -> str:
        """Begin a compaction in the background; a plan of the plug-in comes first, or waits for the room."""
        plugin = self._plugin
        if plugin is not None and plugin.has_pending(
            target.conversation
        ):  # its plan would invalidate one begun before it
            await plugin.apply_pending(target, self, patient=True)
        if plugin is None or not plugin.has_pending(target.conversation):
            self.begin(target)
            return "background"
        try:
            await self.compact(target, Cause.THRESHOLD)
        except CompactionAborted as failed:  # and nobody need know: the request fits
            self._metrics.failed(str(failed))
            return ""
        return Cause.THRESHOLD.value

    async def apply_pending(self, target: CompactionTarget) -> bool:
        """Let the plug-in add its plan to this request; return whether it did. The caller holds the lock."""
        return self._plugin is not None and await self._plugin.apply_pending(target, self)

    async def _early(self, target: CompactionTarget) -> str:
        """Let the steps of every call act on new output before it is sent for the first time; return what was done."""
        with target.conversation.same_cooldown():
            try:
                return reason_of(await self.compact(target, Cause.THRESHOLD))
            except CompactionAborted:
                return ""

    async def follow(self, target: CompactionTarget) -> bool:
        """Take over what another process has done to a conversation since; tell whether there may be something.

        The caller holds the conversation's lock.
        """
        if not await self._keeper.is_behind(target.conversation):
            return False
        await self.recognize(target)
        return True

    async def recognize(self, target: CompactionTarget) -> str:
        """Read a conversation and take over what other processes have planned for it; it is compacted for no reason."""
        await self.read(target)
        await self.sync_plans(target)
        return ""

    async def restore_production(self, target: CompactionTarget, *, tool: bool) -> None:
        """Take over what the store knows of a conversation where answers in it with thinking were not given here.

        What they were produced under tells whether it can be sent. With `tool` it is also asked whether the first
        request offered the recall tool. The caller holds the conversation's lock.
        """
        conversation = target.conversation
        decides = tool and conversation.production.tool is None and conversation.continues
        foreign = target.bound.binds_thinking and conversation.has_foreign_thinking()
        if not self._keeper.local and ((decides and not conversation.synced) or foreign):
            await self.recognize(target)
        if conversation.id in self._lost and not conversation.known_messages:
            await self.read(target)
            self._lost.restore(conversation.id, conversation.production, conversation.transcript.messages)
            conversation.render(target.bound)

    async def read(self, target: CompactionTarget) -> None:
        """Read what is new of a conversation, in a thread where that is much."""
        if target.conversation.unread_bytes() > AT_ONCE:
            await finished(asyncio.to_thread(target.conversation.read, target.bound))
        else:
            target.conversation.read(target.bound)

    def begin(self, target: CompactionTarget) -> None:
        """Begin a compaction beside the traffic, unless one is under way."""
        conversation = target.conversation
        if conversation.compacting:
            return
        making = asyncio.create_task(self._make_plan(target, Cause.THRESHOLD))
        conversation.begin_compaction(making)
        adopting = asyncio.create_task(self._adopt_when_made(target, making))
        self._works.add(adopting)
        adopting.add_done_callback(self._works.discard)

    async def compact(self, target: CompactionTarget, cause: Cause, policy: Policy | None = None,
                      usage: Usage | None = None, instructions: str = "",
                      keep_recent: int | None = None, goal: int | None = None) -> Plan:  # fmt: skip
        """Compact a conversation whose lock the caller holds, and put the plan in force.

        `keep_recent` is how many tokens of the newest messages stay, instead of the policy's own rule; `goal` is the
        size of the request afterwards.

        Raises:
            CompactionAborted: no plan could be made, or it would change nothing.
        """
        conversation = target.conversation
        async with nullcontext() if self._settings.shadow else self._keeper.lease(conversation):
            if await self.sync_plans(target):  # somebody else has done it meanwhile
                return _newest(conversation)
            plan = await self._begun_plan(conversation, cause)
            if plan is None:
                making = self._make_plan(target, cause, policy, usage, instructions, keep_recent, goal)
                if cause is Cause.MANUAL:
                    plan = await making
                else:  # what a client waits for that then leaves is there when it asks again
                    work = asyncio.create_task(making)
                    conversation.begin_compaction(work)
                    try:
                        plan = await asyncio.shield(work)
                    finally:
                        del work  # whose error, if any, holds this frame: a cycle, with the conversation in it
            try:
                await self._adopt(target, plan, plan.policy if policy is REPAIR_REQUEST else reason_of(plan))
            except PlanConflict:  # by one that was paused, or that could not reserve it: its plan holds
                if not await self.sync_plans(target):
                    raise
                return _newest(conversation)
        return plan

    async def preview(
        self,
        target: CompactionTarget,
        policy: Policy | None = None,
        instructions: str = "",
        goal: int | None = None,
        handlers: Handlers | None = None,
    ) -> Plan:
        """Return the plan that a compaction by hand would make; nothing changes. The caller holds the lock.

        Raises:
            CompactionAborted: no plan could be made, or it would change nothing.
        """
        with target.conversation.same_cooldown():
            return await self._make_plan(
                target, Cause.MANUAL, policy, instructions=instructions, goal=goal, handlers=handlers, preview=True
            )

    async def compact_session(
        self, session: str, instructions: str, keep_recent: int | None, model: str
    ) -> CompactionStats | None:
        """Compact a session of the library or of an agent in the gateway's store, with its own settings.

        Raises:
            RefoldError: what `refold.compact_session` raises.
        """
        return await self._keeper.compact_session(session, instructions, keep_recent, model, self._handlers)

    async def force(self, target: CompactionTarget, policy: Policy, *, partial: bool = False) -> None:
        """Put a plan in force whatever the size of the request; the caller holds the conversation's lock.

        With `partial` its result need not fit the input budget: a compaction may follow.

        Raises:
            CompactionAborted: it came to nothing.
        """
        with target.conversation.same_cooldown():
            await self._enforce(target, await self._make_plan(target, Cause.MANUAL, policy, partial=partial))

    async def sync_plans(self, target: CompactionTarget) -> bool:
        """Take over what others have planned for a conversation that is read; tell whether there was something new."""
        conversation, bound = target.conversation, target.bound
        changed = await self._keeper.sync_plans(conversation)
        if changed:
            conversation.render(bound)
        if conversation.rests:  # what a person took back is compacted again when it has grown, whoever gets it
            tokens = conversation.measure(bound, conversation.fixed_part(target.dialect, bound))
            conversation.begin_cooldown(tokens, bound.budget.window)
        return changed

    async def sent(self, target: CompactionTarget, *, tool: bool, plain: bool = False) -> None:
        """Note what the answer to a request is produced under that is about to be sent: plans, and the recall tool.

        `plain` says that it goes out as the client made it. The caller holds the conversation's lock.
        """
        conversation, bound = target.conversation, target.bound
        if not (tool or bound.binds_thinking) and conversation.format.name not in SIGNED_BLOCKS:
            return  # no later model of this conversation can ask
        production, plans = conversation.production, () if plain else conversation.plans
        binds, count = bound.binds_thinking and not plain, len(conversation.body.raws)
        under = tuple([plan.id for plan in plans]), tool, binds
        if production.covers(count, under):
            return
        await self.read(target)
        production.sent(Base(count, conversation.transcript.tip), plans, tool, binds)
        await self._keeper.produced(conversation)

    async def close(self) -> None:
        """Wait for work under way, so that what was planned is kept."""
        if self._works:
            await asyncio.wait(self._works, timeout=5)
        self._planning.close()

    async def compact_after_overflow(self, target: CompactionTarget, error: ProviderError) -> Plan:
        """Compact a conversation that the provider has refused for its size; the caller holds its lock.

        Raises:
            CompactionAborted: nothing can be done.
        """
        await self.read(target)
        target = _with_room(target)
        if error.kind == "request_too_large":
            return await self.compact(target, Cause.MANUAL, STRIP_MEDIA)
        if error.kind == "context_overflow" and error.confidence == "likely" and not _plausible(target):
            raise CompactionAborted("unlikely overflow")
        full = target.bound.budget.input
        requested = error.requested or full + 1  # whoever tells no number has said that it is more than fits
        usage = Usage(requested, covers=len(target.conversation.view)) if requested > full else None
        return await self.compact(target, Cause.OVERFLOW, None, usage)

    async def cure(self, target: CompactionTarget, error: ProviderError) -> None:
        """Remove the reasoning that the provider has refused; the caller holds the conversation's lock.

        Raises:
            CompactionAborted: there is none, or another process was first.
        """
        conversation = target.conversation
        await self.read(target)
        with conversation.same_cooldown():
            async with self._keeper.lease(conversation):
                if not await self.sync_plans(target):
                    await self._dropped(target, drop_reasoning(error))
                    if error.item:  # the messages that a compaction item stood for are read again without it
                        with suppress(CompactionAborted):
                            await self._dropped(target, drop_reasoning(error))

    async def _dropped(self, target: CompactionTarget, policy: Policy) -> None:
        plan = await self._make_plan(target, Cause.MANUAL, policy)
        await self._adopt(target, plan, plan.policy)

    async def _begun_plan(self, conversation: Conversation, cause: Cause) -> Plan | None:
        """Return the plan that was begun beside the traffic or for a client that has left, if it still is for this."""
        work = conversation.compaction_task
        if work is None or cause is Cause.MANUAL or (work.done() and (work.cancelled() or work.exception())):
            return None
        try:
            plan = await asyncio.shield(work)
        finally:
            del work  # as in `compact`
        return plan if _fits(conversation, plan) and (cause is not Cause.OVERFLOW or plan.cause is cause) else None

    async def _adopt_when_made(self, target: CompactionTarget, work: asyncio.Task[Plan]) -> None:
        conversation = target.conversation
        try:
            async with self._keeper.lease(conversation):
                plan = await work
            # Without the lease: a request that has the lock may wait for it. The revision tells who was first.
            async with conversation.lock:
                if not await self.sync_plans(target) and _fits(conversation, plan):
                    await self._adopt(target, plan, reason_of(plan))
        except CompactionAborted as failed:
            self._metrics.failed(str(failed))
        except StoreError:
            self._metrics.failed("store")
        finally:
            del work  # as in `compact`

    async def _make_plan(
        self,
        target: CompactionTarget,
        cause: Cause,
        policy: Policy | None = None,
        usage: Usage | None = None,
        instructions: str = "",
        keep_recent: int | None = None,
        goal: int | None = None,
        *,
        partial: bool = False,
        handlers: Handlers | None = None,
        preview: bool = False,
    ) -> Plan:
        conversation, bound = target.conversation, target.bound
        fixed_part = conversation.fixed_part(target.dialect, bound)
        messages, budget = conversation.transcript.messages[: _lasting(conversation)], bound.budget
        if closing := sum(map(bound.counter.message, conversation.transcript.messages[len(messages) :])):
            budget = replace(budget, output_reserve=min(budget.output_reserve + closing, budget.window - 1))
        options = Options(
            format=conversation.format.name, policy=policy or bound.policy, budget=budget, model=target.model,
            system=fixed_part.system, tools=fixed_part.tools, usage=usage or conversation.usage(), cause=cause,
            plans=conversation.plans, instructions=instructions or None, goal=goal, pinned=conversation.pinned,
        )  # fmt: skip
        options = options if keep_recent is None else with_keep_recent(options, keep_recent)
        by_size = policy is None and cause is not Cause.MANUAL
        if by_size:
            options = replace(options, goal=_goal(target, budget, fixed_part.tokens))
        too_large = by_size and (cause is not Cause.THRESHOLD or conversation.measure(bound, fixed_part) > budget.input)
        work = PlanningInput(
            messages, options, conversation.estimates, conversation.stale_edits(bound), handlers or self._handlers,
            too_large=too_large, assumed=bound.assumed, partial=partial,
        )  # fmt: skip
        size = conversation.measure(bound, fixed_part)
        if by_size and size < conversation.hung_tokens:  # it would take the process from all others once more
            raise CompactionAborted(PlanningHung.__name__)
        by = (policy or bound.policy).name
        running = RunningCompaction(
            by, len(conversation.view), sum(len(message.results) for message in conversation.view),
            size,
        )  # fmt: skip
        begun = monotonic()
        if not preview:
            self.running[conversation.id] = running
        with self._metrics.compacting(), compaction_span(target.model, conversation.id, by, cause.value) as traced:
            try:
                best = await self._planning.made_plan(work, len(conversation.body.body))
            except (RefoldError, PlanningHung) as error:
                conversation.begin_cooldown(size, bound.budget.window)
                if isinstance(error, PlanningHung):
                    conversation.mark_hung()
                raise CompactionAborted(type(error).__name__) from error
            except Exception as error:  # whatever a policy or summarizer of others raises, the request goes on
                raise CompactionAborted(type(error).__name__) from error
            finally:
                if self.running.get(conversation.id) is running:
                    del self.running[conversation.id]
            traced(best.plan)
        plan = best.plan
        conversation.begin_cooldown(plan.sizes.after, bound.budget.window)
        if plan.empty:
            raise CompactionAborted(NOTHING)
        if best.failed:
            if self._settings.strict and cause is Cause.THRESHOLD and plan.sizes.after > plan.sizes.limit:
                raise CompactionAborted(best.failed)
            self._metrics.failed(best.failed)
            log_event(
                logging.WARNING, "best plan used", conversation=conversation.id, failed=best.failed,
                configured=bound.policy.name, policy=plan.policy, after=plan.sizes.after, limit=plan.sizes.limit,
            )  # fmt: skip
        self._seconds[plan.id] = round(monotonic() - begun, 3)
        while len(self._seconds) > MEASURED:
            self._seconds.pop(next(iter(self._seconds)))
        return plan

    async def _adopt(self, target: CompactionTarget, plan: Plan, cause: str) -> None:
        conversation = target.conversation
        conversation.end_compaction()
        self._metrics.compacted(plan, "shadow" if self._settings.shadow else cause)
        if self._settings.shadow:
            conversation.record_shadow(plan)
            return
        before = conversation.thrashing
        await self._enforce(target, plan)
        conversation.mark_shortened()
        fixed_part = conversation.fixed_part(target.dialect, target.bound)
        if before is None and (thrashing := conversation.look_for_thrash(target.bound, fixed_part)) is not None:
            self._metrics.thrashes.inc()
            log_event(
                logging.WARNING, "thrashing", conversation=conversation.id, fixed=thrashing.fixed, room=thrashing.room,
                remedy="a larger window, fewer tools or a shorter system prompt",
            )  # fmt: skip

    async def _enforce(self, target: CompactionTarget, plan: Plan) -> None:
        conversation = target.conversation
        try:
            if not conversation.deleted:  # it may have been while the plan was made
                seconds = self._seconds.pop(plan.id, 0.0)
                await self._keeper.keep(conversation, plan, target.settings, target.actor, seconds)
        except WriteConflict:
            raise PlanConflict("another process was first") from None
        conversation.adopt(plan, target.bound)
        if conversation.deleted and conversation.session_id:
            await self._keeper.delete(conversation.session_id)


def _with_room(target: CompactionTarget) -> CompactionTarget:
    """Return a target whose reserve for an answer of no stated length leaves room for messages."""
    conversation, bound = target.conversation, target.bound
    if conversation.wants(target.dialect).output is not None:
        return target
    fixed = conversation.fixed_tokens(bound, conversation.fixed_part(target.dialect, bound))
    budget = with_room(bound.budget, fixed, conversation.request_size(bound) + conversation.unseen_size(bound))
    return target if budget is bound.budget else replace(target, bound=replace(bound, budget=budget))


def _goal(target: CompactionTarget, budget: Budget, fixed_apart: int) -> int | None:
    """Return the size to compact to; None where it is the policy's own, which knows of `fixed_apart` tokens that stay.

    Instructions that are messages stay as well, and so should results that the model has not seen: it would make the
    same calls again.
    """
    conversation, bound = target.conversation, target.bound
    fixed = conversation.fixed_tokens(bound, conversation.fixed_part(target.dialect, bound))
    if fixed >= budget.input:
        return None
    request, unseen = conversation.request_size(bound), conversation.unseen_size(bound)
    own = bound.policy.goal.tokens(budget, fixed_apart)
    goal = own
    if isinstance(bound.policy.goal, Share) and bound.policy.goal.min_message_share:
        goal = goal_with_results(bound.policy.goal.tokens(budget, fixed), budget.input, fixed, request, unseen)
    crowded = crowded_goal(conversation.thrashing, goal, budget.input, fixed, request + unseen)
    return goal if crowded is None and goal > own else crowded


def _plausible(target: CompactionTarget) -> bool:
    """Tell whether a request is large enough for an overflow that its refusal does not say for certain."""
    conversation, bound = target.conversation, target.bound
    tokens = conversation.measure(bound, conversation.fixed_part(target.dialect, bound))
    return bound.assumed or tokens * PLAUSIBLE >= bound.budget.window


def _cause(conversation: Conversation) -> Cause:
    return Cause.SILENT_OVERFLOW if conversation.window_was_full else Cause.THRESHOLD


def _lasting(conversation: Conversation) -> int:
    """Return how many messages will be in the next request too: some clients close each with a reminder of its own.

    What a plan in force was made for is among them.
    """
    messages = conversation.transcript.messages
    count, least = len(messages), conversation.plans[-1].base.length if conversation.plans else 1
    while count > least and messages[count - 1].role == "system":
        count -= 1
    return count


def _newest(conversation: Conversation) -> Plan:
    """Return the plan that another process has put in force.

    Raises:
        PlanConflict: it has taken the last one back instead.
    """
    if not conversation.plans:
        raise PlanConflict("another process took the compactions back")
    return conversation.plans[-1]


def _fits(conversation: Conversation, plan: Plan) -> bool:
    """Tell whether a plan made beside the traffic still is for this conversation."""
    messages, base = conversation.transcript.messages, plan.base
    same = 0 < base.length <= len(messages) and messages[base.length - 1].id == base.tip
    return same and plan.earlier == tuple(plan.id for plan in conversation.plans)
