"""Why a compaction was due or not: one line for each check, and a snapshot for each step (W17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from refold.agent._private_files import owned_folder, write_owned

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Decision", "Snapshots"]


class Decision(Struct, frozen=True, tag="decision"):
    """One check before a call.

    `estimate` is the counter's figure, `last_known` what the provider last reported (None before any report),
    `effective` what counts by the policy's gauge; `budget` and `threshold` are tokens; `system_chars` is the length of
    the system prompt in characters, `system_tokens` in the counter's tokens. `waits`: the trigger is reached, and the
    compaction waits until it pays.
    """

    estimate: int
    last_known: int | None
    effective: int
    budget: int
    threshold: int
    messages: int
    system_chars: int
    system_tokens: int
    tools: int
    force: bool
    due: bool
    turn: int = 0
    step: int = 0
    waits: bool = False

    @property
    def line(self) -> str:
        """The decision as one line in Wolffish's words."""
        known = "none" if self.last_known is None else self.last_known
        return (
            f"[compactor] charEstimate={self.estimate} lastKnown={known} effective={self.effective} "
            f"budget={self.budget} threshold={self.threshold} ({self.threshold / self.budget:.0%}) "
            f"messages={self.messages} sysChars={self.system_chars} tools={self.tools} "
            f"force={_word(self.force)} needsCompaction={_word(self.due or self.force)}"
        )


class Snapshots:
    """An observer that writes each step's decision as JSON: `turn-0001-step-002.json`, readable by its owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = owned_folder(folder)

    def __call__(self, event: object) -> None:
        """Write a decision; anything else is passed over."""
        if isinstance(event, Decision):
            body = {"tokenCount": event.system_tokens, "tokenBudget": event.budget} | msgspec.to_builtins(event)
            name = f"turn-{event.turn:04}-step-{event.step:03}.json"
            write_owned(self._folder / name, msgspec.json.format(msgspec.json.encode(body)).decode() + "\n")


def _word(value: bool) -> str:
    return "true" if value else "false"
