"""A policy that asks for a summary takes any function: synchronous, asynchronous, or one that fails."""

import asyncio
import json
from pathlib import Path

import refold
from refold.core.needs import SummaryNeed

body = json.loads(Path(__file__).with_name("small.json").read_bytes())


def summarize(request: SummaryNeed) -> str:
    """Stand in for a call of your own client: send `request.instructions` and `request.text`, return the answer."""
    return f"{len(request.messages)} messages about shipping prices: SHP-207 is done, prices.csv must not change."


async def summarize_slowly(request: SummaryNeed) -> str:
    """Do the same from within an event loop."""
    await asyncio.sleep(0.01)
    return summarize(request)


def summarize_badly(request: SummaryNeed) -> str:
    """Fail as a provider does on a bad day."""
    raise ConnectionError("the provider did not answer")


def show(name: str, result: refold.Result) -> None:
    """Print what became of the conversation."""
    print(f"{name}: {result.sizes.before:,} -> {result.sizes.after:,} tokens")
    print(f"  instead of the old messages: {result.messages[1]['content'].splitlines()[2]}")
    for step in result.plan.steps:
        if step.refused:
            print(f"  refused: {step.refused}")


messages, tools, budget = body["messages"], body["tools"], 1_200
show("sync", refold.compact(messages, tools=tools, budget=budget, policy="opal", summarize=summarize))
show(
    "async",
    asyncio.run(refold.acompact(messages, tools=tools, budget=budget, policy="opal", summarize=summarize_slowly)),
)
show("failing", refold.compact(messages, tools=tools, budget=budget, policy="opal", summarize=summarize_badly))
