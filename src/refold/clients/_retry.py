"""Retries: a temporary failure is repeated after a wait (W09), a permanent one stops at once (N12)."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from refold.core.needs import Refused
from refold.errors import UsageError
from refold.models._retry_after import retry_after
from refold.models.provider_errors import classify_error

if TYPE_CHECKING:
    from refold.core.needs import Summarizer

__all__ = ["LONGEST", "WAITS", "may_retry", "patient", "retrying"]

F = TypeVar("F", bound=Callable[..., Any])

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds, W09
LONGEST = 60.0  # seconds that a provider's own figure is followed to
LASTING = frozenset(
    {
        "context_overflow", "request_too_large", "invalid_max_tokens", "invalid_request", "auth", "reasoning_invalid",
        "reasoning_missing",
    }
)  # fmt: skip
PASSING = frozenset({408, 409, 425, 429})  # of the statuses from 400 to 499, those that another try may not meet
FLAGS = ("is_retryable", "isRetryable", "retryable", "should_retry")
MISTAKES = (TypeError, AttributeError, LookupError, NameError, ImportError, NotImplementedError, AssertionError)
REPEATS = "retries_already"  # attribute of a function that retries; `functools.wraps` hands it on
AGAIN = frozenset({"failed", "empty"})  # kinds of refusal for which another try may succeed


def may_retry(error: BaseException) -> bool:
    """Tell whether another try can succeed: not after an overflow, a bad request, a wrong key, or a mistake in code.

    A flag on the error (`is_retryable`, `retryable`) or the header `x-should-retry: false` decides where it forbids.
    """
    if not isinstance(error, Exception) or isinstance(error, (*MISTAKES, UsageError)) or _forbidden(error):
        return False
    provider_error = classify_error(error)
    if provider_error.kind in LASTING or provider_error.remedy == "compact":
        return False
    return not (400 <= provider_error.status < 500 and provider_error.status not in PASSING)


def retrying(
    function: F,
    waits: Sequence[float] = WAITS,
    sleep: Callable[[float], Any] | None = None,
    *,
    longest: float = LONGEST,
    now: Callable[[], float] = time.time,
) -> F:
    """Return the function with retries: after each failure the next wait, until the waits are used up.

    Where a refusal says how long to wait (`retry-after`, `retry-after-ms`, or in words) that is waited instead, up to
    `longest` seconds; `now` is the clock that dates in it are held against, in seconds since 1970.

    What is raised or refused at last is passed on as it is. Errors of which `may_retry` says no are passed on at once,
    and so are refusals for size or by a guard. `sleep` waits: `time.sleep` by default, or `asyncio.sleep` for a
    coroutine function. A function that retries already is returned unchanged.
    """
    if getattr(function, REPEATS, False):
        return function
    import tenacity

    options: dict[str, Any] = {
        "stop": tenacity.stop_after_attempt(len(waits) + 1),
        "wait": lambda state: _wait(state, waits, longest, now),
        "retry": tenacity.retry_if_exception(may_retry) | tenacity.retry_if_result(_worth_another),
        "retry_error_callback": lambda state: state.outcome.result(),
    }
    if inspect.iscoroutinefunction(function):
        import asyncio

        tries = tenacity.AsyncRetrying(sleep=sleep or asyncio.sleep, **options)

        @wraps(function)
        async def again_async(*args: Any, **named: Any) -> Any:
            return await tries.copy()(function, *args, **named)

        setattr(again_async, REPEATS, True)
        return cast("F", again_async)

    @wraps(function)
    def again(*args: Any, **named: Any) -> Any:
        return tenacity.Retrying(sleep=sleep or time.sleep, **options)(function, *args, **named)

    setattr(again, REPEATS, True)
    return cast("F", again)


def patient(summarize: Summarizer, waits: Sequence[float], sleep: Callable[[float], object]) -> Summarizer:  # W09
    """Return a summarizer with retries that a caller who blocks can wait for: no coroutine function any more.

    `sleep` blocks, also between the tries of a coroutine function.
    """
    if not inspect.iscoroutinefunction(summarize):
        return retrying(summarize, waits, sleep)

    async def pause(seconds: float) -> None:
        sleep(seconds)

    again = retrying(summarize, waits, pause)
    return lambda need: again(need)  # noqa: PLW0108 - what it returns is waited for in a thread


def _wait(state: Any, waits: Sequence[float], longest: float, now: Callable[[], float]) -> float:
    if state.attempt_number > len(waits):  # asked for a wait after the last try too
        return 0.0
    seconds = retry_after(state.outcome.exception(), now) if state.outcome.failed else None
    return min(seconds, longest) if seconds else waits[state.attempt_number - 1]


def _worth_another(reply: object) -> bool:
    if isinstance(reply, str):
        return not reply.strip()
    return isinstance(reply, Refused) and reply.kind in AGAIN


def _forbidden(error: Exception) -> bool:
    if any(getattr(error, flag, None) is False for flag in FLAGS):
        return True
    headers = getattr(getattr(error, "response", None), "headers", None)
    return isinstance(headers, Mapping) and headers.get("x-should-retry") == "false"
