import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import refold
from refold import policies
from refold._cli.main import cli
from refold.config import ALIASES, Settings, names, variable
from refold.core.budget import Budget, Exactly, Never, Share
from refold.core.policy import When
from refold.errors import UnknownPolicy, UsageError
from refold.stages.clear import Clear
from refold.stages.deduplicate import DeduplicateReads
from refold.stages.slide import Slide

NEUROLINK = policies.find("neurolink")


def load(arguments=None, environ=None, file=None):
    return Settings.load(arguments, environ=environ or {}, file=file)


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "refold.toml"
        path.write_text(text)
        return path

    return write


def stages(policy):
    return {type(step.stage) for step in policy.steps}


def talk(turns=40, words=100):
    return [
        {"role": role, "content": f"Part {number}: " + "word " * words}
        for number in range(turns)
        for role in ("user", "assistant")
    ]


def test_an_argument_wins_over_the_environment_and_that_over_the_file(toml):
    path = toml("threshold = 0.6\nmodel = 'of-file'\npolicy = 'opal'\n")
    settings = load({"threshold": 0.9}, {"REFOLD_THRESHOLD": "0.7", "REFOLD_MODEL": "of-environment"}, path)
    assert (settings.threshold, settings.model, settings.policy) == (0.9, "of-environment", "opal")
    assert settings.sources["threshold"] == "argument"
    assert settings.sources["model"] == "environment REFOLD_MODEL"
    assert settings.sources["policy"] == f"{path}: policy"
    assert settings.sources["enabled"] == "default"
    assert set(settings.sources) == set(names())


def test_the_eight_fields_have_the_defaults_of_their_system():  # N17
    settings = load()
    assert (settings.enabled, settings.threshold) == (True, 0.80)
    assert settings.enable_pruning is settings.enable_deduplication is settings.enable_sliding_window is True
    assert (settings.max_tool_output_bytes, settings.max_tool_output_lines) == (51_200, 2_000)
    assert settings.file_read_budget_percent == 0.60
    assert (settings.auto_compact_threshold, settings.context_warnings) == (200_000, False)  # V13


@pytest.mark.parametrize("name", policies.names())
def test_without_settings_a_policy_is_what_it_is(name):
    assert load().apply_to(policies.find(name)) is policies.find(name)


@pytest.mark.parametrize("name", names())
def test_every_setting_is_read_from_its_variable_of_the_environment(name):
    samples = {
        "windows": '{"m": 9000}', "deployments": '{"prod": "gpt-4o"}', "window": "32k", "threshold": "70%",
        "prune_protected_tools": '["skill"]',
    }  # fmt: skip
    kind = type(getattr(Settings(), name))
    text = samples.get(name) or {bool: "on", int: "1_000", float: "0.5"}.get(kind, "word")
    settings = load(None, {variable(name): text})
    assert settings.sources[name] == f"environment {variable(name)}"
    assert getattr(settings, name) is not None


def test_numbers_and_shares_of_the_environment_are_read_as_people_write_them():
    environ = {
        "REFOLD_WINDOW": "32k",
        "REFOLD_THRESHOLD": "70%",
        "REFOLD_MAX_TOOL_OUTPUT_BYTES": "1_000",
        "REFOLD_ENABLED": "Off",
    }
    settings = load(None, environ)
    assert (settings.window, settings.threshold, settings.max_tool_output_bytes) == (32_000, 0.7, 1_000)
    assert settings.enabled is False


def test_the_variables_of_neurolink_are_read_after_our_own():
    settings = load(None, {"NEUROLINK_TOKEN_THRESHOLD": "50000", "NEUROLINK_SUMMARIZATION_MODEL": "gemini-2.5-flash"})
    assert (settings.auto_compact_threshold, settings.summarizer) == (50_000, "gemini-2.5-flash")
    assert settings.sources["auto_compact_threshold"] == "environment NEUROLINK_TOKEN_THRESHOLD"
    settings = load(None, {"NEUROLINK_TOKEN_THRESHOLD": "50000", "REFOLD_AUTO_COMPACT_THRESHOLD": "60000"})
    assert settings.auto_compact_threshold == 60_000
    assert set(ALIASES.values()) <= set(names())


def test_names_may_be_written_in_three_ways(toml):
    path = toml("enablePruning = false\nmax-tool-output-lines = 5\n")
    settings = load({"fileReadBudgetPercent": 0.5}, file=path)
    assert (settings.enable_pruning, settings.max_tool_output_lines, settings.file_read_budget_percent) == (
        False,
        5,
        0.5,
    )


