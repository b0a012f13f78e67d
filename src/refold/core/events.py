"""Compaction events for observers (cards, log lines, metrics). Drivers send them; the core does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from refold.core.plan import Plan
from refold.core.view import Cause

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CompactionApplied", "CompactionFailed", "CompactionStarted", "Event", "Observer", "notify"]


class CompactionStarted(Struct, frozen=True, tag="compaction_started"):
    """A compaction started: number of messages, tokens, and the cause."""

    messages: int
    tokens: int
    cause: Cause


class CompactionApplied(Struct, frozen=True, tag="compaction_applied"):
    """A compaction is done; the plan contains every figure that a card shows."""

    plan: Plan


class CompactionFailed(Struct, frozen=True, tag="compaction_failed"):
    """A compaction ended without a plan; the conversation is unchanged."""

    reason: str


Event: TypeAlias = CompactionStarted | CompactionApplied | CompactionFailed
Observer: TypeAlias = "Callable[[Event], object]"


def notify(observers: tuple[Observer, ...], event: Event) -> None:
    """Tell every observer; one that raises never breaks a compaction."""
    for observer in observers:
        try:
            observer(event)
        except Exception:  # noqa: S112 - a watcher's failure is not the conversation's
            continue
