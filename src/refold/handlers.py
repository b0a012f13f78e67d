"""Handlers of needs: the only part of a compaction with input and output. A missing handler refuses its needs."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from refold._text.surrogates import repair_surrogates
from refold.core.needs import (
    Answer,
    ArchiveNeed,
    CountNeed,
    FileNeed,
    Need,
    Provided,
    Refused,
    Summarizer,
    SummaryNeed,
)
from refold.summaries._single_summary import summarizing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

__all__ = ["Handlers"]


class Handlers(Struct, frozen=True):  # W09
    """The functions that answer needs; a need without a handler is refused.

    `summarize` gives a summary, `read_file` a file's content, `archive` writes messages away and returns the place,
    `count` is the provider's own count. Each takes the need and returns a string (`count`: a number), or raises,
    which is a refusal; a coroutine function too. `summarize` may return `Refused` with a kind; a request that it
    refuses for its size is asked again in parts.

    A summarizer is never sent the model's thinking nor, unless `redact` is off, a known shape of a secret. An answer
    that is certainly no summary (a tool call, an echo, a question back, a refusal) becomes a refusal.

    Added in 0.1.0.
    """

    summarize: Summarizer | None = None
    read_file: Callable[[FileNeed], str | Awaitable[str]] | None = None
    archive: Callable[[ArchiveNeed], str | Awaitable[str]] | None = None
    count: Callable[[CountNeed], int | Awaitable[int]] | None = None
    redact: bool = True

    def answer(self, need: Need) -> Answer:
        """Answer one need, waiting for an asynchronous function to end."""
        if not isinstance(need, SummaryNeed) or self.summarize is None:
            return self._once(need)
        rounds = summarizing(need, redact=self.redact, guarded=self._is_guarded)
        try:
            request = next(rounds)
            while True:
                request = rounds.send(self._once(request))
        except StopIteration as done:
            answered: Answer = done.value
            return answered

    async def answer_async(self, need: Need) -> Answer:
        """Answer one need from within an event loop."""
        if not isinstance(need, SummaryNeed) or self.summarize is None:
            return await self._once_async(need)
        rounds = summarizing(need, redact=self.redact, guarded=self._is_guarded)
        try:
            request = next(rounds)
            while True:
                request = rounds.send(await self._once_async(request))
        except StopIteration as done:
            answered: Answer = done.value
            return answered

    @property
    def _is_guarded(self) -> bool:
        """Whether the guard judges each summary before it comes here; see `refold.summaries.summarizers.guarded`."""
        return getattr(self.summarize, "guarded", False) is True

    def _once(self, need: Need) -> Answer:
        answer = self._ask(need)
        return _answer(need, _waited(answer) if inspect.isawaitable(answer) else answer)

    async def _once_async(self, need: Need) -> Answer:
        answer = self._ask(need)
        if inspect.isawaitable(answer):
            try:
                answer = await answer
            except Exception as error:  # any failure of a caller's function is a refusal
                answer = _refusal(error)
        return _answer(need, answer)

    def _ask(self, need: Need) -> Any:
        match need:
            case SummaryNeed():
                function: Callable[[Any], Any] | None = self.summarize
                missing = "no summarizer was given"
            case FileNeed():
                function, missing = self.read_file, "no reader of files was given"
            case ArchiveNeed():
                function, missing = self.archive, "no archive was given"
            case CountNeed():
                function, missing = self.count, "no counter of the provider's was given"
        if function is None:
            return Refused(missing, "absent")
        try:
            return function(need)
        except Exception as error:  # any failure of a caller's function is a refusal
            return _refusal(error)


def _refusal(error: Exception) -> Refused:
    from refold.models.provider_errors import is_overflow  # its table is read only when something failed

    return Refused(f"{type(error).__name__}: {error}", "overflow" if is_overflow(error) else "failed")


def _answer(need: Need, answer: object) -> Answer:
    match need, answer:
        case _, Refused():
            refused: Answer = answer
            return refused
        case _, Provided(text=text):
            return replace(answer, text=repair_surrogates(text))
        case CountNeed(), int():
            return Provided(count=answer)
        case ArchiveNeed(), str():
            return Provided(place=answer)
        case ((SummaryNeed() | FileNeed()), str()) if answer.strip():
            return Provided(text=repair_surrogates(answer))
        case SummaryNeed(), str() | None:
            return Refused("the answer was empty", "empty")
        case FileNeed(), str():
            return Provided(text=repair_surrogates(answer))
        case _:
            return Refused(f"the answer was of type {type(answer).__name__}, which is not what was asked for")


def _waited(pending: Awaitable[Any]) -> Any:
    """Wait for a coroutine from synchronous code, beside a running event loop too."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def run() -> Any:
        return await pending

    coroutine: Coroutine[Any, Any, Any] = run()
    try:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(coroutine)
        with ThreadPoolExecutor(1) as worker:
            return worker.submit(asyncio.run, coroutine).result()
    except Exception as error:  # any failure of a caller's function is a refusal
        return _refusal(error)
