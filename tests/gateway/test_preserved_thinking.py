"""Thinking goes upstream only behind what it was produced behind, over HTTP, with the real SDK and a strict provider.

The provider signs thinking over all that stands before it and refuses what stands elsewhere; for old models it demands
the thinking that opens an active tool loop.
"""

import asyncio
import json
import threading
from contextlib import ExitStack

import pytest

from refold import policies
from refold._gateway.conversations.plan_store import PlanStore
from refold.core.budget import Exactly
from refold.testing.provider import ScriptedProvider
from tests.depth import combined
from tests.gateway.conftest import standing
from tests.gateway.scripted_upstream import call
from tests.gateway.thinking import (
    MODELS,
    Agent,
    clean,
    compactions,
    conversation,
    think,
    thoughts,
)

POLICIES = policies.names()
WINDOW, DUE = 50_000, 6_000


@pytest.fixture
def stand():
    """Start a strict provider; returns a function that starts a gateway before it, and the provider."""
    with ExitStack() as stack:
        provider = stack.enter_context(ScriptedProvider(behave=think))

        def make(**settings):
            given = {"window": WINDOW, "trigger": Exactly(DUE), "background": False} | settings
            return stack.enter_context(standing(provider, **given))

        yield make, provider


everywhere = pytest.mark.parametrize("policy", POLICIES)
each_model = pytest.mark.parametrize("model", MODELS)
in_turn = pytest.mark.parametrize(("policy", "model"), combined(POLICIES, MODELS))


@everywhere
@each_model
def test_tool_loops_turns_and_compactions_one_after_another_are_accepted(stand, policy, model):
    make, provider = stand
    agent = Agent(make(policy=policy).url, MODELS[model], streaming=model == "preserving").work(24)
    if agent.seen[-1].get("x-refold-reason") == "threshold":
        agent.ask()  # a summary in the very last request has replaced what the model thought before
    clean(provider)
    assert compactions(agent) > 1
    assert len(thoughts(provider.received[-1])) > 0


@in_turn
def test_rewind_and_what_follows_is_accepted(stand, policy, model):
    make, provider = stand
    url = make(policy=policy).url
    agent = Agent(url, MODELS[model]).work(9)
    while compactions(agent) < 1:
        agent.ask()
    agent.work(2)
    call(url, "POST", f"/v1/sessions/{conversation(agent)}/rewind", {"to": 0})
    agent.headers = {"x-refold-trigger": "never"}
    agent.ask()
    assert provider.received[-1].status == 200
    agent.headers = {}
    agent.work(6)
    clean(provider)


@everywhere
def test_a_rewind_takes_the_thinking_of_the_plan_and_gives_back_what_it_took(stand, policy):
    make, provider = stand
    url = make(policy=policy).url
    agent = Agent(url, MODELS["preserving"])
    while compactions(agent) < 1:
        agent.ask()
    before = thoughts(provider.received[-2])
    agent.ask()
    call(url, "POST", f"/v1/sessions/{conversation(agent)}/rewind", {"to": 0})
    agent.headers = {"x-refold-trigger": "never"}
    agent.ask()
    back = thoughts(provider.received[-1])
    assert back[: len(before)] == before
    assert len(back) == len(before) + 1, "the answer before the plan stays, those under it go"
    agent.ask()
    assert len(thoughts(provider.received[-1])) == len(back) + 1
    clean(provider)


@in_turn
def test_a_branch_is_accepted(stand, policy, model):
    make, provider = stand
    agent = Agent(make(policy=policy).url, MODELS[model]).work(8)
    while compactions(agent) < 1:
        agent.ask()
    for back in (3, 8, 14):
        agent.branch(len(agent.messages) - back, "Something else.").work(5)
    clean(provider)


@each_model
def test_the_policy_may_change_from_request_to_request(stand, model):
    make, provider = stand
    agent = Agent(make().url, MODELS[model])
    for policy in POLICIES * 2:
        agent.headers = {"x-refold-policy": policy}
        agent.work(4)
    clean(provider)
    assert compactions(agent) > 3


