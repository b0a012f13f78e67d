"""Recovery around a model call: classifies a provider error, corrects the request, and sends it again.

The steps are one generator that yields what to do; a synchronous and an asynchronous driver do it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from refold import aio, api
from refold._compaction.driver import drive, drive_async
from refold._compaction.options import CompactOptions, RunOptions, check_names, read_call
from refold.clients._retry import retrying
from refold.core.view import Cause
from refold.errors import ContextOverflow, OutsideError
from refold.models.provider_errors import ProviderError, classify_response
from refold.recovery._learned_windows import LearnedWindows
from refold.recovery._steps import (
    Calling,
    Compacting,
    RecoverySteps,
    Setting,
    answered,
    begun,
    compacted,
)

if TYPE_CHECKING:
    from typing import Unpack

    from refold.core._native import Messages
    from refold.core.events import Observer
    from refold.core.plan import Plan

__all__ = ["LearnedWindows", "Recovered", "arecovering", "recovering"]

MAX_PASSES = 2  # compactions after a refusal, in one turn


class RecoveryOptions(RunOptions, total=False):
    """The options of `recovering` and `arecovering`."""

    observers: Sequence[Observer]
    """Functions that are notified when a compaction starts, ends or fails."""
    windows: LearnedWindows | None
    """Where the window that a refusal tells is remembered, by model and endpoint."""
    endpoint: str
    """The URL of the model's endpoint, for `windows`."""
    passes: int
    """Compactions after refusals that this turn had already."""
    max_passes: int
    """The most of them in a turn."""
    waits: Sequence[float]
    """Seconds before each retry of a call that failed for a moment."""
    sleep: Callable[[float], Any] | None
    """Waits; `time.sleep` or `asyncio.sleep` by default."""


OWN = frozenset({"windows", "endpoint", "passes", "max_passes", "waits", "sleep"})  # options that `compact` has not


class Recovered(Struct, frozen=True):  # O13
    """A reply, the messages that were sent for it, and all plans in force, oldest first.

    `passes` counts the compactions after refusals, those the caller named included. `cause` is set where the reply
    shows that the window was full: give it to the next call, which then compacts first. `window` is the window
    reckoned with.
    """

    reply: Any
    messages: list[Any]
    plans: tuple[Plan, ...] = ()
    passes: int = 0
    cause: Cause | None = None
    window: int | None = None


def recovering(call: Callable[..., Any], messages: Messages, **options: Unpack[RecoveryOptions]) -> Recovered:  # N12
    """Call a model, and when it refuses the request for its size, make it smaller and call once more.

    Reasoning that the provider does not accept back is removed, once (Gemini's after the same request was sent again);
    refused once more, the error is raised with a note. The retry does not count as a pass. An error that a smaller
    request does not avoid is raised at once; with `waits`, a temporary one is retried as by
    `refold.summaries.summarizers.retrying`.

    Args:
        call: your function from the messages to send to the reply. Where it takes `max_tokens`, it is given a smaller
            number after a refusal of that number.
        messages: the conversation as it was said, never changed.
        summarize: as in `refold.compact`; where it fails, the compaction is made without.
        handlers: handlers of all needs, as in `refold.compact`.
        redact: remove known forms of secrets from what a summarizer is sent.
        observers: functions that are told when a compaction starts, ends or fails.
        windows: where the window that a refusal tells is kept, by model and endpoint.
        endpoint: where the model is asked, for `windows`.
        cause: compact before the call, for what `Recovered.cause` said of the last.
        passes: compactions after refusals that this turn had already.
        max_passes: the most of them in a turn; there are never two for the same messages unless the second refusal
            tells more than the first.
        waits: seconds before each new try of a call that failed for a moment; what its `retry-after` says wins.
        sleep: waits; `time.sleep` or `asyncio.sleep` by default.

    The other options are those of `refold.compact`.

    Raises:
        ContextOverflow: still refused; the message names what cannot be made smaller, in tokens.
        CannotFit: no compaction brings it under the window.
        Exception: what the call raised, where it was not about size.

    Added in 0.1.0.
    """
    run = _recovery("recovering", call, messages, options)
    waits = options.get("waits", ())
    return _driven(run, retrying(call, waits, options.get("sleep")) if waits else call)


