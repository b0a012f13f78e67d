"""The 41-e-mail task (W19): an agent works on it under each policy against a mock provider."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from refold._cli import show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refold.agent import Agent
    from refold.core.budget import Budget
    from refold.core.counting import Counter
    from refold.testing.client import ScriptedClient
    from refold.testing.provider._mail_agent import Mailbox

WINDOWS = ((1_000_000, 32_768), (200_000, 16_384))  # window and output reserve; the first leaves 967,232 (W19)


class MailTrial(NamedTuple):
    """What came of the task under one policy: e-mails read, calls of the model, those refused, and compactions.

    A summary that is refused for its size is asked for again in parts, and not counted as refused.

    `highest` and `final` are the provider's own count of the agent's requests, `left` of the largest request that
    follows a compaction; `after` is the largest share of the input budget that a compaction left, as the policy counts.
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
    left: int
    seconds: float
    failed: str = ""


def tried(policy: str, window: int, reserve: int, counter: Counter | None = None) -> MailTrial:
    """Have an agent do the task under a policy; the model is a rule that sees nothing but each request.

    `counter` is what the provider counts and bills by; the policy does not know it.
    """
    from refold.agent.cards import DoneCard
    from refold.core.budget import Budget
    from refold.testing.client import ScriptedClient
    from refold.testing.provider._mail_agent import MailAgent, Mailbox

    box = Mailbox()
    client = ScriptedClient(behave=MailAgent(), window=window, counter=counter)
    done: list[tuple[DoneCard, int]] = []  # a card, and how many requests there were before

    def observe(event: object) -> None:
        if isinstance(event, DoneCard):
            done.append((event, len(client.received)))

    agent = _agent(box, policy, Budget(window, reserve), client, observe)
    start, failed = time.perf_counter(), ""
    try:
        agent.run(box.task)
    except Exception as error:  # told in the table
        failed = f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - start
    own = [received for received in client.received if received.tools]
    following = [next((each.tokens for each in client.received[place:] if each.tools), 0) for _, place in done]
    sizes = [received.tokens for received in own if received.status == 200]
    return MailTrial(
        policy, window, len(set(box.read)), len(box.read), len(box.ids), len(own),
        sum(received.status != 200 for received in own), len(done),
        max((card.after / (window - reserve) for card, _ in done), default=0.0),
        max(sizes, default=0), sizes[-1] if sizes else 0, max(following, default=0), seconds, failed,
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


def _agent(
    box: Mailbox, policy: str, budget: Budget, client: ScriptedClient, observe: Callable[[object], None]
) -> Agent:
    from refold.agent import Agent, Tool
    from refold.summaries.summarizers import model_summarizer

    defined = [each["function"] for each in box.tools]
    tools = [
        Tool(each["name"], each["description"], each["parameters"], getattr(box, each["name"])) for each in defined
    ]
    return Agent(
        client, policy=policy, tools=tools, system=box.system, budget=budget, waits=(),
        summarize=model_summarizer(client, window=budget.window), observers=[observe],
    )  # fmt: skip
