"""The policies of refold itself, driven like any other row."""

from __future__ import annotations

from functools import cache
from typing import Any

from adapters.base import SUMMARY, Messages, Peer

POLICIES = ("refold", "claude-code", "vibe", "opal", "wolffish", "neurolink")


class _Policy(Peer):
    models = True

    def __init__(self) -> None:
        import refold
        from refold._counting import counter_for

        self.refold, self.counter = refold, counter_for("gpt-4o")

    def prepare(self, weights: str | None) -> None:
        """Predict with weights that were trained without the source of the conversation."""
        if weights:
            from pathlib import Path

            from refold._salience import model

            held = model.loaded(Path(weights).read_bytes())
            model.shipped = cache(lambda: held)

    def compact(self, native: Messages, budget: int) -> Any:
        return self.refold.compact(
            native,
            format="openai-chat",
            policy=self.name,
            budget=budget,
            counter=self.counter,
            force=True,
            summarize=lambda _: SUMMARY,
        ).messages


PEERS = [type(f"Policy_{name}", (_Policy,), {"name": name}) for name in POLICIES]
