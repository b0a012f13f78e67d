"""Models that bind thinking bind tools too: the recall tool is there from the first request on, and nothing is refused."""

import itertools
import json

import pytest

from refold import policies
from refold._gateway.recall.tool import NAME
from refold.core.budget import Exactly
from refold.testing.provider import ScriptedProvider, ScriptedReply
from tests.depth import combined
from tests.gateway.conftest import standing
from tests.gateway.recall.models import asked_back, brought
from tests.gateway.thinking import (
    MODELS,
    Agent,
    clean,
    compactions,
    think,
    thoughts,
)

STREAMING = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
POLICIES = pytest.mark.parametrize("policy", policies.names())
QUERY = {"query": "Read src/m1.py"}
READ = ("Read", {"path": "src/z.py"})
WAYS = list(itertools.product((False, True), [((READ,), ()), ((), (READ,))]))  # streamed or not, before or after


class Asking:
    """Thinks as `think` does; every fourth answer first asks for originals, `before` or `after` calls of the client's."""

    def __init__(self, before=(), after=(), often=1):
        self.before, self.after, self.often = list(before), list(after), often
        self.asked = self.brought = 0

    def __call__(self, received):
        beside = bool(self.before or self.after)
        answered = bool(brought(received)) if beside else bool(asked_back(received))
        self.brought += answered
        due = received.number > 6 and received.number % 4 == 0
        wants = (due and not answered) if beside else (due or answered) and len(asked_back(received)) < self.often
        if NAME in received.tools and wants:
            self.asked += 1
            thought = f"What was in part 1? {received.number}"
            return ScriptedReply("I look it up.", [*self.before, (NAME, QUERY), *self.after], thinking=thought)
        return think(received)


def run(behave, model="preserving", steps=24, streaming=False, headers=None, **settings):
    given = {"window": 50_000, "trigger": Exactly(6_000), "background": False, "recall_tool": True} | settings
    with ScriptedProvider(behave=behave) as provider, standing(provider, **given) as gateway:
        agent = Agent(gateway.url, MODELS[model], streaming=streaming, headers=headers)
        agent.work(steps)
    return agent, provider


@pytest.mark.parametrize(("policy", "streaming", "model"), combined(policies.names(), (False, True), MODELS))
def test_rounds_within_an_answer_are_accepted_and_so_is_all_that_follows(policy, streaming, model):
    behave = Asking(often=2)
    agent, provider = run(behave, model, streaming=streaming, policy=policy)
    clean(provider)
    assert behave.asked > 2
    assert behave.brought > 2
    assert NAME not in {
        block.get("name") for message in agent.messages for block in message["content"] if isinstance(block, dict)
    }


@pytest.mark.parametrize(("policy", "way"), combined(policies.names(), WAYS))
def test_what_is_brought_with_the_next_request_is_accepted(policy, way):
    streaming, sides = way
    behave = Asking(*sides)
    _, provider = run(behave, streaming=streaming, policy=policy)
    clean(provider)
    assert behave.asked > 2
    assert behave.brought > 2


@POLICIES
def test_the_tool_is_there_from_the_first_request_on_and_never_changes(policy):
    agent, provider = run(Asking(), policy=policy)
    assert compactions(agent) > 0
    tools = {json.dumps(received.body["tools"]) for received in provider.received}
    assert len(tools) == 1
    assert f'"{NAME}"' in tools.pop()
    assert max(len(thoughts(received)) for received in provider.received) > 1


@pytest.mark.parametrize("first", ["0", "1"])
def test_a_header_that_comes_later_changes_nothing(first):
    given = {"window": 50_000, "trigger": Exactly(6_000), "background": False}
    with ScriptedProvider(behave=think) as provider, standing(provider, **given) as gateway:
        agent = Agent(gateway.url, MODELS["preserving"], headers={"x-refold-recall": first}).work(3)
        agent.headers = {"x-refold-recall": "1" if first == "0" else "0"}
        agent.work(12)
    clean(provider)
    assert compactions(agent) > 0
    assert {NAME in received.tools for received in provider.received} == {first == "1"}


def test_thinking_behind_a_call_of_the_tool_is_not_the_clients():
    for streaming in (False, True):
        agent, provider = run(Asking(), streaming=streaming)
        rounds = [received for received in provider.received if asked_back(received)]
        assert rounds
        behind = {f"Thought {received.number}:" for received in rounds}
        said = json.dumps(agent.messages)
        assert not [thought for thought in behind if thought in said]
        assert "What was in part 1?" in said


@STREAMING
def test_the_tool_stays_after_a_restart_without_the_setting(streaming, tmp_path):
    given = {"window": 50_000, "trigger": Exactly(6_000), "background": False, "store": str(tmp_path / "g.db")}
    with ScriptedProvider(behave=Asking()) as provider:
        with standing(provider, recall_tool=True, **given) as gateway:
            agent = Agent(gateway.url, MODELS["preserving"], streaming=streaming).work(14)
        assert compactions(agent) > 0
        with standing(provider, **given) as gateway:
            agent.at(gateway.url).work(8)
    clean(provider)
    assert all(NAME in received.tools for received in provider.received)


def test_a_conversation_that_goes_over_to_a_model_that_binds_thinking_is_accepted():
    given = {"window": 50_000, "trigger": Exactly(6_000), "background": False, "recall_tool": True}
    with ScriptedProvider(behave=Asking()) as provider, standing(provider, **given) as gateway:
        agent = Agent(gateway.url, MODELS["adaptive"])
        for model in itertools.islice(itertools.cycle(("adaptive", "preserving")), 6):
            agent.model = MODELS[model]
            agent.work(6)
    clean(provider)


def test_where_the_client_has_a_tool_of_that_name_its_own_is_called():
    given = {"window": 50_000, "trigger": Exactly(6_000), "background": False, "recall_tool": True}
    own = {"name": NAME, "description": "The client's.", "input_schema": {"type": "object"}}
    with ScriptedProvider(behave=think) as provider, standing(provider, **given) as gateway:
        agent = Agent(gateway.url, MODELS["preserving"])
        agent.tools = [*agent.tools, own]
        agent.work(14)
    clean(provider)
    assert compactions(agent) > 0
    assert max(len(thoughts(received)) for received in provider.received[-5:]) > 0
    assert {received.tools for received in provider.received} == {("Read", "Bash", NAME)}
