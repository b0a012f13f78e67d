"""Handles what clients ask of their provider's own compaction, by route and model.

Theory of operation. Three modes. `pass`: the provider compacts; the gateway forwards what was asked, and below the hard
limit leaves it to the provider's own threshold. `shadow`: the same, and the originals behind each item that a provider
returns are kept in the store. `emulate`: for an upstream that has no compaction; the gateway takes the question out of
the request, makes the plans that answer it, and puts the answer into the response.

In every mode an item whose history is known here and that its upstream could not read is replaced by that history
before anything else looks at the request. So the rest of the gateway sees the same conversation as if its client had
never dropped a message: plans, recall, rewind and the bytes sent upstream go on. To a client an item is an offer to
send less; a client that loses it loses nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from refold import policies
from refold._gateway.conversations.planner import CompactionAborted
from refold._gateway.native.answers import (
    compacted_message,
    compaction_result,
    event_bytes,
    local_response,
    message_events,
    response_events,
)
from refold._gateway.native.clearing import (
    applied_edits,
    clearable,
    clearing_policy,
    is_clearing,
    older_thinking,
    saving,
)
from refold._gateway.native.expansion import Expansion
from refold._gateway.native.items import (
    RecordedItem,
    Reference,
    Sealer,
    compaction_block,
    compaction_item,
    digest_of,
    long_form,
    words_of,
)
from refold._gateway.native.response_editing import AnthropicEdits, ResponseEditor, ResponsesEdits, ResponseTap
from refold._gateway.native.wishes import (
    ASKING,
    BETAS,
    ITEMS,
    TRIGGER,
    ClearThinking,
    ClearToolUses,
    Wish,
    provider_threshold,
    wish_of,
)
from refold._gateway.observability.metrics import NEW_OUTPUT, reason_of
from refold._gateway.server.response_headers import response_headers
from refold._gateway.wire.body import find_any, native, opened, rebuilt
from refold._gateway.wire.routes import ROUTES
from refold.core._json import Json, mapping, string_of
from refold.core.view import Cause
from refold.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Message, Send

    from refold._gateway.conversations.plan_store import PlanStore
    from refold._gateway.conversations.planner import Planner
    from refold._gateway.conversations.plugin import CompactionTarget
    from refold._gateway.conversations.ready import Exchange, Ready
    from refold._gateway.conversations.tracker import ConversationTracker
    from refold._gateway.observability.metrics import Metrics
    from refold._gateway.server.request_headers import RequestOptions
    from refold._gateway.settings import GatewaySettings
    from refold._gateway.wire.body import Bytes, ParsedBody
    from refold._gateway.wire.routes import Route
    from refold.core.plan import Plan

__all__ = ["NativeCompaction", "NativeExchange"]

FORMATS = frozenset({"anthropic", "openai-responses"})
WORD = b"compaction"
BETA = "anthropic-beta"
ITEM = re.compile(rb'"type"\s*:\s*"(?:%s|%s)"' % ("|".join(sorted(ITEMS)).encode(), TRIGGER.encode()))
QUESTIONS = tuple(b'"%b"' % key.encode() for key in ASKING)
WINDOW = 1024 * 1024  # bytes that are searched in one call, in which no other thread runs
LONGEST_ITEM = 4_096  # bytes in which the type of an item stands, blanks included
LARGE = 4 * 1024 * 1024  # bytes of a body that is searched beside the event loop
ANSWERED = 10_000  # conversations of which it is remembered for which plan their client got an item
USER_BYTES = 80_000  # bytes of the newest messages of the user that stand beside an item of OpenAI's
REST = 0.05  # share of its trigger that a further clearing must free
SMALLER = 0.5  # share of its size from which a history that is to be compacted is taken to be too large


class NativeCompaction:
    """The compaction of the providers, for all exchanges of a gateway."""

    def __init__(
        self, settings: GatewaySettings, tracker: ConversationTracker, keeper: PlanStore, planner: Planner,
        metrics: Metrics,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._keeper = keeper
        self.planner = planner
        self.metrics = metrics
        self._sealer = Sealer(settings.store_key, tracker.salt)
        self.expansion = Expansion(tracker, keeper, self._sealer)
        self._answered: OrderedDict[str, str] = OrderedDict()
        by_route = settings.route_native_compaction
        self._by_format = {format: by_route.get(name, settings.native_compaction) for name, format in ROUTES.items()}

    def mode(self, route: Route, model: str) -> str:
        """Return the mode for a request: a model's setting before its route's, and that before the general one."""
        settings, dialect = self._settings, route.dialect
        named = settings.model_native_compaction.get(model) or self._by_format.get(dialect.format)
        return named or ("pass" if settings.is_vendor(dialect.provider) else "emulate")

    def respected(self, body: ParsedBody, route: Route, model: str) -> int | None:
        """Return the tokens from which the provider compacts a request by itself; None where it does not."""
        managed = body.get("context_management") if route.dialect.format in FORMATS else None
        if managed is None or self.mode(route, model) == "emulate":
            return None
        return provider_threshold(managed, route.dialect.format)

    def may_concern(self, exchange: Exchange) -> bool:
        """Tell whether `begin` has to look at an exchange, which may concern its provider's compaction."""
        return exchange.route.dialect.format in FORMATS and not (exchange.options.bypass or self._settings.shadow)

    async def begin(self, exchange: Exchange) -> NativeExchange | None:
        """Return the exchange as the rest of the gateway is to see it; None where nothing of it is to be changed.

        Raises:
            GatewayError: a compaction item cannot be read here (400).
        """
        route, plain, format = exchange.route, exchange.plain, exchange.route.dialect.format
        if plain is None:
            return None
        items, asks = await asyncio.to_thread(_marks, plain) if len(plain) >= LARGE else _marks(plain)
        betas = any(_without_betas(value) != value for value in exchange.headers.getall(BETA, ()))
        if not (items or asks or betas or route.kind == "compact"):
            return None
        await self._sealer.prepare()
        try:
            body = _opened(plain, route)
            if body is None:
                return None
            model = route.model or string_of(body.get("model"))
            mode = self.mode(route, model)
            wish = Wish(now=True) if route.kind == "compact" else wish_of(body, format)
            expanded = await self.expansion.expand(
                body.raws, format, exchange.options.owner, upstream=str(exchange.url.origin()),
                foreign=mode == "emulate",
            )  # fmt: skip
        except (ValueError, RecursionError):  # the provider says its own error
            return None
        changed = expanded.raws is not body.raws
        if mode != "emulate":
            records = mode == "shadow" and not wish.nothing
            if not (changed or records):
                return None
            plain = rebuilt(body, route.dialect.messages, expanded.raws) if changed else plain
            return NativeExchange(self, exchange, plain, Wish(), model, body, expanded.plans, records=records)
        if not (asks or betas or changed or wish.now):
            return None
        raws = expanded.raws
        if format == "openai-responses" and raws and TRIGGER.encode() in bytes(raws[-1]):
            raws = raws[:-1]
        plain = rebuilt(body, route.dialect.messages, raws, without=ASKING)
        headers = exchange.headers.copy()
        for value in headers.popall(BETA, ()):
            if remaining := _without_betas(value):
                headers.add(BETA, remaining)
        exchange = replace(exchange, headers=headers)
        return NativeExchange(self, exchange, plain, wish, model, body, expanded.plans)

    def first_answer(self, conversation: str, plan: str) -> bool:
        """Tell whether the client of a conversation has not got an item for a plan yet; from now on it has."""
        known = self._answered.pop(conversation, None)
        self._answered[conversation] = plan
        if len(self._answered) > ANSWERED:
            self._answered.popitem(last=False)
        return known != plan

    async def refer(self, target: CompactionTarget) -> Reference:
        """Return a reference to all messages of the newest request, and keep them; the caller holds the lock."""
        conversation = target.conversation
        await self.planner.read(target)
        await self._keeper.keep_history(conversation)
        transcript = conversation.transcript
        return Reference(
            conversation.id, conversation.session_id, len(transcript), transcript.tip, conversation.applied,
            conversation.owner,
        )  # fmt: skip

    async def item(self, target: CompactionTarget) -> Json:
        """Return an item that stands for all messages of the newest request; the caller holds the lock."""
        reference, words = await self.refer(target), words_of(target.conversation.view)
        if target.dialect.format == "anthropic":
            return compaction_block(self._sealer.sealed(reference), words)
        return compaction_item(self._sealer.sealed(replace(reference, words=words)))

    async def record(self, items: list[Json], reference: Reference, upstream: str, target: CompactionTarget) -> None:
        """Keep which history stands behind items that a provider has made."""
        for item in items:
            recorded = RecordedItem(digest_of(item), upstream, reference)
            self.expansion.record(recorded)
            with suppress(StoreError):  # counted and logged where it was raised; it is known here all the same
                await self._keeper.note_item(target.conversation, recorded)


