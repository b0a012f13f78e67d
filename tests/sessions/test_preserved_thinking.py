"""What a session shows obeys the law of preserved thinking, whatever happens to it; the provider's own check judges."""

import pytest

from refold import policies
from refold.sessions import Session, export_session, import_session, open_store
from refold.testing.provider._thinking import misplaced, missing, signature

MODELS = ["claude-sonnet-4-5-20250929", "claude-opus-4-8", "claude-opus-5-5"]
LOG = "2026-01-01 12:00:00 worker {n} wrote 17 rows to orders.csv and found an ERROR in line {n}\n"


class Agent:
    def __init__(self, store, model, policy="refold", id=None, **settings):
        self.settings = {"system": "Be careful.", "tools": [{"name": "read"}], **settings}
        self.session = Session(
            store, id, format="anthropic", model=model, window=12_000, policy=policy, **self.settings
        )
        self.model, self.steps = model, len(self.session.messages)

    def request(self):
        thinking = {"type": "enabled", "budget_tokens": 2_000}
        return {"model": self.model, "thinking": thinking, "messages": self.session.view(), **self.settings}

    def ask(self):
        """Return the provider's answer to what the session shows, which it has checked."""
        body = self.request()
        assert misplaced(body) == []
        assert missing(body) is None
        self.steps += 1
        thought = f"Step {self.steps} comes next."
        content = [
            {"type": "thinking", "thinking": thought, "signature": signature(body, thought)},
            {"type": "tool_use", "id": f"toolu_{self.steps}", "name": "read", "input": {"path": f"{self.steps}.py"}},
        ]
        return {"role": "assistant", "content": content}

    def take(self, answer):
        id = answer["content"][-1]["id"]
        text = "".join(LOG.format(n=f"{id}-{line}") for line in range(25))
        result = {"type": "tool_result", "tool_use_id": id, "content": text}
        self.session.append([answer])
        self.session.append([{"role": "user", "content": [result]}])

    def work(self, steps):
        for _ in range(steps):
            self.take(self.ask())

    def compact(self):
        done = self.session.compact(force=True, summarize=lambda need: "The work so far went well. " * 8)
        assert done.compacted

    def checked(self):
        body = self.request()
        assert misplaced(body) == []
        assert missing(body) is None
        return [
            block["thinking"]
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "thinking"
        ]


def begun(model=MODELS[-1], policy="refold", store=None, steps=12):
    agent = Agent(store or open_store("memory"), model, policy)
    agent.session.append([{"role": "user", "content": "Port the parser. Never touch legacy.py."}])
    agent.work(steps)
    return agent


everywhere = pytest.mark.parametrize("policy", policies.names())
each_model = pytest.mark.parametrize("model", MODELS)


@everywhere
@each_model
def test_compactions_rewinds_and_the_way_forward_are_accepted(model, policy):
    agent = begun(model, policy)
    agent.compact()
    agent.work(4)
    agent.compact()
    agent.work(4)
    under_both = agent.checked()
    agent.session.rewind(1)
    agent.checked()
    agent.work(2)
    agent.session.rewind(0)
    agent.checked()
    agent.session.forward()
    agent.checked()
    agent.work(2)
    assert len(agent.checked()) >= 2
    assert len(under_both) >= 4


def test_a_rewind_and_the_way_forward_again_give_back_what_was_valid_before():
    agent = begun()
    originals = agent.checked()
    agent.compact()
    agent.work(3)
    before = agent.checked()
    agent.session.rewind(0)
    assert agent.checked() == originals
    agent.session.forward()
    assert agent.checked() == before


@everywhere
def test_a_branch_after_a_rewind_to_a_message_is_accepted(policy):
    agent = begun(policy=policy)
    agent.compact()
    agent.work(3)
    ids = agent.session.ids
    agent.session.rewind(ids[19])
    agent.work(3)
    agent.compact()
    agent.work(2)
    agent.checked()


@everywhere
def test_an_answer_that_was_asked_for_before_a_compaction_and_comes_after_it_loses_its_thinking(policy):
    agent = begun(policy=policy)
    answer = agent.ask()
    agent.compact()
    agent.take(answer)
    assert answer["content"][0]["thinking"] not in agent.checked()
    agent.work(2)
    assert len(agent.checked()) >= 2
    again = Agent(agent.session.store, agent.model, policy, agent.session.id)
    assert again.checked() == agent.checked()


@pytest.mark.parametrize("place", ["memory", "sqlite"])
def test_a_restart_knows_what_was_produced_under_what(place, tmp_path):
    where = "memory" if place == "memory" else str(tmp_path / "sessions.db")
    with open_store(where) as store:
        agent = begun(store=store)
        agent.compact()
        agent.work(3)
        agent.session.rewind(0)
        kept, id = agent.checked(), agent.session.id
        again = Agent(store, agent.model, id=id)
        assert again.checked() == kept
        again.work(2)
        again.session.rewind(0)
        again.checked()


def test_other_tools_or_another_system_prompt_make_all_thinking_stale():
    agent = begun()
    agent.settings["system"] = "Be bold."
    agent.session.configure(system="Be bold.")
    assert agent.checked() == []
    agent.work(2)
    assert len(agent.checked()) == 2
    agent.settings["system"] = "Be careful."
    agent.session.configure(system="Be careful.")
    assert len(agent.checked()) == 12


def test_plans_that_are_kept_in_flight_are_known_too():
    agent = begun()
    agent.session.in_flight = True
    agent.compact()
    agent.work(2)
    assert len(agent.checked()) >= 2
    agent.session.rewind(0)
    assert len(agent.checked()) == 12


def test_an_older_model_keeps_its_thinking_through_a_rewind():
    agent = begun("claude-opus-4-8")
    agent.compact()
    agent.work(2)
    agent.session.rewind(0)
    assert len(agent.checked()) == 14


def test_what_is_not_compacted_is_shown_as_the_very_objects():
    agent = begun(steps=3)
    assert all(shown is given for shown, given in zip(agent.session.view(), agent.session.messages, strict=True))


@everywhere
def test_who_opens_it_elsewhere_without_settings_sends_the_same_thinking(policy, tmp_path):
    with open_store(tmp_path / "sessions.db") as store:
        agent = begun(policy=policy, store=store)
        answer = agent.ask()
        agent.compact()
        agent.take(answer)
        agent.work(3)
        shown = agent.session.view()
        assert len(agent.checked()) >= 3
        with open_store(tmp_path / "sessions.db") as elsewhere:
            assert Session(elsewhere, agent.session.id).view() == shown
        other = open_store("memory")
        agent.session = Session(other, import_session(other, export_session(store, agent.session.id)))
        assert agent.session.view() == shown
        agent.work(1)
        agent.compact()
        agent.checked()
        agent.session.rewind(0)
        agent.checked()


def test_other_settings_that_are_remembered_take_the_thinking_of_before_away():
    agent = begun()
    assert agent.checked()
    agent.settings["system"] = "Be quick."
    agent.session.configure(system="Be quick.")
    assert agent.checked() == []
    again = Session(agent.session.store, agent.session.id)
    assert again.view() == agent.session.view()
    agent.work(2)
    assert len(agent.checked()) == 2
