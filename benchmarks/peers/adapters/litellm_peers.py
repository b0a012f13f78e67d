"""LiteLLM's trim_messages."""

from __future__ import annotations

import os
from typing import Any

from adapters.base import Peer


class Trim(Peer):
    name, family = "litellm trim_messages", "litellm"
    note = "trim_ratio=1.0; counts with tiktoken"

    def __init__(self) -> None:
        os.environ["CUSTOM_TIKTOKEN_CACHE_DIR"] = os.environ["TIKTOKEN_CACHE_DIR"]
        from litellm.utils import trim_messages

        self.trim = trim_messages

    def compact(self, native: Any, budget: int) -> Any:
        return self.trim(native, model="gpt-4o", max_tokens=budget, trim_ratio=1.0)


PEERS = [Trim]
