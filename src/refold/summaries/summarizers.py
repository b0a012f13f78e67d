"""Summaries by a model: one call without tools, the transcript as fenced data, and the cost reported to observers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

from msgspec import Struct

from refold._condense.transcript_text import FENCE, fenced
from refold._counting.tokenizers import ExactCounter, counter_for
from refold.clients._factory import client as client_of
from refold.clients._retry import retrying
from refold.core.messages import text_of
from refold.core.needs import Provided, Refused, SummaryNeed
from refold.errors import UsageError
from refold.models import _catalog as catalog
from refold.models._usage_report import UsageReport, reported
from refold.models.provider_errors import classify_response
from refold.summaries._language import language_of

if TYPE_CHECKING:
    from refold.clients._protocol import AsyncClient, Client, Reply

__all__ = ["SummaryCost", "cost", "guarded", "model_summarizer", "retrying", "summarizer"]

F = TypeVar("F", bound=Callable[..., Any])
SyncSummarizer: TypeAlias = Callable[[SummaryNeed], "str | Refused"]
AsyncSummarizer: TypeAlias = Callable[[SummaryNeed], Awaitable["str | Refused"]]

ANSWER = 4_096  # tokens a summary may have when neither the need nor the caller says
FRAMING = 64  # tokens that frame two messages, with room to spare
SHARE = 4  # an answer has at most the fourth part of a window
OPENING, CLOSING = f"<{FENCE}>\n", f"\n</{FENCE}>"
NO_ANSWER = {"content_filter": "was withheld by a filter", "refusal": "was refused by the model"}


class SummaryCost(Struct, frozen=True, tag="summary_cost"):
    """What one call of a summarizer used: tokens, and US dollars where the table has the model's prices."""

    model: str
    usage: UsageReport
    dollars: float | None = None


def cost(model: str, usage: UsageReport, provider: str | None = None) -> float | None:
    """Return what a call costs in US dollars by the table of models; None where it has no price."""
    prices = catalog.prices(model, provider)
    if prices is None:
        return None
    read = prices.input if prices.cache_read is None else prices.cache_read
    write = prices.input if prices.cache_write is None else prices.cache_write
    fresh = max(usage.prompt - usage.cached_read - usage.cache_write, 0)
    parts = (
        fresh * prices.input,
        usage.cached_read * read,
        usage.cache_write * write,
        usage.completion * prices.output,
    )
    return sum(parts) / 1_000_000


@overload
def model_summarizer(
    client: Client,
    *,
    max_tokens: int | None = None,
    window: int | None = None,
    observers: Sequence[Callable[[SummaryCost], object]] = (),
) -> SyncSummarizer: ...


@overload
def model_summarizer(
    client: AsyncClient,
    *,
    max_tokens: int | None = None,
    window: int | None = None,
    observers: Sequence[Callable[[SummaryCost], object]] = (),
) -> AsyncSummarizer: ...


def model_summarizer(
    client: Client | AsyncClient,
    *,
    max_tokens: int | None = None,
    window: int | None = None,
    observers: Sequence[Callable[[SummaryCost], object]] = (),
) -> SyncSummarizer | AsyncSummarizer:
    """Return a summarizer for `refold.compact(summarize=…)` that asks a model.

    For an `AsyncClient` it is a coroutine function. Its instructions are the system prompt, the record is one user
    message, no tools are offered. A request larger than the model's own window (`window`, or what is known of the
    model) is refused before it is sent, so that it is asked in parts. An answer that was cut off, is a tool call, was
    withheld or is empty is refused with the reason.
    `max_tokens` is what an answer may have where the need does not say. `observers` are told what each call cost.
    """
    settings = _RequestSettings.of(client.model, max_tokens, window, tuple(observers))
    ask: Callable[..., Any] = client.complete

    async def summarize_async(need: SummaryNeed) -> str | Refused:
        request = settings.request(need)
        return request if isinstance(request, Refused) else settings.summary(await ask(**request))

    def summarize(need: SummaryNeed) -> str | Refused:
        request = settings.request(need)
        return request if isinstance(request, Refused) else settings.summary(ask(**request))

    return summarize_async if inspect.iscoroutinefunction(client.complete) else summarize