@everywhere
def test_a_conversation_goes_over_to_a_model_that_binds_thinking_and_back(stand, policy):
    make, provider = stand
    agent = Agent(make(policy=policy).url, MODELS["adaptive"]).work(10)
    agent.model = MODELS["preserving"]
    agent.work(10)
    agent.model = MODELS["adaptive"]
    agent.work(4)
    agent.model = MODELS["preserving"]
    agent.work(4)
    clean(provider)


@pytest.mark.parametrize(("policy", "streaming"), combined(POLICIES, (False, True)))
def test_with_compactions_beside_the_traffic_nothing_is_refused(stand, policy, streaming):
    make, provider = stand
    agent = Agent(make(policy=policy, background=True).url, MODELS["preserving"], streaming=streaming).work(30)
    clean(provider)
    assert compactions(agent) > 1


@in_turn
def test_a_restart_on_the_same_store_is_accepted(stand, policy, model, tmp_path):
    make, provider = stand
    store = str(tmp_path / "gateway.db")
    agent = Agent(make(policy=policy, store=store, background=True).url, MODELS[model])
    for restarts in range(5):
        agent.work(6)
        while compactions(agent) < restarts - 1:  # a plan beside the traffic takes its time
            agent.ask()
        agent.at(make(policy=policy, store=store, background=True).url)
    clean(provider)
    assert compactions(agent) > 1


@pytest.mark.parametrize(("policy", "background"), combined(POLICIES, (False, True)))
def test_two_replicas_in_turn_are_accepted(stand, policy, background, tmp_path):
    make, provider = stand
    urls = [make(policy=policy, store=str(tmp_path / "gateway.db"), background=background).url for _ in range(2)]
    agent = Agent(urls[0], MODELS["preserving"])
    for turn in range(26):
        agent.at(urls[agent.dice.random() < 0.4 + 0.2 * (turn % 2)]).ask()
    clean(provider)
    assert compactions(agent) > 1
    assert max(len(thoughts(each)) for each in provider.received[-4:]) > 0


@pytest.mark.parametrize("plans", [0, 1])
def test_of_two_plans_made_at_once_beside_the_traffic_of_two_replicas_one_is_in_force(
    stand, plans, tmp_path, monkeypatch
):
    make, provider = stand
    one, two = (make(policy="opal", store=str(tmp_path / "gateway.db"), background=True) for _ in range(2))
    agent = Agent(one.url, MODELS["preserving"])
    while compactions(agent) < plans:
        agent.ask()
    agent.headers = {"x-refold-trigger": "never"}
    for replica in (one, two) * 4:
        agent.at(replica.url).ask()
    agent.headers = {}
    made, kept, tried = threading.Event(), threading.Event(), threading.Event()
    keep = PlanStore.keep

    async def first_at_the_other(keeper, *given, **more):
        if keeper is one.gateway._keeper:  # its plan is made, and that for the longer history is stored before it
            made.set()
            assert await asyncio.to_thread(kept.wait, 10)
        try:
            await keep(keeper, *given, **more)
        finally:
            (tried if keeper is one.gateway._keeper else kept).set()

    with monkeypatch.context() as patch:
        patch.setattr(PlanStore, "keep", first_at_the_other)
        assert agent.at(one.url).ask()["x-refold-reason"] == "background"
        assert made.wait(10)
        assert agent.at(two.url).ask()["x-refold-reason"] == "background"
        assert tried.wait(10)
    agent.headers = {"x-refold-trigger": "never"}
    seen = {agent.at(replica.url).ask()["x-refold-plan"] for replica in (one, two, one, two)}
    assert len(seen) == 1
    clean(provider)
    assert len(json.loads(call(one.url, "GET", "/v1/sessions")[2])["sessions"]) == 1


def test_a_replica_that_took_over_a_plan_between_requests_learns_what_was_sent_under_it_meanwhile(stand, tmp_path):
    make, provider = stand
    one, two = (make(policy="opal", store=str(tmp_path / "gateway.db")) for _ in range(2))
    agent = Agent(one.url, MODELS["preserving"])
    while compactions(agent) < 1:
        agent.ask()
    agent.headers = {"x-refold-trigger": "never"}
    for replica in (one, two, one, two):
        agent.at(replica.url).ask()
    status, _, said = call(one.url, "POST", f"/v1/sessions/{conversation(agent)}/compact", {})
    assert status == 200, said
    before = agent.seen[-1]["x-refold-plan"]
    assert agent.at(one.url).ask()["x-refold-plan"] != before
    (other,) = two.gateway.tracker.all()  # as it does when a plan made beside the traffic is ready
    assert asyncio.run(two.gateway._keeper.sync_plans(other))
    for replica in (two, one, two, one):
        agent.at(replica.url).ask()
    clean(provider)


