"""What each system calls the same events, and which figures it sends with them, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from refold.agent.cards import DoneCard, FailedCard, StartedCard
from refold.agent.events import TurnEnded, UsageReported

__all__ = ["NAMES", "named"]

Naming: TypeAlias = tuple[str, Callable[[Any], dict[str, Any]]]


def _economy(card: DoneCard) -> dict[str, Any]:
    """Return what a compaction costs and saves in tokens of input, and the call from which on it pays."""
    economy = card.break_even
    return {} if economy is None else {"cost": economy.cost, "saving": economy.saving, "pays_from": economy.calls}


_USAGE: Naming = (
    "usage_update",
    lambda event: {
        "current_context_tokens": event.statistics.prompt,
        "total_tokens": event.statistics.session_tokens,
        "context_window": event.window,
    },
)
_OWN: Mapping[type, Naming] = {
    StartedCard: (
        "compaction_started",
        lambda card: {"messages": card.messages, "targets": card.targets, "tokens": card.tokens, "cause": card.cause},
    ),
    DoneCard: (
        "compaction_applied",
        lambda card: {
            "before": card.before,
            "after": card.after,
            "saved": card.saved,
            "plan": card.plan,
            **_economy(card),
        },
    ),
    FailedCard: ("compaction_failed", lambda card: {"reason": card.reason}),
    UsageReported: _USAGE,
    TurnEnded: ("turn_ended", lambda event: {"steps": event.steps, "ending": event.ending, "window": event.window}),
}
NAMES: Mapping[str, Mapping[type, Naming]] = {
    "refold": _OWN,
    "wolffish": {  # W16
        StartedCard: (
            "compaction.started",
            lambda card: {"messagesCount": card.messages, "force": card.force},
        ),
        DoneCard: (
            "compaction.applied",
            lambda card: {"tokensSaved": card.saved, "targetsCount": len(card.targets)},
        ),
        UsageReported: (
            "llm.response",
            lambda event: {"inputTokens": event.statistics.prompt, "outputTokens": event.statistics.completion},
        ),
    },
    "opal": {  # O03, O16
        StartedCard: ("compaction_start", lambda card: {"messages": card.messages}),
        DoneCard: (
            "compaction_end",
            lambda card: {"messages_before": card.messages_before, "messages_after": card.messages_after},
        ),
        UsageReported: _USAGE,
        TurnEnded: (
            "agent_end",
            lambda event: {
                "current_context_tokens": event.statistics.prompt,
                "total_tokens": event.statistics.session_tokens,
                "context_window": event.window,
            },
        ),
    },
    "vibe": {  # V10
        StartedCard: (
            "CompactStartEvent",
            lambda card: {"current_context_tokens": card.tokens, "threshold": card.threshold},
        ),
        DoneCard: (
            "CompactEndEvent",
            lambda card: {
                "old_context_tokens": card.before,
                "new_context_tokens": card.after,
                "summary_length": card.summary,
            },
        ),
    },
}


def named(event: object, system: str = "refold") -> tuple[str, dict[str, Any]] | None:
    """Return an event's name and figures in the words of a system; those it has no word for have ours.

    None for events that neither has a name for. No text of a message is among the figures.
    """
    naming = NAMES.get(system, _OWN).get(type(event)) or _OWN.get(type(event))
    return (naming[0], naming[1](event)) if naming else None