class _RequestSettings(Struct, frozen=True):
    """What is known of the model that writes summaries: its room in tokens, and how they are counted."""

    model: str
    room: int
    output_cap: int
    answer: int
    counter: ExactCounter
    observers: tuple[Callable[[SummaryCost], object], ...]

    @classmethod
    def of(
        cls,
        model: str,
        max_tokens: int | None,
        window: int | None,
        observers: tuple[Callable[[SummaryCost], object], ...],
    ) -> _RequestSettings:
        known = catalog.window(model, override=window)
        room = min(known.input_cap or known.window, known.window)
        return cls(model, room, known.output_cap or room, max_tokens or ANSWER, counter_for(model), observers)

    def request(self, need: SummaryNeed) -> dict[str, Any] | Refused:
        """Return the arguments of the call; a refusal where the model's window does not hold them."""
        most = min(need.max_tokens or self.answer, self.room // SHARE, self.output_cap)
        system, text = _instructions(need), _record(need)
        size = self.counter.text(system) + self.counter.text(text) + FRAMING
        if size + most > self.room:
            reason = f"the record has {size:,} tokens, and {self.model} takes {self.room - most:,} beside its answer"
            return Refused(reason, "overflow")
        return {"messages": [{"role": "user", "content": text}], "system": system, "max_tokens": most}

    def summary(self, reply: Reply) -> str | Refused:
        """Return the summary in an answer, and tell what it cost."""
        _tell(self.observers, self.model, reply)
        return _answer(reply, self.room)


def summarizer(
    model: str,
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    provider: str | None = None,
    window: int | None = None,
    observers: Sequence[Callable[[SummaryCost], object]] = (),
) -> SyncSummarizer:
    """Return a summarizer by a model's id, with retries and the guard: `guarded(retrying(model_summarizer(…)))`.

    `provider` is who serves the model, as in `refold.clients.client`.
    """
    by_model = model_summarizer(
        client_of(model, base_url, api_key, provider=provider), window=window, observers=observers
    )
    return guarded(retrying(by_model))


def guarded(function: F, *, repair: bool = True) -> F:
    """Return a summarizer whose answers the guard accepts; any other is refused, and the policy goes on without.

    With `repair`, constraints of the person that the summary leaves out, and files that were changed, are written
    behind it word for word before it is judged; without, such a summary is refused.
    """
    from refold.summaries._guard import judge_answer

    def judged(need: SummaryNeed, answer: object) -> object:
        text = answer.text if isinstance(answer, Provided) else answer
        return judge_answer(text, need, repair=repair) if isinstance(text, str) and text.strip() else answer

    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def guard_async(need: SummaryNeed) -> object:
            return judged(need, await function(need))

        guard_async.guarded = True  # type: ignore[attr-defined] # by which a plan records that it was judged
        return cast("F", guard_async)

    @wraps(function)
    def guard(need: SummaryNeed) -> object:
        return judged(need, function(need))

    guard.guarded = True  # type: ignore[attr-defined]
    return cast("F", guard)


def _instructions(need: SummaryNeed) -> str:
    language = need.language or language_of(_words(need))
    if not language:
        return need.instructions
    return f"{need.instructions}\n\nWrite in {language}; keep headings that are given exactly as they are.".strip()


def _words(need: SummaryNeed) -> str:
    """Return what people said: output of tools is no sign of their language."""
    user_text = "\n".join(text_of(message) for message in need.messages if message.role == "user")
    return user_text or need.text


def _record(need: SummaryNeed) -> str:
    """Return the user message: the earlier summary, then the record, each fenced so that it cannot end its fence."""
    body = need.text.removeprefix(OPENING).removesuffix(CLOSING)
    record = fenced(body, FENCE)
    return f"{fenced(need.previous)}\n\n{record}" if need.previous else record


def _answer(reply: Reply, room: int) -> str | Refused:
    full = classify_response({"usage": reply.usage, "finish_reason": reply.stop}, room)
    if full.kind == "context_overflow":
        return Refused("the server cut the record to fit its window", "overflow")
    if reply.calls:
        return Refused(f"a call of {reply.calls[0].name} came instead of a summary", "rejected")
    if reply.cut:
        return Refused("the summary was cut off before its end: allow more tokens", "rejected")
    if reply.stop in NO_ANSWER:
        return Refused(f"the summary {NO_ANSWER[reply.stop]}", "rejected")
    return reply.text.strip() or Refused("the answer was empty", "empty")


def _tell(observers: Sequence[Callable[[SummaryCost], object]], model: str, reply: Reply) -> None:
    if not observers:
        return
    usage = _reported(reply.usage)
    event = SummaryCost(model, usage, cost(model, usage))
    for observer in observers:
        try:
            observer(event)
        except Exception:  # noqa: S112 - a watcher's failure is not the summary's
            continue


def _reported(usage: Mapping[str, object]) -> UsageReport:
    try:
        return reported(usage)
    except UsageError:  # a server that reports nothing
        return UsageReport(0)
