"""headroom-ai's compress(); it knows no budget, so it is asked once and shown as it comes."""

from __future__ import annotations

from typing import Any

from adapters.base import Peer


class Compress(Peer):
    name, family, budgeted = "headroom compress", "headroom", False
    note = "no budget; without its model, which is fetched from a hub"

    def __init__(self) -> None:
        from headroom import compress

        self.compress = compress

    def compact(self, native: Any, budget: int) -> Any:
        return self.compress(native, model="gpt-4o", model_limit=budget).messages


class CompressMost(Compress):
    name = "headroom compress (agent-90)"
    note = "no budget; its profile for the most savings, recent messages not protected; without its model"

    def compact(self, native: Any, budget: int) -> Any:
        return self.compress(
            native, model="gpt-4o", model_limit=budget, savings_profile="agent-90", protect_recent=0
        ).messages


PEERS = [Compress, CompressMost]
