import pytest
from msgspec.structs import replace

from refold import policies
from refold.core.budget import Budget, Exactly, LeastCost, Never, Share
from refold.errors import BadBudget, UsageError
from refold.sessions import MemoryStore, Session
from refold.sessions._entries import Configured
from refold.sessions._saved_settings import resolve_settings, settings_to_save
from tests.agent.kit import Watched
from tests.sessions.talks import talk


def configured(store, id):
    return [each.entry.settings for each in store.load(id).entries if isinstance(each.entry, Configured)]


def test_settings_that_stay_the_same_are_written_once(store):
    for count in range(3):
        opened = Session(store, "s", format="openai-chat", policy="opal", window=4_000)
        opened.append(talk(count + 1))
    opened.configure(window=4_000)
    assert configured(store, "s") == [{"policy": "opal", "window": 4_000}]
    opened.configure(policy="vibe")
    assert configured(store, "s")[1:] == [{"policy": "vibe"}]


def test_nothing_is_written_for_a_session_that_is_only_asked_about(store):
    Session(store, "nobody", format="openai-chat", window=4_000).check  # noqa: B018
    assert [head.id for head in store.sessions()] == []


def test_settings_of_a_moment_are_not_remembered(store):
    opened = Session(store, "s", format="openai-chat", window=4_000)
    opened.append(talk(1))
    opened.configure(window=9_000, system="for this step", remember=False)
    assert opened.context_window == 9_000
    assert Session(store, "s").context_window == 4_000


def test_a_session_without_remembered_settings_still_asks_for_a_window(store):
    opened = Session(store, "s", format="openai-chat")
    opened.append(talk(1))
    with pytest.raises(BadBudget, match="window="):
        Session(store, "s").check()


def test_a_setting_is_taken_away_with_none(store):
    opened = Session(store, "s", format="openai-chat", window=4_000, system="Be brief.")
    opened.append(talk(1))
    opened.configure(system=None)
    assert opened._options.system is None
    assert Session(store, "s")._options.system is None


def test_what_there_is_no_setting_of_is_named(store):
    with pytest.raises(UsageError, match='no option "windw"'):
        Session(store, "s").configure(windw=3)


@pytest.mark.parametrize("goal", [0.4, 1.0, 3_000, Share(0.3, of_window=True), Exactly(900), Never(), LeastCost()])
@pytest.mark.parametrize("budget", [5_000, Budget(8_000, 500)])
def test_sizes_come_back_as_they_were_given(goal, budget):
    remembered = settings_to_save({"goal": goal, "budget": budget})
    found = resolve_settings(remembered, {}, "openai-chat")
    assert (found.goal, found.budget) == (goal, budget)
    assert type(found.goal) is type(goal)


def test_a_policy_is_remembered_by_a_name_of_ours_alone():
    own = replace(policies.find("opal"), name="mine")
    assert settings_to_save({"policy": own})["policy"] is None
    assert settings_to_save({"policy": "/tmp/policy.py"})["policy"] is None
    assert settings_to_save({"policy": policies.find("opal")})["policy"] == "opal"
    assert resolve_settings({"policy": "/tmp/policy.py"}, {}, None).policy.name == "refold"
    assert (
        resolve_settings({"policy": "of a later release", "goal": {"type": "later"}}, {}, None).policy.name == "refold"
    )


def test_another_window_or_model_takes_the_place_of_what_is_remembered():
    remembered = {"model": "gpt-4o", "window": 8_000, "max_output": 500, "system": "Be brief."}
    assert resolve_settings(remembered, {"budget": 3_000}, None).window is None
    assert resolve_settings(remembered, {"model": "gpt-4o"}, None).window == 8_000
    other = resolve_settings(remembered, {"model": "claude-opus-4-5"}, None)
    assert (other.window, other.max_output, other.system) == (None, None, "Be brief.")
    assert resolve_settings({"budget": 5_000}, {"window": 9_000}, None).budget is None


def test_objects_of_an_sdk_are_remembered_as_their_fields():
    from google.genai import types

    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="read", description="Reads.")])
    assert settings_to_save({"tools": [tool]})["tools"] == [
        {"functionDeclarations": [{"name": "read", "description": "Reads."}]}
    ]
    assert settings_to_save({"system": object()})["system"] is None


def test_an_agents_steps_do_not_fill_the_log():
    store = MemoryStore()
    run = Watched(
        ["One.", "Two.", "Three."], session=Session(store, "s"), budget=Budget(9_000, 500), system="Be brief."
    )
    for _ in range(3):
        run.agent.run("Go on.")
    settings = configured(store, "s")
    assert len(settings) == 1
    assert settings[0]["system"] == "Be brief."
    assert Session(store, "s").get_context_stats().context_window == 9_000
