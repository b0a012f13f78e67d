"""How much thinking is kept where a model binds it, and how many requests are refused, beside three rivals.

    python -m benchmarks.thinking

An agent of sixty steps works against a provider that signs thinking by what stands before it, and compacts whenever a
window of 12,000 tokens is due. `keep all` is what a compaction does that does not know of the binding; `drop older`
keeps the thinking of the newest answer alone, `drop all` keeps none: the two that need no bookkeeping.
"""

from __future__ import annotations

from typing import Any

import refold
from refold import policies
from refold.testing.provider._thinking import misplaced
from tests.laws.test_preserved_thinking import SYSTEM, TOOLS, WINDOW, Agent

STEPS = 60
BINDING, FREE = "claude-opus-5-5", "claude-opus-4-8"


def blocks(message: dict[str, Any]) -> list[Any]:
    content = message["content"]
    return content if isinstance(content, list) else []


def stripped(messages: list[Any], stop: int) -> list[Any]:
    """Return messages of which those before a position have no thinking."""
    return [
        message
        if place >= stop or not any(block["type"] == "thinking" for block in blocks(message))
        else {**message, "content": [block for block in blocks(message) if block["type"] != "thinking"]}
        for place, message in enumerate(messages)
    ]


class Run(Agent):
    def __init__(self, policy: str, way: str) -> None:
        super().__init__(BINDING, policy)
        self.way, self.refused, self.kept, self.requests = way, 0, 0, 0

    def request(self) -> dict[str, Any]:
        body = super().request()
        answers = [place for place, message in enumerate(body["messages"]) if message["role"] == "assistant"]
        if self.way == "drop all":
            body["messages"] = stripped(body["messages"], len(body["messages"]))
        if self.way == "drop older" and answers:
            body["messages"] = stripped(body["messages"], answers[-1])
        return body

    def check(self, body: dict[str, Any]) -> None:
        self.requests += 1
        self.refused += bool(misplaced(body))
        self.kept += sum(block["type"] == "thinking" for message in body["messages"] for block in blocks(message))

    def compact_if_due(self) -> None:
        model = FREE if self.way == "keep all" else BINDING
        result = refold.compact(
            self.messages, format="anthropic", model=model, policy=self.policy, window=WINDOW, plans=self.plans,
            system=SYSTEM, tools=TOOLS, summarize=lambda need: "The work so far went well. " * 8,
        )  # fmt: skip
        self.compactions += not result.plan.empty
        self.plans = result.plans


def main() -> None:
    print(f"{'policy':14}{'way':12}{'compactions':>12}{'refused':>10}{'thinking a request':>20}")
    for policy in policies.names():
        for way in ("refold", "keep all", "drop older", "drop all"):
            run = Run(policy, way)
            run.user("Port the parser. Never touch legacy.py.")
            for _ in range(STEPS):
                run.compact_if_due()
                run.answer()
            print(f"{policy:14}{way:12}{run.compactions:12}{run.refused:7}/{STEPS}{run.kept / run.requests:20.1f}")


if __name__ == "__main__":
    main()