def test_a_rewind_is_known_after_a_restart(stand, tmp_path):
    make, provider = stand
    store = str(tmp_path / "gateway.db")
    url = make(store=store).url
    agent = Agent(url, MODELS["preserving"]).work(10)
    assert compactions(agent) >= 1
    call(url, "POST", f"/v1/sessions/{conversation(agent)}/rewind", {"to": 0})
    agent.headers = {"x-refold-trigger": "never"}
    agent.at(make(store=store).url).ask()
    agent.at(make(store=store).url).ask()
    clean(provider)


def test_an_answer_that_went_past_the_plans_loses_its_thinking_under_them(stand):
    make, provider = stand
    agent = Agent(make().url, MODELS["adaptive"]).work(8)
    agent.model = MODELS["preserving"]
    while compactions(agent) < 1:
        agent.ask()
    agent.model, agent.headers = MODELS["adaptive"], {"x-refold-bypass": "1"}
    agent.ask()
    agent.model, agent.headers = MODELS["preserving"], {}
    agent.work(2)
    clean(provider)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_conversation_that_was_deleted_goes_on_without_the_thinking_of_its_plans(stand, store, tmp_path):
    make, provider = stand
    url = make(store="memory" if store == "memory" else str(tmp_path / "gateway.db")).url
    agent = Agent(url, MODELS["preserving"])
    while compactions(agent) < 1:
        agent.ask()
    before = thoughts(provider.received[-2])
    agent.work(2)
    call(url, "DELETE", f"/v1/sessions/{conversation(agent)}")
    agent.headers = {"x-refold-trigger": "never"}
    agent.work(2)
    assert thoughts(provider.received[-2])[: len(before)] == before
    agent.headers = {}
    agent.work(6)
    clean(provider)


def test_sixty_calls_and_five_compactions_beside_the_traffic_are_accepted(stand):
    make, provider = stand
    agent = Agent(
        make(background=True, recall_tool=True, native_compaction="pass").url, MODELS["preserving"], streaming=True
    )
    agent.headers = {"anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14"}
    agent.more = {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}
    agent.work(60)
    clean(provider)
    assert compactions(agent) >= 5
    assert all(
        received.body["context_management"] == agent.more["context_management"] for received in provider.received
    )
    assert all(received.headers["anthropic-beta"] == agent.headers["anthropic-beta"] for received in provider.received)


def test_a_shadow_sends_what_the_client_sent(stand):
    make, provider = stand
    agent = Agent(make(shadow=True, recall_tool=True).url, MODELS["preserving"])
    for _ in range(6):
        sent = json.loads(json.dumps(agent.arguments()["messages"]))
        agent.ask()
        assert provider.received[-1].body["messages"] == sent
        assert provider.received[-1].tools == ("Read", "Bash")
    clean(provider)


def test_a_conversation_without_plans_is_passed_on_byte_for_byte(stand):
    make, provider = stand
    agent = Agent(make().url, MODELS["preserving"])
    for _ in range(4):
        agent.ask()
        assert agent.seen[-1]["x-refold-done"] == "forwarded"
    assert len(thoughts(provider.received[-1])) == 3


def test_thinking_is_in_no_header_figure_or_session_of_the_gateway(stand, tmp_path):
    make, _ = stand
    store = tmp_path / "gateway.db"
    url = make(store=str(store), policy="opal").url
    agent = Agent(url, MODELS["preserving"]).work(16)
    assert compactions(agent) > 1
    said = [call(url, "GET", path)[2] for path in ("/metrics", "/v1/sessions", f"/v1/sessions/{conversation(agent)}")]
    assert b"quokka" not in b"".join(said)
    assert "quokka" not in json.dumps(agent.seen)
    found = json.loads(call(url, "GET", "/v1/recall?q=quokka")[2])
    assert found == {"messages": []}, "no index holds it"
