"""Handles one chat request: prepares it, forwards it, relays the response, and repeats it after an overflow."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold import formats
from refold._gateway.conversations.failed import ConversationDeleted
from refold._gateway.conversations.planner import CompactionAborted
from refold._gateway.conversations.plugin import CompactionTarget
from refold._gateway.conversations.ready import Exchange, Ready
from refold._gateway.conversations.store_access import finished
from refold._gateway.conversations.tracker import ConversationLocked, open_body
from refold._gateway.observability.logs import log_request
from refold._gateway.observability.tracing import span, watched
from refold._gateway.recall.response_rounds import RecallRelay, RoundOverflow, recalls
from refold._gateway.recall.tool import offered
from refold._gateway.server.asgi import GatewayError
from refold._gateway.server.ownership import ClaimingSend
from refold._gateway.server.relay import relay
from refold._gateway.server.request_headers import decompressed
from refold._gateway.server.response_headers import response_headers, set_span_attributes
from refold._gateway.upstream.client import from_upstream
from refold._gateway.wire.body import spliced
from refold._gateway.wire.response_observer import EDGE, ResponseObserver, beginning, refused, usual_beginning
from refold._gateway.wire.routes import DIALECTS
from refold.core.budget import Share, Usage
from refold.core.view import Cause
from refold.errors import RefoldError, StoreError
from refold.models._thinking import SIGNED_BLOCKS
from refold.models.provider_errors import classify_error
from refold.policies._internal import REPAIR_REQUEST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Send

    from refold._gateway.conversations.budgets import Budgets
    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.conversations.planner import Planner
    from refold._gateway.conversations.tracker import ConversationTracker
    from refold._gateway.native.compaction import NativeCompaction
    from refold._gateway.observability.metrics import Metrics
    from refold._gateway.recall.deferred import DeferredRecall
    from refold._gateway.recall.response_merger import RecallRound
    from refold._gateway.server.ownership import Ownership
    from refold._gateway.server.request_headers import RequestOptions
    from refold._gateway.settings import GatewaySettings
    from refold._gateway.upstream.client import Upstream
    from refold._gateway.upstream.response import UpstreamResponse
    from refold._gateway.wire.routes import Route
    from refold.models.provider_errors import ProviderError

__all__ = ["Exchanges"]

WHOLE = Share(1.0, inclusive=True)  # a trigger: nothing is compacted before the input budget is used up
LONGEST_NAME = 256  # characters of a model's name: what is known of each name is remembered by it
LARGE = 4 * 1024 * 1024  # bytes of a body, from which on only one is opened or read at a time


class Exchanges:
    """Carries out exchanges."""

    def __init__(
        self,
        settings: GatewaySettings,
        upstream: Upstream,
        tracker: ConversationTracker,
        budgets: Budgets,
        planner: Planner,
        native: NativeCompaction,
        deferred: DeferredRecall,
        metrics: Metrics,
        ownership: Ownership,
    ) -> None:
        self._settings = settings
        self._ownership = ownership
        self._strict = settings.strict and not settings.shadow  # a shadow changes nothing
        self._upstream = upstream
        self._tracks = tracker
        self._budgets = budgets
        self._planner = planner
        self._native = native
        self._deferred = deferred
        self._metrics = metrics
        self._decompressing = asyncio.Semaphore(1)
        self._large_bodies = asyncio.Semaphore(1)  # held for work of this process alone, never for what may take long

    def load(self) -> None:
        """Load the modules that the first request of each sort would wait for."""
        for dialect in DIALECTS.values():
            formats.find(dialect.format)
        watched()

    async def decompressed(self, raw: bytes, encoding: bytes, limit: int) -> bytes | None:
        """Return a body decompressed beside the event loop: one at a time, since each may grow.

        Raises:
            GatewayError: it becomes larger than the limit (413).
        """
        async with self._decompressing:
            return await asyncio.to_thread(decompressed, raw, encoding, limit)

    def run(self, exchange: Exchange, send: Send, begun: float) -> Awaitable[None]:
        """Carry out one exchange."""
        return (self._traced if watched() else self._run)(exchange, send, begun)

    async def _traced(self, exchange: Exchange, send: Send, begun: float) -> None:
        route = exchange.route
        with span(route.dialect.provider, route.operation, exchange.url.host or "", exchange.headers) as traced:
            if traced is not None:
                await self._run(replace(exchange, headers=traced.headers), send, begun, traced.tell)

    async def _run(
        self, exchange: Exchange, send: Send, begun: float, tell: Callable[[str, Any], None] | None = None
    ) -> None:
        ready = await self.ready(exchange)
        claiming = None
        if ready.makes_ids and exchange.tenant is not None:
            send = claiming = ClaimingSend(self._ownership, exchange.tenant, send)
        self._metrics.overhead.observe(time.perf_counter() - begun)
        if exchange.native is not None:
            if exchange.native.pauses:
                self._metrics.exchanged(exchange.route.dialect.format, ready.done, 200)
                await exchange.native.send_paused(ready, send)
                log_request(exchange, ready, 200, time.perf_counter() - begun)
                return
            send = exchange.native.edited(send)
        answer = await self._send(exchange, ready)
        try:
            reading = ResponseObserver(answer.headers)
            first = usual_beginning(answer, reading) if ready.target is not None else b""
            if first is None:
                first = await beginning(answer, reading)
                while ready.done != "reasoning-removed" and refused(answer, reading):
                    again = await self._again(exchange, ready, answer.status, reading)
                    if again is None:
                        break
                    answer.close()
                    ready = again
                    answer = await self._send(exchange, ready)
                    reading = ResponseObserver(answer.headers)
                    first = await beginning(answer, reading)
            await self._carry(exchange, ready, answer, send, reading, first)
        finally:
            answer.close()  # and not released: what nobody reads any more is not drained
            if ready.target is not None:
                self._tracks.resized(ready.target.conversation)
            if tell is not None:
                set_span_attributes(ready, answer.status, exchange.route.operation, tell)
            log_request(exchange, ready, answer.status, time.perf_counter() - begun)
            if claiming is not None:
                await claiming.close()

    async def ready(self, exchange: Exchange) -> Ready:
        """Make a request ready: as it came, or with its messages under the plans in force.

        Raises:
            GatewayError: a compaction failed and the gateway is strict (503).
        """
        tenant, dialect = exchange.tenant, exchange.route.dialect
        makes_ids, failed = False, ""
        if tenant is not None and (exchange.options.bypass or exchange.plain is None):
            makes_ids = await self._ownership.check_body(dialect, tenant, exchange.plain)
        if exchange.options.bypass:
            await self._bypassed(exchange)
            return Ready(exchange.raw, plain=False, done="bypassed", makes_ids=makes_ids)
        if exchange.plain is None:
            return Ready(exchange.raw, plain=False, makes_ids=makes_ids)
        try:
            while (target := await self.target(exchange.route, exchange.options, exchange.plain)) is not None:
                try:
                    return await self._prepared(exchange, target)
                except ConversationDeleted:
                    self._tracks.forget(target.conversation.id, deleted=True)
        except GatewayError:
            raise
        except (
            ValueError,
            RefoldError,
            RecursionError,
        ) as error:  # the provider says its own error
            if self._strict and isinstance(error, RefoldError):
                raise _strict(type(error).__name__) from error
            failed = type(error).__name__ if isinstance(error, RefoldError) else ""
        if tenant is not None:
            makes_ids = await self._ownership.check_body(dialect, tenant, exchange.plain)
        return Ready(exchange.raw, plain=False, failed=failed, makes_ids=makes_ids)

    async def target(self, route: Route, options: RequestOptions, plain: bytes) -> CompactionTarget | None:
        """Return the conversation a body belongs to, with what bounds it; None where it holds none to be seen."""
        dialect = route.dialect
        shape = formats.find(dialect.format)
        opened = None
        if len(plain) >= LARGE and not self._tracks.continues(shape, options.session, plain, options.owner):
            async with self._large_bodies:
                opened = await asyncio.to_thread(open_body, dialect, shape, plain)
        while True:
            try:
                conversation = self._tracks.find(dialect, shape, options.session, plain, options.owner, opened)
                break
            except ConversationLocked as busy:
                async with busy.conversation.lock:
                    pass
        return None if conversation is None else self.bind(conversation, route, options)

    def bind(self, conversation: Conversation, route: Route, options: RequestOptions) -> CompactionTarget | None:
        """Return a conversation with what bounds its newest request; None where its history or model is not known."""
        dialect, wants = route.dialect, conversation.wants(route.dialect)
        model = route.model or wants.model
        if wants.elsewhere or not 0 < len(model) <= LONGEST_NAME:
            return None
        policy = conversation.policy or options.policy
        bound = self._budgets.bound(model, wants.output, policy, dialect.format, options.trigger, long=options.long)
        threshold = self._native.respected(conversation.body, route, model) if options.trigger is None else None
        if threshold is not None and threshold <= bound.budget.input:  # the provider compacts before there is no room
            bound = self._budgets.bound(model, wants.output, policy, dialect.format, WHOLE, long=options.long)
        return CompactionTarget(conversation, dialect, bound, model)

    async def _prepared(self, exchange: Exchange, target: CompactionTarget) -> Ready:
        conversation = target.conversation
        ready = Ready(exchange.raw, plain=False, target=target)
        async with conversation.lock:
            if exchange.tenant is not None:
                ready.makes_ids = await self._ownership.check_conversation(target.dialect, conversation)
            if self._planner.follows:
                target = ready.target = await self._as_chosen(exchange, target, self._planner.follow)
            chat = exchange.route.kind == "chat"
            if chat and (
                conversation.production.tool is None or target.bound.binds_thinking or not conversation.known_messages
            ):
                await self._begun(exchange, target, ready)
            if chat and exchange.native is not None:
                await exchange.native.clear(target)
            if conversation.unscanned_bytes() < LARGE:
                top = conversation.most_tokens(target.dialect)
            else:
                top = await finished(asyncio.to_thread(conversation.most_tokens, target.dialect))
            if self._settings.repair and chat:
                await self._repaired(target, ready)
            if (
                top is None
                or top >= target.bound.trigger
                or conversation.window_was_full
                or (chat and conversation.has_large_message(target.bound.wakes))
            ):
                if len(conversation.body.body) >= LARGE:
                    async with self._large_bodies:
                        await self._planner.read(target)
                if not conversation.synced:
                    target = await self._as_chosen(exchange, target, self._planner.recognize)
                try:
                    ready.reason = await self._compacted(exchange, target) or ready.reason
                except (CompactionAborted, StoreError) as failed:
                    reason = str(failed) if isinstance(failed, CompactionAborted) else "store"
                    self._metrics.failed(reason)
                    if self._strict:
                        raise _strict(reason) from None
                    ready.failed = reason
            if chat and exchange.native is not None:
                await exchange.native.settle(target)
            if chat and conversation.production.tool and await self._planner.apply_pending(target):
                ready.reason = ready.reason or "recall"
            if (
                conversation.plans
                or (conversation.production.tool and chat)
                or not conversation.is_unchanged(target.bound)
            ):
                ready.plain, ready.done = True, "compacted" if conversation.plans else "forwarded"
                await self._write(exchange, ready, target)
            elif chat:
                await self._planner.sent(target, tool=False)
            ready.reported = conversation.empty_report()
            if chat:
                conversation.mark_sent()
        return ready

    async def _as_chosen(
        self, exchange: Exchange, target: CompactionTarget, look: Callable[[CompactionTarget], Awaitable[object]]
    ) -> CompactionTarget:
        """Return a target under the policy that was chosen for its conversation, which another process may know.

        `look` takes over what the others have done.
        """
        before = target.conversation.policy
        await look(target)
        if target.conversation.policy != before:
            return self.bind(target.conversation, exchange.route, exchange.options) or target
        return target

    def _compacted(self, exchange: Exchange, target: CompactionTarget) -> Awaitable[str]:
        """Compact a conversation where that is due, and for a request that is no chat only read it; return why."""
        native = exchange.native
        if exchange.route.kind != "chat":
            return self._planner.recognize(target)
        if native is None:
            return self._planner.compact_if_due(target)
        return self._planner.compact_if_due(target, at_once=native.at_once, instructions=native.wish.instructions)

    async def _begun(self, exchange: Exchange, target: CompactionTarget, ready: Ready) -> None:
        """Learn what was sent of a conversation from elsewhere; decide whether the recall tool is among its tools.

        That is decided at its first request: tools stand before everything that a provider caches, and that models bind
        their thinking to.
        """
        conversation, url = target.conversation, exchange.url
        if self._settings.shadow:
            return
        try:
            await self._planner.restore_production(target, tool=exchange.options.recall)
        except StoreError:
            self._metrics.failed("store")
            ready.failed = "store"
        if conversation.production.tool is None:
            began = conversation.plans  # of a process that has stored no tool: it offered none
            offer = exchange.options.recall and not began and offered(
                conversation.body, target.dialect, b"", url.raw_path, url.raw_query_string
            )  # fmt: skip
            conversation.production.offer(bool(offer), first=not conversation.known_messages)

    async def _bypassed(self, exchange: Exchange) -> None:
        """Note of a request that goes past all plans that its answer is produced under none."""
        if exchange.route.kind != "chat" or exchange.route.dialect.format not in SIGNED_BLOCKS:
            return
        with suppress(ValueError, RefoldError, RecursionError):
            target = await self.target(exchange.route, exchange.options, exchange.plain or b"")
            if target is not None and target.conversation.production.ranges:
                async with target.conversation.lock:
                    await self._planner.sent(target, tool=False, plain=True)
                    target.conversation.mark_sent()

    async def _write(self, exchange: Exchange, ready: Ready, target: CompactionTarget) -> None:
        """Put the messages that stand for the client's into its body, and the recall tool where it is on."""
        conversation, url = target.conversation, exchange.url
        chat = exchange.route.kind == "chat"
        messages = conversation.write(target.bound)
        if conversation.production.tool and chat:
            ready.recalls = recalls(target, b"".join(messages), url.raw_path, url.raw_query_string)
        ready.body = ready.recalls.offer.body if ready.recalls is not None else spliced(conversation.body, *messages)
        if chat:
            await self._planner.sent(target, tool=ready.recalls is not None)

    async def _repaired(self, target: CompactionTarget, ready: Ready) -> None:
        """Repair a conversation that breaks its provider's rules."""
        await self._planner.read(target)
        if not target.conversation.is_faulty():
            return
        try:
            await self._planner.compact(target, Cause.MANUAL, REPAIR_REQUEST)
            ready.reason = "repair"
        except (CompactionAborted, StoreError) as failed:
            ready.failed = str(failed) if isinstance(failed, CompactionAborted) else "store"

    async def _again(self, exchange: Exchange, ready: Ready, status: int, reading: ResponseObserver) -> Ready | None:
        """Return the request changed where the provider refused it for its size or its reasoning, else None."""
        if self._settings.shadow or exchange.plain is None or exchange.route.kind != "chat":
            return None
        error = classify_error(_error(status, reading))
        if error.remedy == "drop_reasoning":
            return await self._cured(exchange, ready, error)
        if ready.done == "recovered":
            return None
        if error.kind not in ("context_overflow", "request_too_large") and error.remedy != "compact":
            return None
        certain = error.kind == "context_overflow" and error.confidence == "certain"
        if certain and error.limit and ready.target is not None and error.limit < ready.target.bound.budget.window:
            self._budgets.learn(ready.target.model, error.limit)
        empty = Ready(b"", done="recovered", reason="overflow")
        changed = await self._changed(
            exchange, ready, partial(self._planner.compact_after_overflow, error=error), empty
        )
        if changed is not None:
            self._metrics.retries.inc()
        return changed

    async def _cured(self, exchange: Exchange, ready: Ready, error: ProviderError) -> Ready | None:
        """Return a request without the reasoning that was refused; Gemini's goes out as it was once more before."""
        self._metrics.reasoning_retries.inc()
        if error.provider == "google" and ready.done != "resent":
            return replace(ready, done="resent", reason="reasoning")
        empty = Ready(b"", done="reasoning-removed", reason="reasoning")
        return await self._changed(exchange, ready, partial(self._planner.cure, error=error), empty)

    async def _changed(
        self, exchange: Exchange, ready: Ready, change: Callable[[CompactionTarget], Awaitable[object]], changed: Ready
    ) -> Ready | None:
        """Write a request anew after a change of its conversation; None where that fails, which headers then name."""
        assert exchange.plain is not None  # `_again` leaves such a request as it is
        try:
            target = await self.target(exchange.route, exchange.options, exchange.plain)
            if target is None:
                return None
            async with target.conversation.lock:
                await change(target)
                changed.target, changed.reported = target, target.conversation.empty_report()
                await self._write(exchange, changed, target)
        except (CompactionAborted, RefoldError, ValueError) as failed:
            ready.failed = str(failed) if isinstance(failed, CompactionAborted) else type(failed).__name__
            self._metrics.failed(ready.failed)
            return None
        return changed

    def _send(self, exchange: Exchange, ready: Ready) -> Awaitable[UpstreamResponse]:
        headers, edits = exchange.headers, ready.recalls is not None or exchange.native is not None
        if edits or (ready.plain and "content-encoding" in headers):
            headers = headers.copy()
            if ready.plain:
                headers.popall("content-encoding", None)
            if edits:  # an answer that may have to be changed
                headers["accept-encoding"] = "identity"
        return self._upstream.send("POST", exchange.url, headers, ready.body)

    async def _recalling(self, exchange: Exchange, ready: Ready, answer: UpstreamResponse, send: Send) -> None:
        """Carry an answer in which the recall tool may be called."""

        async def again(body: bytes) -> UpstreamResponse:
            return await self._send(exchange, replace(ready, body=body))

        async def later(recall_round: RecallRound) -> bool:
            assert ready.target is not None
            count = ready.reported.count if ready.reported is not None else 0
            return await self._deferred.remember(ready.target, recall_round, count)

        assert ready.recalls is not None
        name = exchange.route.dialect.format
        relaying = RecallRelay(
            ready.recalls, self._settings, self._metrics, send, name, again, response_headers(ready), later
        )
        try:
            self._learn(ready, await relaying.carry(answer))
        except RoundOverflow as overflowed:
            await self._anew(exchange, ready, overflowed, send)

    async def _anew(self, exchange: Exchange, ready: Ready, overflowed: RoundOverflow, send: Send) -> None:
        """Begin an answer anew whose rounds have outgrown the window: once, with a shorter conversation."""
        answer, body = overflowed.answer, overflowed.body
        try:
            reading = ResponseObserver(answer.headers)
            reading.feed(body)
            again = await self._again(exchange, ready, answer.status, reading) if ready.done != "recovered" else None
            if again is None:
                answer.unread(body)
                await relay(send, answer, [*from_upstream(answer), *response_headers(ready)])
                return
            answer.close()
            answer = await self._send(exchange, again)
            await self._carry(exchange, again, answer, send, ResponseObserver(answer.headers))
        finally:
            answer.close()

    async def _carry(
        self,
        exchange: Exchange,
        ready: Ready,
        answer: UpstreamResponse,
        send: Send,
        reading: ResponseObserver,
        first: bytes = b"",
    ) -> None:
        """Carry an answer, of which the beginning may have been read already."""
        name = exchange.route.dialect.format
        self._metrics.exchanged(name, ready.done, answer.status)
        if ready.target is not None and ready.plain and exchange.route.kind == "chat":
            self._metrics.spared(ready.target.conversation.saved_tokens)
        if ready.recalls is not None and answer.status == 200:
            if first:
                answer.unread(first)
            await self._recalling(exchange, ready, answer, send)
            return
        headers = [*from_upstream(answer), *response_headers(ready)]
        if ready.target is None or exchange.route.kind != "chat" or answer.status != 200:
            await relay(send, answer, headers, None, first)
            return
        await relay(send, answer, headers, reading.feed, first)
        self._learn(ready, reading)

    def _learn(self, ready: Ready, reading: ResponseObserver) -> None:
        """Take what an answer reported for the next look at its conversation."""
        target, report = ready.target, reading.usage()
        if target is None or ready.reported is None:
            return
        conversation, sent, budget = target.conversation, ready.reported, target.bound.budget
        if report is not None:
            self._metrics.reported(report)
            ready.usage = report.usage()
            full = not target.bound.assumed and reading.full(report, budget.window)
            conversation.observe_usage(replace(sent, usage=ready.usage), full=full)
        elif reading.mentions(b"error", EDGE):  # of a stream of which the client has got the beginning
            error = classify_error(_error(200, reading))
            if error.kind == "context_overflow" and error.confidence == "certain":
                usage = Usage(max(error.requested or 0, budget.input + 1))
                conversation.observe_usage(replace(sent, usage=usage), full=True)


def _error(status: int, reading: ResponseObserver) -> Any:
    """Return the error that the beginning of an answer holds."""
    body = reading.body()
    if status == 200:
        return body.get("error")
    return {**(body or {"message": reading.text.decode("utf-8", "replace")}), "status": status}


def _strict(reason: str) -> GatewayError:
    message = (
        f"the conversation could not be compacted ({reason}) and this gateway is strict: shorten it, or end --strict"
    )
    return GatewayError(503, message, "compaction")
