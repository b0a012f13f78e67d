"""The recovery state machine for rejected requests, without input and output: it yields actions and receives results.

Each takes the state of a recovery and returns the next, or raises what the caller is to see.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold import api
from refold._compaction.options import Options
from refold._compaction.request import request_for
from refold.core.view import Cause
from refold.errors import BadBudget, ContextOverflow, SummaryRefused
from refold.handlers import Handlers
from refold.models import _catalog as catalog
from refold.models.provider_errors import ProviderError, classify_error
from refold.policies._internal import STRIP_MEDIA, drop_reasoning

if TYPE_CHECKING:
    from refold._compaction.result import Result
    from refold.core._native import Messages
    from refold.core.events import Observer
    from refold.core.plan import Plan
    from refold.recovery._learned_windows import LearnedWindows

__all__ = ["Calling", "Compacting", "RecoveryState", "RecoverySteps", "Setting", "answered", "begun", "compacted"]

LEAST_ANSWER = 256  # tokens: below, an answer is not reduced further and the conversation is compacted instead
PLAUSIBLE = 2  # a likely overflow is one where the request, as counted, fills at least one part in two of the window
RUNS = 2  # removals of reasoning: where a compaction item leaves, the messages it stood for are read again, and theirs
SPARE = 16  # tokens left free when an answer is reduced to what the window has left
OF_A_REFUSAL = frozenset({Cause.OVERFLOW, Cause.SILENT_OVERFLOW})


class Calling(Struct, frozen=True):
    """Ask the model."""

    messages: list[Any]
    max_tokens: int | None = None

    def named(self) -> dict[str, int]:
        """Return the arguments that the function is called with beside the messages."""
        return {} if self.max_tokens is None else {"max_tokens": self.max_tokens}


class Compacting(Struct, frozen=True):
    """Compact the conversation; the arguments of `refold.compact`."""

    messages: Messages
    arguments: dict[str, Any]


class Setting(Struct, frozen=True):
    """What stays the same during one recovery."""

    options: Options
    handlers: Handlers
    observers: tuple[Observer, ...]
    endpoint: str
    windows: LearnedWindows | None
    max_passes: int
    takes_max_tokens: bool


class RecoveryState(Struct, frozen=True):
    """Where one recovery stands; `room` is the window in tokens as we count, where the provider counts more.

    `stripped` says that pictures and files have left, `resent` that the same request was sent twice, `cured` that
    refused reasoning has left.
    """

    sent: list[Any]
    plans: tuple[Plan, ...]
    window: int | None
    room: int | None
    passes: int = 0
    max_tokens: int | None = None
    stripped: bool = False
    resent: bool = False
    cured: bool = False


Action: TypeAlias = "Calling | Compacting"
RecoverySteps: TypeAlias = Generator[Action, Any, Any]


def begun(fixed: Setting, messages: Messages, passes: int) -> RecoveryState:
    """Return the state before the first call: the messages under the plans in force, and the window to reckon with."""
    plans = tuple(fixed.options.plans)
    sent = api.apply(plans[-1], messages, plans=plans[:-1]).messages if plans else list(messages)
    window = _window(fixed)
    return RecoveryState(sent, plans, window, window, passes)


def answered(fixed: Setting, messages: Messages, state: RecoveryState, error: Exception) -> RecoverySteps:
    """Change the request in the way that the refusal calls for, or raise the refusal."""
    problem = classify_error(error)
    if problem.kind == "context_overflow" and problem.confidence == "likely" and not _plausible(fixed, state):
        raise error
    known_window = _certain_window(problem)
    if fixed.windows is not None and known_window:
        fixed.windows.learn(fixed.options.model or "", fixed.endpoint, known_window)
    match problem.remedy:
        case "reduce_max_tokens":
            reduced = _reduced(fixed, state, problem)
            if reduced is not None:
                return replace(state, max_tokens=reduced, window=_least(state.window, known_window))
            if problem.kind == "invalid_max_tokens":
                raise error
        case "strip_media" if not state.stripped:
            stripped = yield from _stripped(fixed, messages, state)
            if stripped is not None:
                return stripped
        case "drop_reasoning":
            return (yield from _cured(fixed, messages, state, problem, error))
        case "compact" | "strip_media":
            pass
        case _:
            raise error
    return (yield from _smaller(fixed, messages, state, problem, error))


def _cured(
    fixed: Setting, messages: Messages, state: RecoveryState, problem: ProviderError, error: Exception
) -> RecoverySteps:
    """Return the state without the reasoning that was refused; it is raised where that was done before."""
    if state.cured:
        error.add_note("refold: the reasoning was removed from the conversation, and the provider still refuses it")
        raise error
    if problem.provider == "google" and not state.resent:  # its signatures often pass the second time
        return replace(state, resent=True)
    after = state
    for _ in range(RUNS if problem.item else 1):
        arguments = _arguments(
            fixed, after, policy=drop_reasoning(problem), budget=10**10, window=None, cause=Cause.MANUAL, usage=None
        )
        result: Result = yield Compacting(messages, {**arguments, "counter": "exact", "goal": None})
        if result.plan.empty:
            break
        after = _with(after, result, cured=True)
    if after is state:
        error.add_note("refold: the conversation holds no reasoning that could be removed")
        raise error
    return after


def _smaller(
    fixed: Setting, messages: Messages, state: RecoveryState, problem: ProviderError, error: Exception
) -> RecoverySteps:
    """Compact after a refusal; below what was refused, where the refusal does not tell the window."""
    if not messages:
        raise ContextOverflow(f"{problem.message}; there is no conversation here to compact") from error  # O14
    room = _least(state.room, _bound(problem, _counted(fixed, state)))
    narrowed = replace(state, window=_least(state.window, _certain_window(problem)), room=room)
    if state.passes >= fixed.max_passes or _in_vain(state, narrowed, messages):
        raise _overflow(fixed, messages, narrowed, problem) from error
    try:
        after = yield from compacted(fixed, messages, narrowed, Cause.OVERFLOW)
    except BadBudget as small:
        raise ContextOverflow(f"{problem.message}; {small}") from error
    if after.plans == state.plans:
        raise _overflow(fixed, messages, narrowed, problem) from error
    return after


def _certain_window(problem: ProviderError) -> int | None:
    """Return the window that a refusal tells for certain; the limit of a rate limit is none."""
    return problem.limit if problem.kind == "context_overflow" and problem.confidence == "certain" else None


def _plausible(fixed: Setting, state: RecoveryState) -> bool:
    """Tell whether a request is large enough for an overflow that its refusal does not say for certain."""
    return state.window is None or _counted(fixed, state) * PLAUSIBLE >= state.window


def _counted(fixed: Setting, state: RecoveryState) -> int:
    """Return the tokens of what was sent, as we count."""
    options = fixed.options
    return api.count(state.sent, model=options.model, format=options.format, system=options.system, tools=options.tools)


def _in_vain(state: RecoveryState, narrowed: RecoveryState, messages: Messages) -> bool:
    """Tell whether these messages were compacted after a refusal before, and nothing is known now that was not then."""
    last = state.plans[-1] if state.plans else None
    again = last is not None and last.cause in OF_A_REFUSAL and last.base.length == len(messages)
    return again and narrowed.room == state.room


def _bound(problem: ProviderError, refused: int) -> int:
    """Return the tokens, as we count, below which a request must come of which we counted `refused`."""
    if not problem.limit:
        return refused
    return problem.limit if not problem.requested else min(problem.limit, problem.limit * refused // problem.requested)


def _least(*sizes: int | None) -> int | None:
    return min((size for size in sizes if size), default=None)


def compacted(fixed: Setting, messages: Messages, state: RecoveryState, cause: Cause | str) -> RecoverySteps:
    """Compact, without a summary where none can be had; return the state after it."""
    usage = fixed.options.usage if cause == Cause.SILENT_OVERFLOW else None  # a refused request was not measured
    known = _arguments(fixed, state, window=state.room, cause=cause, usage=usage)
    try:
        result: Result = yield Compacting(messages, {**known, "handlers": fixed.handlers})
    except SummaryRefused:
        without = replace(fixed.handlers, summarize=None)
        result = yield Compacting(messages, {**known, "handlers": without})
    return _with(state, result, passes=state.passes + 1)


def _stripped(fixed: Setting, messages: Messages, state: RecoveryState) -> RecoverySteps:
    """Return the state without pictures and files, None where there are none."""
    arguments = _arguments(
        fixed, state, policy=STRIP_MEDIA, budget=10**10, window=None, cause=Cause.OVERFLOW, usage=None
    )
    result: Result = yield Compacting(messages, {**arguments, "counter": "exact", "goal": None})
    return None if result.plan.empty else _with(state, result, stripped=True)


def _arguments(fixed: Setting, state: RecoveryState, **changed: Any) -> dict[str, Any]:
    names = Options.__struct_fields__
    options = {name: getattr(fixed.options, name) for name in names}
    if changed.get("window") is not None:
        options["budget"] = None
    return {**options, "plans": state.plans, "observers": fixed.observers, **changed}


def _with(state: RecoveryState, result: Result, **changed: Any) -> RecoveryState:
    if result.plan.empty:
        return replace(state, **{**changed, "passes": state.passes})
    return replace(state, sent=result.messages, plans=result.plans, **changed)


def _reduced(fixed: Setting, state: RecoveryState, problem: ProviderError) -> int | None:
    """Return a smaller number of tokens for the answer, None where the call takes none or it would be too small."""
    now = state.max_tokens or fixed.options.max_output
    if not fixed.takes_max_tokens:
        return None
    if problem.kind == "invalid_max_tokens":
        wanted = problem.limit or (now // 2 if now else 0)
    elif problem.limit and problem.input is not None:
        wanted = problem.limit - problem.input - SPARE
    elif now and problem.limit and problem.requested:
        wanted = problem.limit - (problem.requested - now) - SPARE
    else:
        wanted = 0
    return wanted if wanted >= LEAST_ANSWER and (now is None or wanted < now) else None


def _window(fixed: Setting) -> int | None:
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
    return catalog.window(options.model).window if options.model else None


def _overflow(fixed: Setting, messages: Messages, state: RecoveryState, problem: ProviderError) -> ContextOverflow:
    """Return the error that names what cannot be made smaller."""
    from refold.stages.fit import unshrinkable  # with the fit engine, most of what `import refold` would load

    known = {"window": state.room, "plans": state.plans, "budget": None, "usage": None, "cause": Cause.OVERFLOW}
    try:
        view = request_for(messages, replace(fixed.options, **known)).view
    except BadBudget as small:
        return ContextOverflow(f"{problem.message}; {small}")
    sizes = ", ".join(f"{cause} {size:,}" for cause, size in unshrinkable(view).items())
    return ContextOverflow(
        f"the request is still refused after {state.passes} compactions ({problem.message}); tokens by cause: {sizes}: "
        "shorten what is named, or use a model with a larger window"
    )