class NativeExchange:
    """A request that concerns the provider's own compaction; `exchange` is what the rest of the gateway sees of it."""

    def __init__(
        self, service: NativeCompaction, exchange: Exchange, plain: bytes, wish: Wish, model: str, body: ParsedBody,
        plans: frozenset[str], *, records: bool = False,
    ) -> None:  # fmt: skip
        self._service = service
        self._format = exchange.route.dialect.format
        self._model = model
        self._body = body
        self._plans = plans
        self._records = records
        self._item: Json | None = None
        self._applied: list[Json] = []
        self._recording: tuple[Reference, CompactionTarget] | None = None
        self.wish = wish
        options = exchange.options
        if wish.threshold and options.trigger is None:
            options = replace(options, trigger=policies.threshold(wish.threshold))
        headers = exchange.headers.copy()
        headers.popall("content-encoding", None)
        self.exchange = replace(exchange, raw=plain, plain=plain, options=options, headers=headers, native=self)

    @property
    def kind(self) -> str:
        """What the request has to do with the provider's compaction, as logs tell it."""
        wish = self.wish
        if wish.now:
            return "compaction"
        return "threshold" if wish.compacts else "edits" if wish.reports else "items"

    @property
    def at_once(self) -> bool:
        """Whether a compaction that is due is awaited, since the answer is to begin with it."""
        return self.wish.compacts

    async def clear(self, target: CompactionTarget) -> None:
        """Make the plans that the edits of the request ask for; the caller holds the conversation's lock.

        An edit that comes to nothing is not reported as applied.
        """
        conversation = target.conversation
        for wish in self.wish.clears:
            if isinstance(wish, ClearThinking) and wish.keep is None:
                continue
            top = conversation.most_tokens(target.dialect)
            if isinstance(wish, ClearToolUses) and wish.tokens is not None and top is not None and top < wish.tokens:
                continue
            try:
                await self._service.planner.recognize(target)
                if self._is_due(wish, target):
                    await self._service.planner.force(target, clearing_policy(wish), partial=True)
            except (CompactionAborted, StoreError) as failed:
                self._service.metrics.failed(str(failed) if isinstance(failed, CompactionAborted) else "store")

    def _is_due(self, wish: ClearToolUses | ClearThinking, target: CompactionTarget) -> bool:
        conversation = target.conversation
        if isinstance(wish, ClearThinking):
            return next(older_thinking(conversation.view, wish.keep or 0), None) is not None
        if wish.tokens is None:
            if sum(len(message.results) for message in conversation.view) < wish.uses:
                return False
        elif conversation.measure(target.bound, conversation.fixed_part(target.dialect, target.bound)) < wish.tokens:
            return False
        again = any(is_clearing(plan) for plan in conversation.plans)
        least = max(wish.least, int((wish.tokens or 0) * REST) if again else 0)  # else each call rewrites the cache
        results = clearable(conversation.view, wish)
        return bool(results) and saving(results) >= least

    async def settle(self, target: CompactionTarget) -> None:
        """Make what the answer is to say of the plans now in force; the caller holds the conversation's lock."""
        conversation = target.conversation
        if self.wish.reports and any(is_clearing(plan) for plan in conversation.plans):
            self._applied = applied_edits(conversation.plans, conversation.transcript.messages)
        plan = next((plan for plan in reversed(conversation.plans) if _compacts(plan, target)), None)
        if self._records:
            self._recording = await self._service.refer(target), target
        elif (
            self.wish.compacts
            and plan is not None
            and plan.id not in self._plans
            and self._service.first_answer(conversation.id, plan.id)
        ):
            self._item = await self._service.item(target)

    @property
    def pauses(self) -> bool:
        """Whether the answer is the compaction that was made, and nothing is sent upstream."""
        return self.wish.pause and self._item is not None

    async def send_paused(self, ready: Ready, send: Send) -> None:
        """Send the answer to a request that asked for a pause after a compaction."""
        assert ready.target is not None
        assert self._item is not None
        response = self._response(ready.target.conversation.id, self._item, dict(response_headers(ready)))
        await response({"type": "http"}, _nothing, send)

    async def smaller(self, target: CompactionTarget) -> RequestOptions:
        """Return the options under which a request that asks for a compaction is above the trigger of its policy."""
        async with target.conversation.lock:
            await self._service.planner.recognize(target)
            size = target.conversation.measure(
                target.bound, target.conversation.fixed_part(target.dialect, target.bound)
            )
        return replace(self.exchange.options, trigger=policies.threshold(max(int(size * SMALLER), 1)))

    async def answer(self, target: CompactionTarget, plan: Plan | None) -> Response:
        """Return the answer to a request that asks for a compaction alone, after it was made."""
        conversation = target.conversation
        async with conversation.lock:
            item = await self._service.item(target)
            size = conversation.measure(target.bound, conversation.fixed_part(target.dialect, target.bound))
            raws = list(conversation.body.raws)
        facts = {b"x-refold-done": b"compacted", b"x-refold-conversation": conversation.id.encode()}
        if plan is not None:
            facts[b"x-refold-plan"] = plan.id.encode()
        if self.exchange.route.kind != "compact":
            return self._response(conversation.id, item, facts)
        before, after = (plan.sizes.before, plan.sizes.after) if plan else (size, size)
        result = compaction_result(conversation.id, [*_users(raws), item], before, after)
        return _json(result, facts)

    def _response(self, id: str, item: Json, facts: dict[bytes, bytes]) -> Response:
        if self._format == "anthropic":
            whole = compacted_message(id, self._model, item, self._applied if self.wish.reports else None)
        else:
            whole = local_response(id, self._model, [item], self._body)
        if self._body.get("stream") is not True:
            return _json(whole, facts)
        events = message_events(whole) if self._format == "anthropic" else response_events(whole)
        return Response(event_bytes(events), 200, _decoded(facts), "text/event-stream")

    def edited(self, send: Send) -> Send:
        """Return a function that sends a response on with what was made for it, or keeps what it holds."""
        if self._records:
            return ResponseTap(send, self._format, self._take)
        return send if self.wish.nothing else ResponseEditor(send, self._edits)

    def _edits(self) -> AnthropicEdits | ResponsesEdits | None:
        if self._format == "anthropic":
            counts = self.exchange.route.kind != "chat"  # where nothing of this kind is answered
            reports = self._applied if self.wish.reports and not counts else None
            return None if reports is None and self._item is None else AnthropicEdits(self._item, reports)
        return None if self._item is None else ResponsesEdits(self._item)

    async def _take(self, items: list[Json]) -> None:
        if items and self._recording is not None:
            reference, target = self._recording
            await self._service.record(items, reference, str(self.exchange.url.origin()), target)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}  # a response that is sent at once asks for nothing