def test_the_file_of_the_working_folder_is_read_and_another_may_be_named(toml, monkeypatch, tmp_path):
    path = toml("model = 'here'")
    monkeypatch.chdir(tmp_path)
    assert load().model == "here"
    other = tmp_path / "other.toml"
    other.write_text("model = 'other'")
    assert load(None, {"REFOLD_CONFIG": str(other)}).model == "other"
    assert load(None, {"REFOLD_CONFIG": str(other)}, path).model == "here"


@pytest.mark.parametrize(
    "text", ["policy = './mine.py'", "base_url = 'http://else.where'", "summarizer-url = 'x'", "store = 'x'"]
)
def test_a_file_that_lies_in_the_folder_decides_neither_what_runs_nor_where_keys_go(toml, monkeypatch, tmp_path, text):
    path = toml(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="REFOLD_CONFIG"):
        load()
    assert load(None, {"REFOLD_CONFIG": str(path)}).sources
    assert load(None, None, path).sources


@pytest.mark.parametrize(
    ("arguments", "environ", "text", "told"),
    [
        ({"threshold": 1.5}, {}, "", ["argument threshold = 1.5", "share above 0"]),
        ({"threshold": "lots"}, {}, "", ["argument threshold = 'lots'", "share"]),
        ({"enabled": "maybe"}, {}, "", ["'maybe'", "true or false"]),
        ({"tresh": 1}, {}, "", ["no setting 'tresh'", "did you mean threshold"]),
        ({}, {"REFOLD_WINDOW": "big"}, "", ["environment REFOLD_WINDOW = 'big'", "whole number"]),
        ({}, {"REFOLD_WINDOW": "0"}, "", ["REFOLD_WINDOW", "whole number"]),
        ({}, {"REFOLD_WINDOWS": "m"}, "", ["REFOLD_WINDOWS", "table of models"]),
        ({}, {"REFOLD_CONFIG": "/no/where.toml"}, "", ["/no/where.toml", "REFOLD_CONFIG"]),
        ({}, {}, "max_tool_output_bytes = 0", ["refold.toml: max_tool_output_bytes = 0", "whole number"]),
        ({}, {}, "file_read_budget_percent = 60", ["refold.toml", "as in 0.6"]),
        ({}, {}, "model = 3", ["refold.toml: model = 3", "give a text"]),
        ({}, {}, "window = true", ["refold.toml: window = True", "whole number"]),
        ({}, {}, "[windows]\nm = 0", ["refold.toml: windows", "table of models"]),
        ({}, {}, "model = ", ["refold.toml is no TOML", "end of document"]),
        ({}, {}, "polcy = 'opal'", ["refold.toml", "did you mean policy"]),
    ],
)
def test_what_cannot_be_is_named_with_its_place_and_the_remedy(toml, arguments, environ, text, told):
    with pytest.raises(UsageError) as caught:
        load(arguments, environ, toml(text) if text else None)
    assert not [part for part in told if part not in str(caught.value)]


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "refold.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is no TOML"):
        load(file=path)


def test_enabled_switches_compaction_off_but_not_by_hand():
    settings = load({"enabled": False})
    policy = settings.apply_to(NEUROLINK)
    assert policy.trigger == Never()
    assert refold.plan(talk(), policy=policy, window=8_000, goal=0.5).empty
    assert not refold.plan(talk(), policy=policy, window=8_000, goal=0.5, force=True).empty
    always = settings.apply_to(policies.find("claude-code"))
    assert not [step for step in always.steps if step.when is When.EVERY_CALL]


def test_threshold_moves_the_trigger():
    early, late = (load({"threshold": share}).apply_to(NEUROLINK) for share in (0.3, 0.9))
    tokens = refold.check(talk(), policy=NEUROLINK, window=100_000).tokens
    window = int(tokens / 0.65 / 0.5)
    assert refold.check(talk(), policy=early, window=window).due
    assert not refold.check(talk(), policy=late, window=window).due


def test_a_lowered_threshold_lowers_the_goal_so_that_the_next_turn_is_not_due_at_once():
    policy = load({"threshold": 0.3}).apply_to(NEUROLINK)
    assert policy.goal.share < policy.trigger.share
    assert load({"threshold": 0.75}).apply_to(NEUROLINK).goal == NEUROLINK.goal
    result = refold.compact(talk(), policy=policy, window=12_000)
    assert not result.plan.empty
    assert not refold.check(result.messages, policy=policy, window=12_000).due


