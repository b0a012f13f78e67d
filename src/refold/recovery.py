"""Recovery around a call of a model: what a refusal means, what is done about it, and the same call once more.

The steps are one generator that yields what to do; a synchronous and an asynchronous driver do it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold import aio, api
from refold.core.policy import Policy, Step
from refold.core.view import Cause
from refold.errors import BadBudget, ContextOverflow, SummaryRefused
from refold.learned import LearnedWindows
from refold.limits import models
from refold.limits.overflow import ProviderError, classify_error, classify_response
from refold.outside import Outside
from refold.request import Options, request_for
from refold.stages.fit import unshrinkable
from refold.stages.strip_media import StripMedia

if TYPE_CHECKING:
    from refold.core.events import Observer
    from refold.core.plan import Plan
    from refold.result import Result

__all__ = ["LearnedWindows", "Recovered", "arecovering", "recovering"]

MAX_PASSES = 2  # compactions after a refusal, in one turn
LEAST_ANSWER = 256  # tokens: below, an answer is not reduced further and the conversation is compacted instead
SPARE = 16  # tokens left free when an answer is reduced to what the window has left
STRIP = Policy("strip-media", (Step(StripMedia(), label="strip media"),))
OF_A_REFUSAL = frozenset({Cause.OVERFLOW, Cause.SILENT_OVERFLOW})


class Recovered(Struct, frozen=True):
    """A reply, the messages that were sent for it, and all plans in force, oldest first.

    `passes` counts the compactions after refusals, those the caller named included. `cause` is set where the reply
    shows that the window was full: give it to the next call, which then compacts first (O13). `window` is the window
    reckoned with.
    """

    reply: Any
    messages: list[Any]
    plans: tuple[Plan, ...] = ()
    passes: int = 0
    cause: Cause | None = None
    window: int | None = None


class _Call(Struct, frozen=True):
    """Ask the model."""

    messages: list[Any]
    max_tokens: int | None = None

    def named(self) -> dict[str, int]:
        return {} if self.max_tokens is None else {"max_tokens": self.max_tokens}


class _Compact(Struct, frozen=True):
    """Compact the conversation; the arguments of `refold.compact`."""

    messages: Sequence[Any]
    arguments: dict[str, Any]


class _Setting(Struct, frozen=True):
    """What stays the same during one recovery."""

    options: Options
    outside: Outside
    observers: tuple[Observer, ...]
    endpoint: str
    windows: LearnedWindows | None
    max_passes: int
    takes_max_tokens: bool


class _State(Struct, frozen=True):
    """Where one recovery stands; `room` is the window in tokens as we count, where the provider counts more."""

    sent: list[Any]
    plans: tuple[Plan, ...]
    window: int | None
    room: int | None
    passes: int = 0
    max_tokens: int | None = None
    stripped: bool = False


_Action: TypeAlias = "_Call | _Compact"
_Run: TypeAlias = Generator[_Action, Any, Any]


def recovering(call: Callable[..., Any], messages: Sequence[Any], **options: Any) -> Recovered:
    """Call a model, and when it refuses the request for its size, make it smaller and call once more.

    The retry counts as none. Errors that no smaller request mends are raised as they are, at once (N12).

    Args:
        call: your function from the messages to send to the reply. Where it takes `max_tokens`, it is given a smaller
            number after a refusal of that number.
        messages: the conversation as it was said, never changed.
        options: `format`, `policy`, `model`, `window`, `system`, `tools`, `max_output`, `usage`, `counter`, `goal`,
            `instructions`, `plans`, `summarize`, `outside` and `observers` as in `refold.compact`; a summarizer that
            fails is done without. `endpoint`: where the model is asked, for `windows`: a `LearnedWindows` in which the
            window that a refusal tells is kept. `cause`: compact before the call, for what `Recovered.cause` said of
            the last. `passes`: compactions after refusals that this turn had already; at most `max_passes` (2) are
            made, and never two for the same messages unless the second refusal tells more than the first.

    Raises:
        ContextOverflow: still refused; the message names what cannot be made smaller, in tokens.
        CannotFit: no compaction brings it under the window.
        Exception: what the call raised, where it was not about size.
    """
    run = _begun(call, messages, options)
    action = next(run)
    try:
        while True:
            try:
                match action:
                    case _Call():
                        outcome = call(action.messages, **action.named())
                    case _Compact():
                        outcome = api.compact(action.messages, **action.arguments)
            except Exception as error:
                action = run.throw(error)
            else:
                action = run.send(outcome)
    except StopIteration as done:
        made: Recovered = done.value
        return made


async def arecovering(call: Callable[..., Awaitable[Any]], messages: Sequence[Any], **options: Any) -> Recovered:
    """Do what `recovering` does, awaiting the call and the summarizer."""
    run = _begun(call, messages, options)
    action = next(run)
    try:
        while True:
            try:
                match action:
                    case _Call():
                        outcome = await call(action.messages, **action.named())
                    case _Compact():
                        outcome = await aio.acompact(action.messages, **action.arguments)
            except Exception as error:
                action = run.throw(error)
            else:
                action = run.send(outcome)
    except StopIteration as done:
        made: Recovered = done.value
        return made


def _begun(call: Callable[..., Any], messages: Sequence[Any], options: dict[str, Any]) -> _Run:
    """Sort a caller's arguments, and return the recovery, not yet begun."""
    rest = dict(options)
    summarize, outside = rest.pop("summarize", None), rest.pop("outside", None)
    setting = {name: rest.pop(name) for name in ("endpoint", "windows", "max_passes") if name in rest}
    observers, passes = tuple(rest.pop("observers", ())), rest.pop("passes", 0)
    cause = rest.pop("cause", None)
    fixed = _Setting(
        options=Options(**rest),
        outside=outside or Outside(summarize=summarize),
        observers=observers,
        endpoint=setting.get("endpoint", ""),
        windows=setting.get("windows"),
        max_passes=setting.get("max_passes", MAX_PASSES),
        takes_max_tokens=_takes(call, "max_tokens"),
    )
    return _recovery(fixed, messages, passes, None if cause is None else Cause(cause))


