"""Middleware that runs before and after each model call and decides: continue, compact first, or stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from refold.agent._statistics import Statistics

__all__ = [
    "Action",
    "AutoCompact",
    "ContextWarning",
    "Middleware",
    "MiddlewareVerdict",
    "Pipeline",
    "Reset",
    "Situation",
]

WARNS_AT = 0.5  # V02, of the threshold


class Action(StrEnum):
    """The action that a middleware requests."""

    CONTINUE = "continue"
    COMPACT = "compact"
    STOP = "stop"


class Reset(StrEnum):
    """Why a middleware must forget its state."""

    COMPACT = "compact"
    NEW_SESSION = "new_session"


class Situation(Struct, frozen=True):
    """The input of a middleware: the statistics, the step within the turn, the number of messages."""

    statistics: Statistics
    step: int
    messages: int


class MiddlewareVerdict(Struct, frozen=True):
    """The action that a middleware requests, and why."""

    action: Action = Action.CONTINUE
    reason: str = ""


GO_ON = MiddlewareVerdict()


class Middleware(Protocol):
    """Runs before and after each model call."""

    def before_turn(self, situation: Situation) -> MiddlewareVerdict:
        """Say what is to be done before the call."""

    def after_turn(self, situation: Situation) -> MiddlewareVerdict:
        """Say what is to be done after the answer and its tools."""

    def reset(self, reason: Reset) -> None:
        """Forget what is no longer so."""


class Pipeline:
    """Calls middlewares in order; the first that asks to stop or compact decides, and those after it are not called."""

    def __init__(self, middlewares: Sequence[Middleware] = ()) -> None:
        self._all = tuple(middlewares)

    def before_turn(self, situation: Situation) -> MiddlewareVerdict:
        """Return what is to be done before the call."""
        return _first(each.before_turn(situation) for each in self._all)

    def after_turn(self, situation: Situation) -> MiddlewareVerdict:
        """Return what is to be done after the answer."""
        return _first(each.after_turn(situation) for each in self._all)

    def reset(self, reason: Reset) -> None:
        """Have all forget."""
        for each in self._all:
            each.reset(reason)


class AutoCompact:  # V01, V13
    """Compacts from a number of tokens of context on, independent of the policy's trigger; 0 or less never."""

    def __init__(self, threshold: int) -> None:
        self.threshold = threshold

    def before_turn(self, situation: Situation) -> MiddlewareVerdict:
        """Ask for a compaction when the last call's total has reached the threshold."""
        tokens = situation.statistics.context_tokens
        if 0 < self.threshold <= tokens:
            return MiddlewareVerdict(Action.COMPACT, f"{tokens:,} tokens of context have reached {self.threshold:,}")
        return GO_ON

    def after_turn(self, situation: Situation) -> MiddlewareVerdict:
        """Go on."""
        return GO_ON

    def reset(self, reason: Reset) -> None:
        """Nothing is remembered."""


class ContextWarning:  # V02
    """Warns once when half of a threshold is reached, and again only after a reset."""

    def __init__(self, threshold: int, warn: Callable[[str], object], *, share: float = WARNS_AT) -> None:
        self._threshold, self._warn, self._share = threshold, warn, share
        self._warned = False

    def before_turn(self, situation: Situation) -> MiddlewareVerdict:
        """Warn if that has not been done, and go on."""
        tokens = situation.statistics.context_tokens
        if not self._warned and 0 < self._threshold * self._share <= tokens:
            self._warned = True
            self._warn(
                f"The context holds {tokens:,} tokens, {tokens / self._threshold:.0%} of the {self._threshold:,} "
                "from which on it is compacted"
            )
        return GO_ON

    def after_turn(self, situation: Situation) -> MiddlewareVerdict:
        """Go on."""
        return GO_ON

    def reset(self, reason: Reset) -> None:
        """Warn again when it is time."""
        self._warned = False


def _first(verdicts: Iterable[MiddlewareVerdict]) -> MiddlewareVerdict:
    return next((verdict for verdict in verdicts if verdict.action is not Action.CONTINUE), GO_ON)