def test_enable_pruning_drops_the_clearing_of_old_results():
    assert Clear in stages(NEUROLINK)
    assert Clear not in stages(load({"enable_pruning": False}).apply_to(NEUROLINK))
    assert Clear not in stages(load({"enable_pruning": False}).apply_to(NEUROLINK).after_overflow)


def test_enable_deduplication_drops_the_step_on_repeated_reads():
    assert DeduplicateReads in stages(NEUROLINK)
    assert DeduplicateReads not in stages(load({"enable_deduplication": False}).apply_to(NEUROLINK))
    assert "Supersede" not in {
        kind.__name__ for kind in stages(load({"enable_deduplication": False}).apply_to(policies.find("refold")))
    }


def test_enable_sliding_window_drops_the_fallback():
    off = load({"enable_sliding_window": False}).apply_to(NEUROLINK)
    assert Slide in stages(NEUROLINK)
    assert Slide not in stages(off)
    assert "truncate" in refold.plan(talk(), policy=NEUROLINK, window=9_000).stages_used
    assert "truncate" not in refold.plan(talk(), policy=off, window=9_000).stages_used
    last_resort = [
        step.name for step in load({"enable_sliding_window": False}).apply_to(policies.find("wolffish")).steps
    ]
    assert "leave out to fit" in last_resort


@pytest.mark.parametrize("name", policies.names())
def test_keep_pins_brings_back_what_a_policy_loses(name):
    rule = "Never delete the archive folder."
    said = [*talk(2), {"role": "user", "content": f"Go on. {rule}"}, {"role": "assistant", "content": "Yes."}, *talk()]
    policy = load({"keep_pins": True, "policy": name}).chosen()
    result = refold.compact(said, policy=policy, window=9_000)
    assert rule in str(result.messages)
    assert refold.violations(result.messages) == ()
    assert result.sizes.after <= result.sizes.limit


def test_max_tool_output_bytes_and_lines_cut_an_output():
    text = "".join(f"line {number}\n" for number in range(100))
    assert load().tool_output(text).text == text
    cut = load({"max_tool_output_lines": 10}).tool_output(text)
    assert cut.truncated
    assert cut.text.count("\n") <= 10
    assert len(load({"max_tool_output_bytes": 200}).tool_output(text).text.encode()) <= 200


def test_file_read_budget_percent_shares_what_is_left():
    assert load().file_budget(100_000, 40_000, 10_000) == 30_000
    assert load({"file_read_budget_percent": 0.25}).file_budget(100_000, 40_000, 10_000) == 12_500
    assert load().file_budget(1_000, 2_000) == 0
    assert load().file_budget(11, 0) == 6 == refold_budget(11)


def refold_budget(left):
    from refold.models._file_budget import file_budget

    return file_budget(left, 0)


def test_auto_compact_threshold_sets_the_trigger_in_tokens_and_zero_switches_it_off():  # V13
    policy = load({"auto_compact_threshold": 3_000}).apply_to(NEUROLINK)
    assert policy.trigger == Exactly(3_000, inclusive=True)
    assert refold.check(talk(), policy=policy, window=100_000).due
    assert not refold.check(talk(), policy=NEUROLINK, window=100_000).due
    assert load({"auto_compact_threshold": 0}).apply_to(NEUROLINK).trigger == Never()


def test_a_trigger_in_tokens_far_below_the_window_lowers_the_goal():
    settings = load({"auto_compact_threshold": 3_000, "window": 100_000})
    result = refold.compact(talk(), **settings.arguments())
    assert not result.plan.empty
    assert result.sizes.after < 3_000


def test_two_triggers_from_one_place_are_refused_and_from_two_the_stronger_wins(toml):
    with pytest.raises(UsageError, match="both set the trigger"):
        load({"auto_compact_threshold": 9_000, "threshold": 0.5}).apply_to(NEUROLINK)
    both = load({"threshold": 0.5}, {"REFOLD_AUTO_COMPACT_THRESHOLD": "9000"})
    assert both.apply_to(NEUROLINK).trigger == Share(0.5, inclusive=True)
    other = load(None, {"REFOLD_AUTO_COMPACT_THRESHOLD": "9000"}, toml("threshold = 0.5"))
    assert other.apply_to(NEUROLINK).trigger == Exactly(9_000, inclusive=True)


