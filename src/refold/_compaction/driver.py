"""Drives a compaction: resolve the request, plan, verify the result.

The work is one generator that yields the needs of a step and is sent their answers, so that the synchronous and the
asynchronous verbs share all of it:

    messages, Call -> resolve -> Request -> start_planning -> CompactionRun -> verified_result -> Result

`CompactionRun` is the one value that is passed on: whether the compaction was due is decided once, before planning, and
the result is written from the view that planning ended with.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from refold._compaction.collector import pause
from refold._compaction.request import Request, request_for
from refold._compaction.result import CompactionRun, Result, exact_size, verified_result, with_exact_size
from refold.core._engine import due, planning
from refold.core.events import (
    CompactionApplied,
    CompactionFailed,
    CompactionStarted,
    notify,
)
from refold.core.needs import Answer, Need

if TYPE_CHECKING:
    from refold._compaction.options import Call
    from refold.core._native import Messages
    from refold.handlers import Handlers

__all__ = [
    "Steps",
    "drive",
    "drive_async",
    "plan_request",
    "resolve",
    "run_async",
    "run_sync",
    "start_compaction",
    "start_planning",
]

T = TypeVar("T")
Yielded = TypeVar("Yielded")
Sent = TypeVar("Sent")
Steps: TypeAlias = Generator[tuple[Need, ...], tuple[Answer, ...], T]


def start_compaction(messages: Messages, call: Call) -> Steps[Result]:
    """Compact: yield what each step needs, take the answers, return the verified result.

    The observers are notified of the start where a compaction is due, and then always of its end: a plan with edits, or
    a failure.
    """
    request = resolve(messages, call)
    is_due = due(request.policy, request.view)
    if is_due:
        view = request.view
        notify(call.observers, CompactionStarted(len(view.messages), view.reported.count, view.cause))
    try:
        run = yield from start_planning(request, is_due=is_due)
        result = verified_result(run, messages, alternate=call.alternate)
    except Exception as error:
        notify(call.observers, CompactionFailed(f"{type(error).__name__}: {error}"))
        raise
    if not run.plan.empty:
        notify(call.observers, CompactionApplied(run.plan))
    elif is_due:
        notify(call.observers, CompactionFailed("there is nothing that could be made smaller"))
    return result


def resolve(messages: Messages, call: Call) -> Request:
    """Return the request of messages, from the meter that has seen them where there is one."""
    request = request_for(messages, call.options) if call.meter is None else call.meter.request(messages, call.options)
    return request.with_summarizer() if call.handlers.summarize is not None else request


def start_planning(request: Request, *, is_due: bool | None = None) -> Steps[CompactionRun]:
    """Plan; plan again by exact count where the policy's own estimate was too low.

    `is_due` is whether a compaction is due, where the caller knows it already.
    """
    if is_due is None:
        is_due = due(request.policy, request.view)
    earlier = [plan.id for plan in request.options.plans]
    planned = yield from planning(
        request.policy, request.view, is_due=is_due, format=request.format.name, earlier=earlier
    )
    run = CompactionRun(request, is_due, planned.plan, planned.view)
    counted, sizes = exact_size(run), run.plan.sizes
    if counted is None:
        return run
    size, ratio = counted
    if size.count <= sizes.limit or sizes.after > sizes.limit:  # what the policy could not fit is no miscount
        return with_exact_size(run, size, ratio)
    request = request.recounted()
    planned = yield from planning(request.policy, request.view, format=request.format.name, earlier=earlier)
    return CompactionRun(request, is_due, planned.plan, planned.view)


def plan_request(request: Request, handlers: Handlers) -> CompactionRun:
    """Plan a request that is already resolved."""
    if handlers.summarize is not None:
        request = request.with_summarizer()
    return run_sync(start_planning(request), handlers)


def run_sync(steps: Steps[T], handlers: Handlers) -> T:
    """Run steps to the end, handling one need after another."""
    return drive(_uncollected(steps), lambda needs: tuple(map(handlers.answer, needs)))


async def run_async(steps: Steps[T], handlers: Handlers) -> T:
    """Run steps to the end, handling the needs of one step side by side."""
    import asyncio  # not loaded by `import refold`

    async def answer(needs: tuple[Need, ...]) -> tuple[Answer, ...]:
        return tuple(await asyncio.gather(*map(handlers.answer_async, needs)))

    return await drive_async(_uncollected(steps), answer)


def _uncollected(steps: Generator[Yielded, Sent, T]) -> Generator[Yielded, Sent, T]:
    """Run a generator with the collector of cyclic garbage paused; what it yields is performed with it at work."""
    advance = partial(next, steps)
    while True:
        try:
            with pause():
                request = advance()
        except StopIteration as done:
            returned: T = done.value
            return returned
        try:
            advance = partial(steps.send, (yield request))
        except Exception as error:
            advance = partial(steps.throw, error)


def drive(steps: Generator[Yielded, Sent, T], perform: Callable[[Yielded], Sent]) -> T:
    """Run a generator to its end: perform what it yields, send it the result, or throw the error into it."""
    try:
        request = next(steps)
        while True:
            try:
                response = perform(request)
            except Exception as error:
                request = steps.throw(error)
            else:
                request = steps.send(response)
    except StopIteration as done:
        returned: T = done.value
        return returned


async def drive_async(steps: Generator[Yielded, Sent, T], perform: Callable[[Yielded], Awaitable[Sent]]) -> T:
    """Do what `drive` does, awaiting what is performed."""
    try:
        request = next(steps)
        while True:
            try:
                response = await perform(request)
            except Exception as error:
                request = steps.throw(error)
            else:
                request = steps.send(response)
    except StopIteration as done:
        returned: T = done.value
        return returned