def _recovery(fixed: _Setting, messages: Sequence[Any], passes: int, cause: Cause | None) -> _Run:
    plans = tuple(fixed.options.plans)
    sent = api.apply(plans[-1], messages, plans=plans[:-1]).messages if plans else list(messages)
    window = _window(fixed)
    state = _State(sent, plans, window, window, passes)
    if cause is not None and messages:
        state = yield from _compacted(fixed, messages, state, cause)
    while True:
        try:
            reply = yield _Call(state.sent, state.max_tokens)
            refusal = _error_within(reply)
        except Exception as error:
            state = yield from _answered(fixed, messages, state, error)
            continue
        if refusal is None:
            full = classify_response(_as_mapping(reply), state.window).kind == "context_overflow"
            after = Cause.SILENT_OVERFLOW if full else None
            return Recovered(reply, state.sent, state.plans, state.passes, after, state.window)
        state = yield from _answered(fixed, messages, state, ContextOverflow(refusal.message))


def _answered(fixed: _Setting, messages: Sequence[Any], state: _State, error: Exception) -> _Run:
    """Make the request smaller in the way that the refusal calls for, or raise the refusal."""
    found = classify_error(error)
    if fixed.windows is not None and found.kind == "context_overflow" and found.limit:
        fixed.windows.learn(fixed.options.model or "", fixed.endpoint, found.limit)
    match found.remedy:
        case "reduce_max_tokens":
            reduced = _reduced(fixed, state, found)
            if reduced is not None:
                return replace(state, max_tokens=reduced)
            if found.kind == "invalid_max_tokens":
                raise error
        case "strip_media" if not state.stripped:
            stripped = yield from _stripped(fixed, messages, state)
            if stripped is not None:
                return stripped
        case "compact" | "strip_media":
            pass
        case _:
            raise error
    return (yield from _smaller(fixed, messages, state, found, error))


def _smaller(fixed: _Setting, messages: Sequence[Any], state: _State, found: ProviderError, error: Exception) -> _Run:
    """Compact after a refusal; below what was refused, where the refusal does not tell the window."""
    if not messages:
        raise ContextOverflow(f"{found.message}; there is no conversation here to compact") from error  # O14
    refused = api.count(
        state.sent,
        model=fixed.options.model,
        format=fixed.options.format,
        system=fixed.options.system,
        tools=fixed.options.tools,
    )
    narrowed = replace(state, window=_least(state.window, found.limit), room=_least(state.room, _bound(found, refused)))
    if state.passes >= fixed.max_passes or _in_vain(state, narrowed, messages):
        raise _overflow(fixed, messages, narrowed, found) from error
    try:
        after = yield from _compacted(fixed, messages, narrowed, Cause.OVERFLOW)
    except BadBudget as small:
        raise ContextOverflow(f"{found.message}; {small}") from error
    if after.plans == state.plans:
        raise _overflow(fixed, messages, narrowed, found) from error
    return after