def _compacts(plan: Plan, target: CompactionTarget) -> bool:
    """Tell whether a plan has shortened a history, and not only new output or what an edit names."""
    shortens = plan.cause is not Cause.MANUAL or plan.policy == target.bound.policy.name
    return shortens and not is_clearing(plan) and reason_of(plan) != NEW_OUTPUT


def _marks(plain: bytes) -> tuple[bool, bool]:
    """Tell whether a body may hold compaction items, and whether it may ask for one; others may run meanwhile."""
    stop = len(plain)
    items = find_any(plain, (WORD,), 0, stop) and any(
        ITEM.search(plain, at, at + WINDOW + LONGEST_ITEM) for at in range(0, stop, WINDOW)
    )
    return items, find_any(plain, QUESTIONS, 0, stop)


def _opened(plain: bytes, route: Route) -> ParsedBody | None:
    """Open a body; an input of OpenAI's that is one string becomes a list of one item."""
    body = opened(plain, route.dialect.messages)
    if body is None and route.kind == "compact":
        value = native(plain)
        if isinstance(value, dict) and isinstance(text := value.get("input"), str):
            message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
            return opened(msgspec.json.encode({**value, "input": [message]}), route.dialect.messages)
    return body


def _without_betas(value: str) -> str:
    """Return the value of a header without the betas that an emulated request does not use."""
    return ",".join(each for each in value.split(",") if each.strip() not in BETAS)


def _users(raws: Sequence[Bytes]) -> list[Any]:
    """Return the newest messages of the user, in the long form that typed clients read.

    OpenAI's own answers give each message an id and a status, and schemas of the Responses API require them.
    """
    kept: list[Any] = []
    size = 0
    for place in range(len(raws) - 1, -1, -1):
        raw = raws[place]
        item = native(raw)
        if mapping(item).get("role") != "user" or mapping(item).get("type", "message") != "message":
            continue
        size += len(memoryview(raw))
        if size > USER_BYTES:
            break
        hashed = blake2b(b"%d %b" % (place, bytes(raw)), digest_size=16).hexdigest()
        named = {"id": item.get("id") or f"msg_{hashed}", "status": item.get("status") or "completed"}
        kept.append({**named, **long_form(item)})
    return kept[::-1]


def _json(value: Json, facts: dict[bytes, bytes]) -> Response:
    return Response(msgspec.json.encode(value), 200, _decoded(facts), "application/json")


def _decoded(facts: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode("latin-1") for name, value in facts.items()}
