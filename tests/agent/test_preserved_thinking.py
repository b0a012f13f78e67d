"""An agent on a model that binds thinking, over the official SDK, against a provider that checks what is bound."""

import pytest

from refold import policies
from refold.agent import Agent, tool
from refold.clients._factory import client
from refold.core.budget import Budget
from refold.testing.provider import ScriptedProvider, ScriptedReply
from tests.depth import combined

MODELS = {"claude-sonnet-4-5-20250929": "enabled", "claude-opus-4-8": "adaptive", "claude-opus-5-5": "adaptive"}
LINE = "2026-01-01 12:00:00 worker wrote 17 rows to orders.csv and found an ERROR there\n"


@tool
def read(path: str) -> str:
    """Read a file."""
    return path + LINE * 30


def behave(received):
    number = received.number
    if received.tools == () or number % 25 == 0:
        return ScriptedReply("The work so far went well, and the parser is ported. " * 8)
    return ScriptedReply(
        f"Step {number}.", [("read", {"path": f"src/{number}.py"})], thinking=f"I think of step {number}."
    )


@pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")  # the SDK's, of old models
@pytest.mark.parametrize(("model", "policy"), combined(reversed(MODELS), reversed(policies.names())))
def test_sixty_calls_with_compactions_are_all_accepted(model, policy):
    thinking = {"type": MODELS[model]} | ({"budget_tokens": 1_024} if MODELS[model] == "enabled" else {})
    with ScriptedProvider(behave=behave) as provider:
        with_model = client(model, provider.url, "key", "anthropic", options={"thinking": thinking})
        summarize = lambda need: "The work so far went well. " * 8  # noqa: E731
        window = 20_000 if policy == "claude-code" else 10_000  # it starts 13,000 below: else at every second call
        agent = Agent(
            with_model, policy=policy, tools=[read], budget=Budget(window, 1_500), summarize=summarize,
            system="Be careful.", waits=(),
        )  # fmt: skip
        plans = []
        for text in ("Port the parser.", "Go on with the tests.", "And the docs."):
            agent.run(text)
            plans += agent.plans
        agent.close()
    refused = [received for received in provider.received if received.status != 200]
    assert refused == []
    assert len(provider.received) >= 60
    assert len({plan.id for plan in plans}) >= 2
    sent = [str(received.body["messages"]).count("'thinking': ") for received in provider.received]
    assert max(sent) >= (1 if policy == "wolffish" and model == "claude-opus-5-5" else 3)
