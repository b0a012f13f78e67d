"""Every size after a compaction that an agent says is what the provider counts next: 1, 2.7 or 4 characters a token."""

import random
from itertools import pairwise

import pytest

from refold import policies
from refold.agent import Agent
from refold.agent.cards import DoneCard
from refold.clients import client as client_of
from refold.core.budget import Budget
from refold.core.counting import CharCounter
from refold.sessions import Session, open_store
from refold.testing.client import ScriptedClient
from refold.testing.provider import ScriptedProvider, ScriptedReply
from tests.agent.kit import echo
from tests.compaction.test_units import prose

TOKENIZERS = [1.0, 2.7, 4.0]
SYSTEM = "You work on a program. " * 20


def work(random_: random.Random, steps: int) -> list[ScriptedReply]:
    calls = [ScriptedReply(prose(random_, 20), [("echo", {"text": prose(random_, 150)})]) for _ in range(steps)]
    return [*calls, ScriptedReply("Done.")]


def summary(need: object) -> str:
    return prose(random.Random(5), 100)


@pytest.mark.parametrize("per_token", TOKENIZERS)
@pytest.mark.parametrize("policy", policies.names())
def test_every_card_says_what_the_provider_counts_next(policy, per_token):
    client = ScriptedClient(work(random.Random(3), 16), counter=CharCounter(per_token))
    said: list[tuple[int, int, int]] = []

    def watch(event: object) -> None:
        if isinstance(event, DoneCard):
            said.append((len(client.received), event.after, agent.session.get_context_stats().context_tokens))

    agent = Agent(
        client, policy=policy, tools=(echo,), system=SYSTEM, budget=Budget(int(14_000 / per_token)),
        summarize=summary, observers=(watch,), max_output=200,
    )  # fmt: skip
    agent.run("Work on it. " + prose(random.Random(4), 40))
    cards = [card for card, after in pairwise([*said, (10**9, 0, 0)]) if card[0] != after[0]]  # the last before a call
    assert cards
    for number, after, context in cards:
        sent = client.received[number].tokens
        assert after == pytest.approx(sent, rel=0.05)
        assert context == pytest.approx(sent, rel=0.05)


def test_v08_the_count_of_the_provider_is_the_size_after_a_compaction():
    client = ScriptedClient(work(random.Random(3), 8), format="anthropic", counter=CharCounter(3.3))
    cards: list[DoneCard] = []
    agent = Agent(
        client, policy="vibe", tools=(echo,), system=SYSTEM, budget=Budget(40_000), summarize=summary,
        observers=(lambda event: cards.append(event) if isinstance(event, DoneCard) else None,),
    )  # fmt: skip
    agent.run("Work on it.")
    agent.compact()
    true = client.count(agent.messages, SYSTEM, agent._compactor.request.tools)
    assert [card.after for card in cards] == [true]
    assert agent.statistics.context_tokens == true
    assert agent.session.get_context_stats().context_tokens == true


@pytest.mark.parametrize(("policy", "own"), [("opal", {}), ("vibe", {"summarize": summary})])
def test_v04_the_calls_that_summarize_and_count_are_in_the_totals(policy, own):
    answers = [*work(random.Random(3), 6), ScriptedReply(prose(random.Random(5), 150)), "Done."]
    with ScriptedProvider(answers) as provider:
        model = client_of("scripted", provider.openai_url, "key")
        agent = Agent(model, policy=policy, tools=(echo,), system=SYSTEM, budget=Budget(12_000), **own)
        agent.run("Work on it.")
        agent.compact()  # opal's summary, vibe's count
        agent.close()
        seen = [received.tokens for received in provider.received if received.status == 200]
    assert len(agent.plans) == 1
    assert len(seen) == 8
    assert agent.statistics.session_prompt == agent.session.billed.prompt == sum(seen)
    assert agent.statistics.steps == agent.session.billed.calls == len(seen)


def test_w18_the_sizes_are_right_where_each_turn_starts_from_the_originals_and_after_a_resume(tmp_path):
    cards: list[tuple[int, int]] = []

    def watch(event: object) -> None:
        if isinstance(event, DoneCard):
            cards.append((len(provider.received), event.after))

    report = "The pallet of the carrier was returned with the invoice of the warehouse. " * 40  # 4.9 characters a token
    answers = [ScriptedReply("I look.", [("echo", {"text": f"{number} {report}"})]) for number in range(3)]
    answers = [answer for _ in range(4) for answer in (*answers, "Done.")]
    with ScriptedProvider(answers) as provider, open_store(tmp_path / "sessions.db") as store:
        for _ in range(2):  # the second resumes
            session = Session(store, "run", format="openai-chat", in_flight=True)
            agent = Agent(
                client_of("scripted", provider.openai_url, "key"), policy="wolffish", tools=(echo,), system=SYSTEM,
                budget=Budget(4_000), summarize=summary, observers=(watch,), max_output=200, session=session,
            )  # fmt: skip
            for turn in range(2):
                agent.run(f"Work on part {turn} of it.")
            agent.close()
        sent = [received.tokens for received in provider.received]
    last = dict(cards)  # the last one before each call
    assert len(last) > 4
    for number, after in last.items():
        assert after == pytest.approx(sent[number], rel=0.05)
