"""An agent on a session that outlives it, and under settings."""

import pytest

from refold.agent import Agent, AgentOptions
from refold.agent._compaction_log import Decision
from refold.agent._options import AgentArguments
from refold.agent._profiles import PROFILES, AgentProfile, profile_for
from refold.agent.cards import DoneCard
from refold.config import Settings
from refold.core.budget import Budget
from refold.errors import UnknownOption, UsageError
from refold.policies import names
from refold.sessions import MemoryStore, Session, open_store
from refold.testing.client import ScriptedClient
from tests.agent.kit import FORMATS, Watched, calls, results

LONG = [*(calls("word " * 1_500) for _ in range(12)), "Done."]


@pytest.mark.parametrize("format", FORMATS)
def test_another_process_goes_on_where_the_first_one_ended(tmp_path, format):
    with open_store(tmp_path / "store.db") as store:
        first = Watched(
            LONG, session=Session(store, "talk", format=format), format=format, budget=Budget(20_000, 1_000)
        )
        first.agent.run("go")
        seen, plans = first.agent.messages, first.agent.plans
    assert plans
    with open_store(tmp_path / "store.db") as store:
        second = Watched(["Hello again."], session=Session(store, "talk"), format=format, budget=Budget(20_000, 1_000))
        assert second.agent.messages == seen
        assert second.agent.plans == plans
        assert second.agent.run("and?") == "Hello again."
        assert second.client.received[0].status == 200


def test_a_process_that_died_between_a_call_and_its_result_leaves_a_session_that_goes_on():
    store = MemoryStore()
    session = Session(store, "talk", format="openai-chat")
    call = {"id": "c1", "type": "function", "function": {"name": "echo", "arguments": '{"text": "a"}'}}
    session.append([{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": [call]}])
    run = Watched(["Here I am."], session=Session(store, "talk"))
    assert run.agent.run("go on") == "Here I am."
    assert len(results(run.sent())) == 1


def test_a_session_in_another_format_is_refused():
    store = MemoryStore()
    Watched(["Hello."], session=Session(store, "talk", format="openai-chat")).agent.run("hi")
    with pytest.raises(UsageError, match="session talk holds openai-chat, and the client speaks anthropic"):
        Watched(["Hello."], session=Session(store, "talk"), format="anthropic")


def test_the_policy_is_the_given_one_then_the_settings_then_the_sessions():
    session = Session(MemoryStore(), policy="opal", format="openai-chat")
    settings = Settings.load({"policy": "neurolink"}, environ={})
    for given, expected in (
        ({"policy": "vibe", "settings": settings, "session": session}, "vibe"),
        ({"settings": settings, "session": session}, "neurolink"),
        ({"session": Session(MemoryStore(), policy="opal", format="openai-chat")}, "opal"),
        ({}, "refold"),
    ):
        assert Watched(["x"], **given).agent.session.policy.name == expected


def test_a_threshold_that_is_set_makes_compaction_due():
    settings = Settings.load({"auto_compact_threshold": 5_000}, environ={})
    for given, expected in ((settings, True), (None, False)):
        run = Watched([calls("word " * 6_000), "Done."], settings=given, budget=Budget(100_000))
        run.agent.run("go")
        assert any(decision.due for decision in run.told(Decision)) is expected


def test_compaction_that_is_switched_off_does_not_happen():
    settings = Settings.load({"enabled": False}, environ={})
    run = Watched([*(calls("word " * 1_500) for _ in range(5)), "Done."], settings=settings, budget=Budget(17_000, 0))
    run.agent.run("go")
    assert not run.told(DoneCard)


def test_limits_of_tool_outputs_that_are_set_hold_under_any_policy():
    settings = Settings.load({"max_tool_output_bytes": 500, "max_tool_output_lines": 10}, environ={})
    run = Watched([calls("x" * 2_000, "line\n" * 50), "Done."], settings=settings, policy="opal", budget=Budget(50_000))
    run.agent.run("go")
    wide, tall = results(run.agent.originals)
    assert len(wide) <= 500
    assert tall.count("\n") < 10


def test_a_window_that_is_set_is_the_agents():
    settings = Settings.load({"window": 12_345}, environ={})
    assert Watched(["x"], settings=settings, budget=None).agent.statistics.window == 12_345


def test_every_policy_has_the_profile_for_its_system():
    assert set(PROFILES) < set(names())
    assert profile_for("refold") == profile_for("one of my own") == AgentProfile()
    assert not profile_for("wolffish").durable


def test_a_turn_of_a_session_in_flight_starts_from_everything():
    run = Watched(LONG, policy="wolffish", budget=Budget(100_000, 4_000), summarize=lambda need: "TASK: go on")
    run.agent.run("word " * 20_000)
    assert run.agent.session.in_flight
    compacted = len(run.agent.messages)
    assert run.agent.run("and?") == "Done."
    assert len(run.agent.originals) == 1 + 12 * 2 + 1 + 2
    assert compacted <= len(run.agent.originals)


def test_a_misspelt_option_of_an_agent_is_refused_with_the_nearest_one():
    with pytest.raises(UnknownOption, match='Agent has no option "polcy"; did you mean policy'):
        Agent(ScriptedClient(["Hello."]), polcy="refold")


def test_every_option_of_an_agent_has_a_type_and_a_default():
    assert set(AgentArguments.__struct_fields__) == AgentOptions.__optional_keys__
    assert len(AgentArguments.__struct_defaults__) == len(AgentArguments.__struct_fields__)
