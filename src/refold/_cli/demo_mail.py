"""The 41-e-mail task (W19): an agent works on it under each policy against a mock provider."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from refold._cli import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.agent import Agent
    from refold.testing.client import ScriptedClient
    from refold.testing.provider._mail_agent import Mailbox

WINDOWS = ((1_000_000, 32_768), (200_000, 16_384))  # window and output reserve; the first leaves 967,232 (W19)


class MailTrial(NamedTuple):
    """What came of the task under one policy: e-mails read, calls of the model, refusals and compactions.

    `highest` and `final` are exact tokens of the agent's own requests; `after` is the largest share of the input
    budget that a compaction left, as the policy counts.
    """

    policy: str
    window: int
    read: int
    reads: int
    mails: int
    calls: int
    refusals: int
    compactions: int
    after: float
    highest: int
    final: int
    seconds: float
    failed: str = ""


def tried(policy: str, window: int, reserve: int) -> MailTrial:
    """Have an agent do the task under a policy; the model is a rule that sees nothing but each request."""
    from refold.agent.cards import DoneCard
    from refold.testing.provider._mail_agent import Mailbox

    box = Mailbox()
    cards: list[object] = []
    agent, client = _agent(box, policy, window, reserve, cards)
    start, failed = time.perf_counter(), ""
    try:
        agent.run(box.task)
    except Exception as error:  # told in the table
        failed = f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - start
    own = [received for received in client.received if received.tools]
    done = [card for card in cards if isinstance(card, DoneCard)]
    sizes = [received.tokens for received in own if received.status == 200]
    return MailTrial(
        policy, window, len(set(box.read)), len(box.read), len(box.ids), len(own),
        sum(received.status != 200 for received in client.received), len(done),
        max((card.after / (window - reserve) for card in done), default=0.0),
        max(sizes, default=0), sizes[-1] if sizes else 0, seconds, failed,
    )  # fmt: skip


def table(trials: Sequence[MailTrial]) -> None:
    """Print the trials of one window."""
    headers = (
        "policy",
        ">read",
        ">calls",
        ">refused",
        ">compactions",
        ">left at most",
        ">highest",
        ">final",
        ">time",
        "#",
    )
    rows: list[tuple[str, ...]] = []
    for trial in trials:
        if trial.failed:
            rows.append((trial.policy, *[""] * 8, show.clean(trial.failed, 60)))
            continue
        left = f"{trial.after:.0%}" if trial.compactions else ""
        rows.append(
            (trial.policy, f"{trial.read} of {trial.mails}", show.number(trial.calls), show.number(trial.refusals),
             show.number(trial.compactions), left, show.number(trial.highest), show.number(trial.final),
             f"{trial.seconds * 1000:,.0f} ms", show.bar(trial.final, trial.window))
        )  # fmt: skip
    show.table(headers, rows, title=f"An agent reads 41 e-mails in a window of {trials[0].window:,}")


def _agent(box: Mailbox, policy: str, window: int, reserve: int, cards: list[object]) -> tuple[Agent, ScriptedClient]:
    from refold.agent import Agent, Tool
    from refold.core.budget import Budget
    from refold.summaries.summarizers import model_summarizer
    from refold.testing.client import ScriptedClient
    from refold.testing.provider._mail_agent import MailAgent

    client = ScriptedClient(behave=MailAgent(), window=window)
    defined = [each["function"] for each in box.tools]
    tools = [
        Tool(each["name"], each["description"], each["parameters"], getattr(box, each["name"])) for each in defined
    ]
    agent = Agent(
        client, policy=policy, tools=tools, system=box.system, budget=Budget(window, reserve), waits=(),
        summarize=model_summarizer(client, window=window), observers=[cards.append],
    )  # fmt: skip
    return agent, client
