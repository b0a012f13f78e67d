"""The four policies whose originals were recorded, and what a comparison of each gives."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tests.conformance import (
    differential_claude_code,
    differential_neurolink,
    differential_vibe,
    differential_wolffish,
    histories,
)
from tests.conformance.differential import Decision, Tally

__all__ = ["COMPARISONS", "compared", "figures"]

COMPARISONS: dict[str, ModuleType] = {
    "neurolink": differential_neurolink,
    "vibe": differential_vibe,
    "claude-code": differential_claude_code,
    "wolffish": differential_wolffish,
}


def compared(policy: str) -> tuple[list[Decision], Tally]:
    """Return all decisions of a policy beside those of its original, and the count of them."""
    decisions = list(COMPARISONS[policy].decisions())
    return decisions, Tally.of(len(histories.histories()), decisions)


def figures() -> dict[str, Any]:
    """Return the figures of all."""
    return {policy: compared(policy)[1].figures for policy in COMPARISONS}
