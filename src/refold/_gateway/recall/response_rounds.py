"""Relays a response in which the model may call the recall tool, and answers such calls in further rounds.

A stream goes on to the client event by event until a call of the tool begins. From there on it is held until the
round ends: then either originals are fetched and the next round follows in the same stream, or, where the model calls
the client's tools beside, the rest is let go without the recall, which waits for the client's next request. What came
before is the client's own text already.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Struct

from refold._gateway.recall.anthropic import AnthropicMerger
from refold._gateway.recall.gemini import GeminiMerger
from refold._gateway.recall.openai_chat import OpenAIChatMerger
from refold._gateway.recall.openai_responses import OpenAIResponsesMerger
from refold._gateway.recall.response_merger import asking
from refold._gateway.recall.tool import Offer, offered
from refold._gateway.server.asgi import GatewayError
from refold._gateway.server.relay import relay
from refold._gateway.upstream.client import from_upstream
from refold._gateway.upstream.response import UpstreamAborted
from refold._gateway.wire.compression import Unreadable, decompressor
from refold._gateway.wire.response_observer import ResponseObserver
from refold._gateway.wire.routes import error_body
from refold._recall.search import FULL, RemovedMessages, room_for
from refold.core._json import Json
from refold.errors import UsageError
from refold.formats._streaming.accumulate import response_body
from refold.formats._streaming.sse import Decoder, Event
from refold.models._usage_report import reported
from refold.models.provider_errors import classify_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Send

    from refold._gateway.conversations.budgets import Bound
    from refold._gateway.conversations.plugin import CompactionTarget
    from refold._gateway.observability.metrics import Metrics
    from refold._gateway.recall.response_merger import RecallRound, ResponseMerger
    from refold._gateway.server.asgi import Headers
    from refold._gateway.settings import GatewaySettings
    from refold._gateway.upstream.response import UpstreamResponse

__all__ = ["RecallRelay", "Recalls", "RoundOverflow", "recalls"]

CHARS = 4  # a token, where the provider reports none
LAST = "\n\n[This was the last time in this turn that originals were fetched. Go on with what is in front of you.]"
Decoded: TypeAlias = tuple[Event, Json | None]  # an event, and its data where that is a JSON object
ENCODED = frozenset({b"content-length", b"content-encoding"})


class Recalls(Struct):
    """A request that offers the tool, and the originals that stand behind it."""

    offer: Offer
    originals: RemovedMessages
    bound: Bound
    stored: bool = True


def recalls(target: CompactionTarget, messages: bytes, path: str, query: str) -> Recalls | None:
    """Return a request with the tool for a conversation under plans; None where it has no place for it."""
    conversation = target.conversation
    offer = offered(conversation.body, target.dialect, messages, path, query)
    if offer is None:
        return None
    originals = RemovedMessages(conversation.transcript.messages, conversation.plans, target.bound.counter)
    return Recalls(offer, originals, target.bound, conversation.body.get("store") is not False)


class RoundOverflow(Exception):  # the conversation is made shorter, and the answer begun anew
    """The next round does not fit, even without originals, and the client has been told nothing yet."""

    def __init__(self, answer: UpstreamResponse, body: bytes) -> None:
        super().__init__(answer.status)
        self.answer = answer
        self.body = body


class RecallRelay:
    """One answer on its way to the client, in as many rounds as the model asks for, up to `recall_rounds`.

    `again` sends a body upstream as the first was sent; `own_headers` are the headers that the gateway adds; `later`
    takes a round with calls of the tool beside the client's, and tells whether the next request answers them.
    """

    def __init__(
        self, request: Recalls, settings: GatewaySettings, metrics: Metrics, send: Send, dialect: str,
        again: Callable[[bytes], Awaitable[UpstreamResponse]], own_headers: Headers,
        later: Callable[[RecallRound], Awaitable[bool]],
    ) -> None:  # fmt: skip
        self._request = request
        self._settings = settings
        self._metrics = metrics
        self._send = send
        self._again = again
        self._own_headers = own_headers
        self._later = later
        self._format = dialect
        self._provider = "openai" if dialect.startswith("openai") else dialect
        self._merger = _merger_for(dialect, stored=request.stored, binds_thinking=request.bound.binds_thinking)
        self._offer = request.offer
        self._headers: Headers = []
        self._status = 200
        self._started = False
        self._out: list[bytes] = []
        self._speaks = False
        self._fetched = 0

    async def carry(self, answer: UpstreamResponse) -> ResponseObserver:
        """Carry an answer, and those that follow it; return what the first one reported.

        Raises:
            UpstreamAborted: upstream broke off.
            RoundOverflow: the conversation must be made shorter first.
            GatewayError: upstream cannot be reached any more, and the client has been told nothing yet.
        """
        reading = ResponseObserver(answer.headers)
        kind = answer.headers.get("Content-Type", "")
        if decompressor(answer.headers.get("Content-Encoding", "")) is None or not (
            "json" in kind or reading.streaming
        ):
            await relay(self._send, answer, [*from_upstream(answer), *self._own_headers], reading.feed)
            return reading
        self._status, self._headers = answer.status, from_upstream(answer)
        try:
            await (self._streamed(answer, reading) if reading.streaming else self._whole(answer, reading))
        except GatewayError as refusal:
            if not self._started:
                raise
            body = error_body(self._provider, refusal.status, str(refusal), refusal.code)
            await self._broken(body)
        return reading

    # Whole answers

    async def _whole(self, answer: UpstreamResponse, reading: ResponseObserver) -> None:
        merger, bodies = self._merger, list[Json]()
        first = answer
        try:
            while True:
                raw = await self._read(answer, reading)
                body = reading.body()
                try:
                    recall_round = merger.read_round(body)
                except (KeyError, TypeError, AttributeError):  # nothing that this dialect says
                    recall_round = None
                bodies.append(body)
                self._spent(reading, answer is first)
                if recall_round is None or not (recall_round.only and merger.round < self._settings.recall_rounds):
                    break
                answer = await self._next(recall_round, answer, first)
                if answer.status != 200:
                    await self._refused(answer)
                    return
                reading = ResponseObserver(answer.headers)
            await self._left(recall_round)
            if (
                len(bodies) > 1
                or (recall_round is not None and (recall_round.recalls or recall_round.dropped))
                or b'"recall"' in raw
            ):
                raw = msgspec.json.encode(merger.joined(bodies))
            await self._begin(len(raw))
            await self._send({"type": "http.response.body", "body": raw})
        finally:
            _closed(answer, first)

    async def _read(self, answer: UpstreamResponse, reading: ResponseObserver) -> bytes:
        try:
            async for piece in answer:
                reading.feed(piece)
        except UpstreamAborted as aborted:
            if self._merger.round:
                raise aborted.refusal() from aborted
            await self._begin(None)
            raise
        return reading.text

    # Streams

    async def _streamed(self, answer: UpstreamResponse, reading: ResponseObserver) -> None:
        first = answer
        try:
            while True:
                recall_round = await self._round(answer, reading)
                self._spent(reading, answer is first)
                if recall_round is None:
                    break
                answer = await self._next(recall_round, answer, first)
                if answer.status != 200:
                    await self._refused(answer)
                    return
                reading = ResponseObserver(answer.headers)
            await self._flush(speaks=True)
            await self._send({"type": "http.response.body", "body": b""})
        finally:
            _closed(answer, first)

    async def _round(self, answer: UpstreamResponse, reading: ResponseObserver) -> RecallRound | None:
        """Carry one round of a stream; return it where it waits for originals."""
        merger = self._merger
        decompress = decompressor(answer.headers.get("Content-Encoding", ""))
        decoder, seen = Decoder(), list[Json]()
        buffered: list[Decoded] | None = None
        waiting: list[Decoded] = []

        def take(event: Event) -> None:
            nonlocal buffered, waiting
            data = event.json()
            if data is not None:
                seen.append(data)
            if buffered is not None:
                buffered.append((event, data))
            elif data is not None and merger.starts_recall(data):
                buffered, waiting = [*waiting, (event, data)], []
            elif data is not None and merger.may_belong_to_recall(data):
                waiting.append((event, data))
            else:
                for each in (*waiting, (event, data)):
                    self._pass(*each, closing=True)
                waiting = []

        try:
            async for piece in answer:
                reading.feed(piece)
                for event in decoder.feed(decompress(piece) if decompress is not None else piece):
                    take(event)
                await self._flush()
        except UpstreamAborted:
            await self._flush(speaks=True)
            raise
        except Unreadable as error:
            await self._flush(speaks=True)
            raise UpstreamAborted(type(error).__name__) from None
        for event in decoder.finish():
            take(event)
        if buffered is None:
            for each in waiting:
                self._pass(*each, closing=True)
            return None
        recall_round = merger.read_round(response_body(self._format, seen))
        merger.dropped = recall_round.dropped
        goes_on = recall_round.only and merger.round < self._settings.recall_rounds
        if not goes_on:
            await self._left(recall_round)
        for each in buffered:
            self._pass(*each, closing=not goes_on)
        await self._flush()
        return recall_round if goes_on else None

    def _pass(self, event: Event, data: Json | None, *, closing: bool) -> None:
        """Let an event go to the client, as its own bytes where nothing is changed in it."""
        merger = self._merger
        if data is None:
            if closing or event.comment:
                self._out.append(event.raw)
                self._speaks = self._speaks or event.comment
            return
        events = merger.merge_event(data, closing=closing)
        if not events:
            return
        self._out += [event.raw] if events == [data] else map(merger.event, events)
        self._speaks = self._speaks or not merger.is_preamble(data)

    async def _flush(self, *, speaks: bool = False) -> None:
        """Send what was let go, once there is more than a beginning; until then an error still has a status."""
        if not (self._speaks or speaks or self._started):
            return
        if not self._started:
            await self._begin(None)
        if self._out:
            body, self._out = b"".join(self._out), []
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _begin(self, length: int | None) -> None:
        self._started = True
        headers = [each for each in self._headers if each[0] not in ENCODED]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        if self._fetched:
            headers.append((b"x-refold-recalled", b"%d" % self._fetched))
        await self._send(
            {"type": "http.response.start", "status": self._status, "headers": [*headers, *self._own_headers]}
        )

    # What follows

    async def _left(self, recall_round: RecallRound | None) -> None:
        """Have the calls of the last round remembered, before the client can go on; or count what is let go."""
        if (
            recall_round is not None
            and recall_round.recalls
            and not (recall_round.others and not recall_round.cut and await self._later(recall_round))
        ):
            self._metrics.recalled("dropped", len(recall_round.recalls))

    async def _next(
        self, recall_round: RecallRound, answer: UpstreamResponse, first: UpstreamResponse
    ) -> UpstreamResponse:
        """Return the answer of the round after, when the one before it is done with."""
        self._merger.follows(recall_round)
        following = await self._follow(recall_round)
        _closed(answer, first)
        return following

    async def _follow(self, recall_round: RecallRound) -> UpstreamResponse:
        """Fetch what a round asks for and send it upstream; without it where there is no room for it after all."""
        texts = await asyncio.to_thread(self._texts, recall_round)
        self._fetched += len(texts)
        self._metrics.recalled("answered", len(texts))
        before = self._offer
        self._offer = before.followed([*recall_round.turn, *self._merger.results(recall_round, texts)])
        answer = await self._again(self._offer.body)
        if answer.status != 200 and await self._overflows(answer):
            answer.close()
            self._offer = before.followed(
                [*recall_round.turn, *self._merger.results(recall_round, [FULL] * len(texts))]
            )
            answer = await self._again(self._offer.body)
            if answer.status != 200 and not self._started and await self._overflows(answer):
                raise RoundOverflow(answer, await answer.read())
        return answer

    def _texts(self, recall_round: RecallRound) -> list[str]:
        last = LAST if self._merger.round == self._settings.recall_rounds else ""
        queries = [asking(call.arguments) for call in recall_round.recalls]
        return self._request.originals.answers(queries, self._room(recall_round), last)

    def _room(self, recall_round: RecallRound) -> int:
        """Return the tokens that originals may take, in this round."""
        try:
            usage = reported({self._merger.usage_key: recall_round.usage})
            size = usage.prompt + usage.completion
        except UsageError:
            size = len(self._offer.body) // CHARS
        return room_for(self._request.bound.budget, size, self._settings.recall_tokens)

    async def _overflows(self, answer: UpstreamResponse) -> bool:
        reading = ResponseObserver(answer.headers)
        try:
            raw = await answer.read()
        except UpstreamAborted as aborted:
            raise aborted.refusal() from aborted
        reading.feed(raw)
        answer.unread(raw)
        return classify_error({**reading.body(), "status": answer.status}).kind == "context_overflow"

    async def _refused(self, answer: UpstreamResponse) -> None:
        """Carry upstream's own error: as an answer where none has begun, else as an event of the stream."""
        if not self._started:
            self._out = []
            await relay(self._send, answer, [*from_upstream(answer), *self._own_headers])
            return
        reading = ResponseObserver(answer.headers)
        reading.feed(await answer.read())
        await self._broken(reading.text)

    async def _broken(self, body: bytes) -> None:
        try:
            value = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            value = msgspec.json.decode(
                error_body(self._provider, 502, "the provider answered with an error", "upstream")
            )
        await self._flush(speaks=True)
        event = self._merger.event(self._merger.error(value if isinstance(value, dict) else {"error": value}))
        await self._send({"type": "http.response.body", "body": event, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    def _spent(self, reading: ResponseObserver, first: bool) -> None:
        """Count what a round beyond the first used; the first is learned from."""
        usage = None if first else reading.usage()
        if usage is not None:
            self._metrics.reported(usage)


def _merger_for(dialect: str, *, stored: bool, binds_thinking: bool) -> ResponseMerger:
    match dialect:
        case "openai-chat":
            return OpenAIChatMerger()
        case "openai-responses":
            return OpenAIResponsesMerger(stored=stored)
        case "anthropic":
            return AnthropicMerger(binds_thinking=binds_thinking)
        case _:
            return GeminiMerger()


def _closed(answer: UpstreamResponse, first: UpstreamResponse) -> None:
    if answer is not first:  # whoever sent the first one closes it
        answer.close()