def test_context_warnings_are_due_from_half_the_trigger():  # V13
    budget, policy = Budget(400_000), policies.find("vibe")
    assert load().warns_at(policy, budget) is None
    assert load({"context_warnings": True}).warns_at(policy, budget) == 100_000
    assert load({"context_warnings": True}).warns_at(load({"enabled": False}).apply_to(policy), budget) is None


def test_policy_model_and_window_are_what_compact_is_given():
    settings = load({"policy": "opal", "model": "prod", "deployments": {"prod": "gpt-4o"}})
    assert settings.arguments() == {"policy": policies.find("opal"), "model": "gpt-4o", "window": 128_000}
    assert load({"window": 9_000}).arguments()["window"] == 9_000
    assert refold.compact(talk(), **load({"window": 8_000}).arguments()).sizes.after <= 8_000
    with pytest.raises(UnknownPolicy):
        load({"policy": "nobody"}).chosen()


def test_windows_hold_the_users_own_figures_by_model():
    settings = load({"windows": {"mine": 9_000}, "model": "mine"})
    assert settings.window_of().window == 9_000
    assert settings.window_of("gpt-4o").window == 128_000
    assert load({"windows": {"mine": 9_000}, "window": 5_000}).window_of("mine").window == 5_000


def test_deployments_name_the_model_behind_a_name_of_ones_own():
    settings = load({"deployments": {"prod": "claude-sonnet-4-5"}})
    assert settings.window_of("prod") == refold.window("claude-sonnet-4-5")


def test_a_summarizer_is_named_and_can_be_switched_off():
    assert load().summarizer_model is None
    assert load({"summarizer": "gpt-4o-mini"}).summarizer_model == "gpt-4o-mini"
    assert load({"summarizer": "gpt-4o-mini"}, {"NEUROLINK_SUMMARIZATION_ENABLED": "false"}).summarizer_model is None


def test_settings_made_by_hand_hold_like_arguments():
    assert Settings(threshold=0.5).apply_to(NEUROLINK).trigger == Share(0.5, inclusive=True)
    with pytest.raises(UsageError, match="both set the trigger"):
        Settings(threshold=0.5, auto_compact_threshold=9_000).apply_to(NEUROLINK)


def run(*words, **environ):
    return CliRunner(env={"REFOLD_CONFIG": None, **environ}).invoke(cli, ["config", *words])


def test_config_prints_every_setting_and_where_it_comes_from(toml):
    path = toml("model = 'gpt-4o'\n[windows]\nmine = 9000\n")
    told = run("--file", str(path), "--set", "policy=opal", REFOLD_THRESHOLD="0.7")
    assert told.exit_code == 0
    rows = {line.split()[0]: line for line in told.output.splitlines() if line.strip()}
    assert set(names()) <= set(rows)
    assert rows["policy"].split()[1:] == ["opal", "argument"]
    assert "environment REFOLD_THRESHOLD" in rows["threshold"]
    assert "mine = 9000" in rows["windows"]
    assert f"{path}: model" in rows["model"]


def test_config_prints_json():
    told = json.loads(run("--json", REFOLD_THRESHOLD="0.7", REFOLD_TRESHOLD="0.7").stdout)
    assert told["settings"]["threshold"] == {"value": 0.7, "source": "environment REFOLD_THRESHOLD"}
    assert set(told["settings"]) == set(names())
    assert "REFOLD_TRESHOLD" in told["unknown"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "threshold"], "has no value"),
        (["--set", "threshold=2"], "argument threshold = '2'"),
        (["--set", "policy=opl"], "did you mean opal"),
        (["--file", "/no/where.toml"], "there is no file /no/where.toml"),
        (["--set", "threshold=0.5", "--set", "auto_compact_threshold=9000"], "both set the trigger"),
    ],
)
def test_config_says_what_is_wrong_in_one_line(words, told):
    found = run(*words)
    assert found.exit_code == 2
    assert told in found.output
    assert len(found.output.strip().splitlines()) == 1


def test_the_page_of_configuration_names_every_setting_and_alias():
    page = (Path(__file__).parent.parent / "docs" / "configuration.md").read_text()
    assert not [name for name in (*names(), *ALIASES) if f"`{name}`" not in page]