async def arecovering(
    call: Callable[..., Awaitable[Any]], messages: Messages, **options: Unpack[RecoveryOptions]
) -> Recovered:
    """Do what `recovering` does, awaiting the call and the summarizer.

    Added in 0.1.0.
    """
    run = _recovery("arecovering", call, messages, options)
    waits = options.get("waits", ())
    return await _driven_async(run, retrying(_awaiting(call), waits, options.get("sleep")) if waits else call)


def _driven(run: RecoverySteps, call: Callable[..., Any]) -> Recovered:
    def perform(action: Calling | Compacting) -> Any:
        match action:
            case Calling():
                return call(action.messages, **action.named())
            case Compacting():
                return api.compact(action.messages, **action.arguments)

    recovered: Recovered = drive(run, perform)
    return recovered


async def _driven_async(run: RecoverySteps, call: Callable[..., Awaitable[Any]]) -> Recovered:
    async def perform(action: Calling | Compacting) -> Any:
        match action:
            case Calling():
                return await call(action.messages, **action.named())
            case Compacting():
                return await aio.acompact(action.messages, **action.arguments)

    recovered: Recovered = await drive_async(run, perform)
    return recovered


def _awaiting(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return a coroutine function, whatever kind of callable it is that gives something to await."""

    async def awaited(*args: Any, **named: Any) -> Any:
        return await call(*args, **named)

    return awaited


def _recovery(verb: str, call: Callable[..., Any], messages: Messages, options: RecoveryOptions) -> RecoverySteps:
    """Check the options at once, and return the steps of the recovery."""
    check_names(verb, options, RecoveryOptions)
    call_options = read_call(verb, {name: value for name, value in options.items() if name not in OWN}, CompactOptions)
    setting = Setting(
        replace(call_options.options, cause=None),
        call_options.handlers,
        call_options.observers,
        options.get("endpoint", ""),
        options.get("windows"),
        options.get("max_passes", MAX_PASSES),
        _takes(call, "max_tokens"),
    )
    return _steps(setting, messages, options.get("passes", 0), call_options.options.cause)


def _steps(fixed: Setting, messages: Messages, passes: int, cause: Cause | str | None) -> RecoverySteps:
    state = begun(fixed, messages, passes)
    if cause is not None and messages:
        state = yield from compacted(fixed, messages, state, cause)
    while True:
        try:
            reply = yield Calling(state.sent, state.max_tokens)
            refusal = _error_within(reply)
        except Exception as error:
            state = yield from answered(fixed, messages, state, error)
            continue
        if refusal is None:
            full = classify_response(_as_mapping(reply), state.window).kind == "context_overflow"
            after = Cause.SILENT_OVERFLOW if full else None
            return Recovered(reply, state.sent, state.plans, state.passes, after, state.window)
        wrapped = ContextOverflow if refusal.kind == "context_overflow" else OutsideError
        state = yield from answered(fixed, messages, state, wrapped(refusal.message))


def _error_within(reply: object) -> ProviderError | None:
    """Return the refusal that a reply of status 200 carries in place of an answer, if another request can succeed."""
    body = _as_mapping(reply)
    if not body.get("error"):
        return None
    problem = classify_response(body)
    return problem if problem.kind == "context_overflow" or problem.remedy == "drop_reasoning" else None


def _as_mapping(reply: object) -> Mapping[str, Any]:
    """Return what is known of a reply as a mapping: a body, an SDK's value, or `refold.clients._factory.Reply`."""
    if isinstance(reply, Mapping):
        return reply
    dump = getattr(reply, "model_dump", None)
    if dump is not None:
        body: Mapping[str, Any] = dump(exclude_none=True, warnings=False)
        return body
    return {"usage": getattr(reply, "usage", None) or {}, "finish_reason": getattr(reply, "stop", "") or ""}


def _takes(call: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # built in: no signature
        return False
    return any(each.name == name or each.kind is each.VAR_KEYWORD for each in parameters)