def _in_vain(state: _State, narrowed: _State, messages: Sequence[Any]) -> bool:
    """Tell whether these messages were compacted after a refusal before, and nothing is known now that was not then."""
    last = state.plans[-1] if state.plans else None
    again = last is not None and last.cause in OF_A_REFUSAL and last.base.length == len(messages)
    return again and narrowed.room == state.room


def _bound(found: ProviderError, refused: int) -> int:
    """Return the tokens, as we count, below which a request must come of which we counted `refused`."""
    if not found.limit:
        return refused
    return found.limit if not found.requested else min(found.limit, found.limit * refused // found.requested)


def _least(*sizes: int | None) -> int | None:
    return min((size for size in sizes if size), default=None)


def _compacted(fixed: _Setting, messages: Sequence[Any], state: _State, cause: Cause) -> _Run:
    """Compact, without a summary where none can be had; return the state after it."""
    usage = fixed.options.usage if cause is Cause.SILENT_OVERFLOW else None  # a refused request was not measured
    known = _arguments(fixed, state, window=state.room, cause=cause, usage=usage)
    try:
        result: Result = yield _Compact(messages, {**known, "outside": fixed.outside})
    except SummaryRefused:
        without = Outside(None, fixed.outside.read_file, fixed.outside.archive, fixed.outside.count)
        result = yield _Compact(messages, {**known, "outside": without})
    return _with(state, result, passes=state.passes + 1)


def _stripped(fixed: _Setting, messages: Sequence[Any], state: _State) -> _Run:
    """Return the state without pictures and files, None where there are none."""
    arguments = _arguments(fixed, state, policy=STRIP, budget=10**10, window=None, cause=Cause.OVERFLOW, usage=None)
    result: Result = yield _Compact(messages, {**arguments, "counter": "exact", "goal": None})
    return None if result.plan.empty else _with(state, result, stripped=True)


def _arguments(fixed: _Setting, state: _State, **changed: Any) -> dict[str, Any]:
    names = Options.__struct_fields__
    given = {name: getattr(fixed.options, name) for name in names}
    if changed.get("window") is not None:
        given["budget"] = None
    return {**given, "plans": state.plans, "observers": fixed.observers, **changed}


def _with(state: _State, result: Result, **changed: Any) -> _State:
    if result.plan.empty:
        return replace(state, **{**changed, "passes": state.passes})
    return replace(state, sent=result.messages, plans=result.plans, **changed)


def _reduced(fixed: _Setting, state: _State, found: ProviderError) -> int | None:
    """Return a smaller number of tokens for the answer, None where the call takes none or it would be too small."""
    now = state.max_tokens or fixed.options.max_output
    if not fixed.takes_max_tokens:
        return None
    if found.kind == "invalid_max_tokens":
        wanted = found.limit or (now // 2 if now else 0)
    elif now and found.limit and found.requested:
        wanted = found.limit - (found.requested - now) - SPARE
    else:
        wanted = 0
    return wanted if wanted >= LEAST_ANSWER and (now is None or wanted < now) else None


def _window(fixed: _Setting) -> int | None:
    """Return the window to reckon with: given, learned, or known of the model; None under a budget of the caller's."""
    options = fixed.options
    learned = fixed.windows.get(options.model or "", fixed.endpoint) if fixed.windows is not None else None
    if options.window is not None:
        return _least(options.window, learned)
    if learned is not None:
        return learned
    budget = options.budget
    if budget is not None:
        return budget if isinstance(budget, int) else budget.window
    return models.window(options.model).window if options.model else None


def _overflow(fixed: _Setting, messages: Sequence[Any], state: _State, found: ProviderError) -> ContextOverflow:
    """Return the error that names what cannot be made smaller."""
    known = {"window": state.room, "plans": state.plans, "budget": None, "usage": None, "cause": Cause.OVERFLOW}
    try:
        view = request_for(messages, replace(fixed.options, **known)).view
    except BadBudget as small:
        return ContextOverflow(f"{found.message}; {small}")
    sizes = ", ".join(f"{cause} {size:,}" for cause, size in unshrinkable(view).items())
    return ContextOverflow(
        f"the request is still refused after {state.passes} compactions ({found.message}); tokens by cause: {sizes}: "
        "shorten what is named, or use a model with a larger window"
    )


def _error_within(reply: Any) -> ProviderError | None:
    """Return the overflow that a reply of status 200 carries in place of an answer."""
    body = _as_mapping(reply)
    if not body.get("error"):
        return None
    found = classify_response(body)
    return found if found.kind == "context_overflow" else None


def _as_mapping(reply: Any) -> Mapping[str, Any]:
    """Return what is known of a reply as a mapping: a body, an SDK's value, or `refold.outside.clients.Reply`."""
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
