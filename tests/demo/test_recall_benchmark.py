"""The benchmark of recall: its rivals make valid requests of an exact size, and its measures see what they should."""

import pytest

import refold
from benchmarks import recall, rivals
from refold import policies
from refold.formats import find, read
from refold.replay import _judge as judge
from tools.sample_sessions.sized import sized

FORMAT = "openai-chat"
NAMES = "alpha_one, beta_two, gamma_three, delta_four"


def messages_of(*said: tuple[str, str]):
    return read(find(FORMAT), [{"role": role, "content": text} for role, text in said]).messages


@pytest.mark.parametrize("name", rivals.RIVALS)
@pytest.mark.parametrize("goal", [8_000, 1_500])
def test_a_rival_fits_the_goal_and_breaks_no_rule(name: str, goal: int):
    result = rivals.compacted(name, sized(20_000), FORMAT, goal)
    assert not isinstance(result, str)
    assert 0.8 * goal <= result.tokens <= goal
    assert not refold.violations(result.native, format=FORMAT)


def test_the_list_of_names_has_what_left_once_and_not_what_stays():
    known = sized(20_000)
    result = rivals.compacted("tail+names", known, FORMAT, 5_000)
    listed = str(result.native[1]["content"] if result.native[0]["role"] == "system" else result.native[0]["content"])
    names = listed.split("\n", 1)[1].split()
    assert listed.startswith(rivals.NAMES)
    assert len(names) == len(set(names)) > 50


def test_a_name_in_a_list_is_present_and_not_in_context():
    history = messages_of(("user", "Go on."), ("assistant", "The value is set by alpha_one in the file."))
    future = messages_of(("assistant", "alpha_one"))
    demand = recall.Demand.of(history, future)
    listed = recall.scored(demand, messages_of(("user", NAMES)))
    whole = recall.scored(demand, history)
    assert (listed["frr"], listed["fic"]) == (1.0, 0.0)
    assert (whole["frr"], whole["fic"]) == (1.0, 1.0)


def test_lines_of_names_one_below_another_are_a_list_where_the_policy_wrote_them():
    path = "src/package/module_number_one.py"
    history = messages_of(("user", "Go on."), ("assistant", f"Files:\n{path}\nsrc/other_file.py\nsrc/third_file.py"))
    demand = recall.Demand.of(history, messages_of(("assistant", path)))
    below = "\n".join(("Names:", path, "src/other_file.py", "src/third_file.py"))
    assert recall.scored(demand, messages_of(("user", below)))["fic"] == 0.0
    assert recall.scored(demand, messages_of(("user", f"It is\n{path}\nas I said.")))["fic"] == 1.0


def test_the_last_answer_before_a_user_s_turn_ends_a_turn_and_what_a_harness_writes_is_none():
    history = messages_of(
        ("user", "Look."),
        ("assistant", "I look at it."),
        ("user", "<task-notification>It is done.</task-notification>"),
        ("assistant", "The parser drops the last line of each file."),
        ("user", "Good. Fix it."),
        ("assistant", "Now I fix it."),
    )
    assert list(recall.turn_ends(history)) == ["The parser drops the last line of each file."]


def test_line_numbers_colours_and_argument_names_in_a_list_are_junk():
    demand = recall.Demand.of(messages_of(("user", "alpha_one beta_two gamma_three L10 32m")), messages_of())
    result = messages_of(("user", "Names: alpha_one, beta_two, gamma_three, L10, 32m"))
    assert recall.scored(demand, result)["junk"] == 0.4


def test_signs_alone_in_a_list_are_no_names():
    demand = recall.Demand.of(messages_of(("user", "alpha_one")), messages_of())
    result = messages_of(("user", 'Names: alpha_one, beta_two, gamma_three, (), ""'))
    assert recall.scored(demand, result)["junk"] == 0.0


def test_differences_are_paired_by_cut():
    runs = [
        recall.Run(policy, "codex", session, 9, "25%", "fits", scores={"frr": score})
        for policy, scores in {"refold": (0.75, 0.5), "tail": (0.5, 0.25)}.items()
        for session, score in zip("ab", scores, strict=True)
    ]
    base = {recall.pair_key(run, "*"): run for run in runs if run.policy == "tail"}
    tables = list(recall.differences(runs, base, ["25%"]))
    cells = [list(column.cells) for column in tables[0].columns]
    assert cells[0] == ["refold"]
    assert cells[1 + recall.COLUMNS.index("frr")] == ["[green]+0.250 ±0.000[/]"]


@pytest.mark.parametrize("name", policies.names())
def test_no_policy_invents_identifiers_in_what_it_writes_itself(name: str):
    known = sized(20_000)
    result = rivals.compacted(name, known, FORMAT, 5_000)
    assert not isinstance(result, str)
    assert judge.copy_precision(read(find(FORMAT), known).messages, result.messages) == 1.0
