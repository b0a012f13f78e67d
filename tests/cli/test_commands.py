import html
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rich_click as click
from click.testing import Result

import refold.policies
from refold import _cli as cli_package
from refold._cli import sessions
from refold._cli.main import COMMANDS, HIDDEN, PANELS, cli
from refold._cli.options import Goal, TokenNumber
from tests.pages import ROOT

Run = Callable[..., Result]


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_every_command_has_a_module_and_help(run: Run) -> None:
    shown = run("--help")
    assert shown.exit_code == 0
    for path, _ in leaves():
        assert path[0] in shown.stdout
        helped = run(*path, "--help")
        assert helped.exit_code == 0
        assert "Usage: " in helped.stdout


def leaves(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield all commands that are listed, those of groups too, each with its path."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command


def test_each_command_has_examples_that_it_takes() -> None:
    for path, command in leaves():
        _, *examples = (command.epilog or "").split("\n\n")
        assert examples, path
        typed = path[:1] if path == ("batch", "run") else path
        for line in examples:
            program, *words = shlex.split(re.split(" [<>] ", line)[0])
            assert (program, *words[: len(typed)]) == ("refold", *typed)
            command.make_context(program, words[len(typed) :])


def test_each_command_has_one_line_of_the_help_on_a_terminal_of_80_columns(run: Run) -> None:
    shown = run("--help", env={"COLUMNS": "80"}).stdout
    assert set(PANELS) <= set(re.findall(r"^╭─ ([\w ]+) ─", shown, re.M))
    (described,) = {len(re.findall(r"^│ ", shown, re.M)) - 2}  # without --version and --help
    assert described == len(COMMANDS)


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "refold", "policies"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in refold.policies.names())


def test_the_groups_list_exactly_the_modules_with_a_command() -> None:
    place = Path(cli_package.__file__).parent
    with_command = {
        ".".join(path.relative_to(place).with_suffix("").parts).removesuffix(".__init__")
        for path in place.rglob("*.py")
        if "\ncommand = " in path.read_text() or "def command(" in path.read_text()
    }
    assert with_command == {*COMMANDS, *HIDDEN.values(), *sessions.command.modules.values()}  # type: ignore[attr-defined]
    assert cli.get_command(None, "loop") is cli.get_command(None, "chat")  # type: ignore[arg-type]
    assert cli.get_command(None, "absent") is None  # type: ignore[arg-type]


def test_stats_say_where_the_tokens_go(run: Run, chat: Path) -> None:
    tally = json.loads(run("stats", chat, "--json").stdout)
    assert tally["messages"] == 82
    assert tally["calls"] == 20
    assert tally["roles"][0]["name"] == "tool"
    assert [share["name"] for share in tally["tools"]] == ["read_file"]
    assert {share["name"] for share in tally["files"]} == {f"src/module_{number}.py" for number in range(7)}
    assert sum(share["tokens"] for share in tally["roles"]) <= tally["total"]
    assert sum(share["count"] for share in tally["turns"]) == 82
    assert tally["largest"][0]["role"] == "tool"


def test_stats_count_system_and_tools_kept_apart(run: Run, body: Path) -> None:
    tally = json.loads(run("stats", body, "--json").stdout)
    assert tally["system"] > 0
    assert tally["schemas"] > 0
    assert tally["model"] == "claude-sonnet-4-5"


def test_stats_show_what_the_provider_reported(run: Run, tmp_path: Path) -> None:
    request = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
    reply = {
        "choices": [{"message": {"role": "assistant", "content": "hello"}}],
        "usage": {"prompt_tokens": 1234, "completion_tokens": 5, "total_tokens": 1239},
    }
    (tmp_path / "log.jsonl").write_text(json.dumps({"request": request, "response": reply}) + "\n")
    result = run("stats", tmp_path / "log.jsonl")
    assert result.exit_code == 0
    assert "1,234 tokens of input" in result.stdout


def test_stats_of_several_files_have_a_row_each_and_a_total(run: Run, folder: Path) -> None:
    result = run("stats", folder)
    lines = result.stdout.splitlines()
    assert lines[0].split()[0] == "file"
    assert any("one.json" in line for line in lines)
    assert any("two.jsonl" in line for line in lines)
    assert lines[-1].startswith("total of 2")
    assert "passed over" in result.stderr
    assert "settings.json" in result.stderr


def test_patterns_stand_for_the_files_they_match(run: Run, folder: Path) -> None:
    assert len(json.loads(run("stats", folder / "**" / "*.json*", "--json").stdout)) == 2
    assert json.loads(run("stats", folder / "o*.json", "--json").stdout)["messages"] == 14


def test_of_many_turns_the_largest_are_shown_in_order(run: Run, chat: Path) -> None:
    shown = run("stats", chat, "--limit", "2").stdout
    turns = [line for line in shown.splitlines() if "Look at step" in line]
    assert len(turns) == 2
    assert any(line.endswith("20 others") for line in shown.splitlines())


def test_a_conversation_without_a_user_has_no_turns(run: Run, tmp_path: Path) -> None:
    (tmp_path / "alone.json").write_text('[{"role": "assistant", "content": "hello"}]')
    tally = json.loads(run("stats", tmp_path / "alone.json", "--json").stdout)
    assert [share["name"] for share in tally["turns"]] == ["before the first turn"]


def test_a_plan_names_each_message_what_happens_and_why(run: Run, chat: Path) -> None:
    result = run("plan", chat, "--window", "8k", "--policy", "neurolink", "--full")
    assert result.exit_code == 0
    rows = [line for line in result.stdout.splitlines() if " read_file " in line]
    assert len(rows) >= 40
    assert any("hidden" in row and "truncate" in row for row in rows)
    assert any("kept" in row for row in rows)


def test_long_runs_of_one_fate_are_one_line_unless_all_is_asked(run: Run, chat: Path) -> None:
    short = run("plan", chat, "--window", "8k", "--policy", "neurolink").stdout.splitlines()
    long = run("plan", chat, "--window", "8k", "--policy", "neurolink", "--full").stdout.splitlines()
    assert len(short) < len(long)
    assert any(line.rstrip().endswith(" messages") for line in short)


def test_a_plan_in_json_can_be_applied(run: Run, chat: Path, tmp_path: Path) -> None:
    plan, compacted, applied = (tmp_path / name for name in ("plan.json", "a.json", "b.json"))
    plan.write_text(run("plan", chat, "--window", "8k", "--json").stdout)
    assert run("compact", chat, "--window", "8k", "-o", compacted).exit_code == 0
    assert run("apply", plan, chat, "-o", applied).exit_code == 0
    assert read(applied) == read(compacted) != read(chat)


def test_a_kept_plan_is_the_plan(run: Run, chat: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    assert run("compact", chat, "--window", "8k", "-o", tmp_path / "out.json", "--plan-out", kept).exit_code == 0
    assert read(kept) == json.loads(run("plan", chat, "--window", "8k", "--json").stdout)


def test_nothing_to_do_is_said_and_writes_the_same_messages(run: Run, chat: Path, tmp_path: Path) -> None:
    assert "nothing to do" in run("plan", chat, "--window", "200k").stdout
    result = run("compact", chat, "--window", "200k", "-o", tmp_path / "out.json")
    assert "nothing to do" in result.stderr
    assert read(tmp_path / "out.json") == read(chat)


def test_force_compacts_although_it_is_not_due(run: Run, chat: Path) -> None:
    result = run("plan", chat, "--window", "200k", "--force", "--goal", "3000", "--json")
    assert json.loads(result.stdout)["plan"]["sizes"]["after"] <= 3000


def test_a_budget_is_kept_by_exact_count(run: Run, chat: Path, tmp_path: Path) -> None:
    assert run("compact", chat, "--budget", "5000", "-o", tmp_path / "out.json").exit_code == 0
    assert json.loads(run("stats", tmp_path / "out.json", "--json").stdout)["total"] <= 5000


@pytest.mark.parametrize("policy", refold.policies.names())
def test_every_policy_plans_and_shows_its_plan(run: Run, chat: Path, policy: str) -> None:
    result = run("plan", chat, "--window", "16k", "--policy", policy)
    assert result.exit_code == 0, result.stderr
    assert policy in result.stdout


def test_a_request_body_keeps_everything_but_its_messages(run: Run, body: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert run("compact", body, "--window", "12k", "-o", out).exit_code == 0
    before, after = read(body), read(out)
    assert len(json.dumps(after["messages"])) < len(json.dumps(before["messages"]))
    assert {key: after[key] for key in before if key != "messages"} == {
        key: before[key] for key in before if key != "messages"
    }


def test_a_body_from_standard_input_goes_to_standard_output(run: Run, body: Path) -> None:
    result = run("compact", "-", "--window", "12k", input=body.read_bytes())
    assert result.exit_code == 0
    assert json.loads(result.stdout)["temperature"] == 0.5
    assert "standard input" in result.stderr


def test_an_out_in_jsonl_has_a_message_a_line(run: Run, chat: Path, tmp_path: Path) -> None:
    assert run("compact", chat, "--window", "8k", "-o", tmp_path / "out.jsonl").exit_code == 0
    assert run("compact", chat, "--window", "8k", "-o", tmp_path / "out.json").exit_code == 0
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert rows == read(tmp_path / "out.json")


def test_several_files_are_written_into_a_folder(run: Run, folder: Path, tmp_path: Path) -> None:
    result = run("compact", folder, "--budget", "2000", "-o", tmp_path / "out")
    assert result.exit_code == 0
    assert f"{tmp_path / 'out'}: a new folder" in result.stderr
    assert sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.json*")) == [
        str(Path("deep", "two.jsonl")),
        "one.json",
    ]


def test_one_of_several_that_cannot_fit_does_not_stop_the_others(run: Run, folder: Path, tmp_path: Path) -> None:
    (folder / "a-big.json").write_text(json.dumps([{"role": "system", "content": "no way around this " * 3000}]))
    result = run("compact", folder, "--window", "2k", "--policy", "wolffish", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "a-big.json" in result.stderr
    assert not (tmp_path / "out" / "a-big.json").exists()


def test_a_valid_conversation_is_said_to_be_valid(run: Run, chat: Path) -> None:
    result = run("check", chat)
    assert result.exit_code == 0
    assert "valid for openai-chat" in result.stdout
    assert "tokens" not in result.stdout


def test_a_broken_conversation_ends_with_code_1_and_its_positions(run: Run, broken: Path) -> None:
    result = run("check", broken)
    assert result.exit_code == 1
    assert "c0" in result.stdout
    found = json.loads(run("check", broken, "--json").stdout)
    assert found["broken"][0][0] == "pairing"
    assert found["broken"][0][2] == [2]


def test_calls_at_the_end_are_information_and_no_breach(run: Run, tmp_path: Path) -> None:
    calls = [{"id": "c9", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}]
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    (tmp_path / "open.json").write_text(json.dumps(messages))
    result = run("check", tmp_path / "open.json")
    assert result.exit_code == 0
    assert "1 call at the end awaits its result" in result.stdout
    assert "c9" in result.stdout


def test_a_budget_that_is_exceeded_ends_with_code_1(run: Run, chat: Path) -> None:
    result = run("check", chat, "--window", "8k")
    assert result.exit_code == 1
    assert "too large" in result.stdout
    assert run("check", chat, "--model", "gpt-4o").exit_code == 0
    assert json.loads(run("check", chat, "--window", "200k", "--json").stdout)["due"] is False


def test_one_broken_file_among_several_ends_with_code_1(run: Run, chat: Path, broken: Path) -> None:
    result = run("check", chat, broken)
    assert result.exit_code == 1
    assert "valid for openai-chat" in result.stdout


def test_a_repaired_conversation_is_valid(run: Run, broken: Path, tmp_path: Path) -> None:
    assert run("repair", broken, "-o", tmp_path / "mended.json").exit_code == 0
    assert run("check", tmp_path / "mended.json").exit_code == 0
    again = run("repair", tmp_path / "mended.json")
    assert json.loads(again.stdout) == read(tmp_path / "mended.json")


def test_a_diff_shows_both_sides_of_what_changes(run: Run, chat: Path, tmp_path: Path) -> None:
    result = run("diff", chat, "--window", "8k", "--policy", "neurolink")
    assert result.exit_code == 0
    assert "before" in result.stdout
    assert "after" in result.stdout
    rows = json.loads(run("diff", chat, "--window", "8k", "--policy", "neurolink", "--json").stdout)
    inserted = [row for row in rows if row["fate"] == "inserted"]
    hidden = [row for row in rows if row["fate"] == "hidden"]
    assert inserted
    assert all(row["before"] is None and row["after"] for row in inserted)
    assert all(row["after"] is None and row["before"] for row in hidden)


def test_a_diff_of_a_plan_is_the_diff_of_planning(run: Run, chat: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(run("plan", chat, "--budget", "6000", "--json").stdout)
    by_plan = json.loads(run("diff", chat, "--plan", tmp_path / "plan.json", "--json").stdout)
    assert by_plan == json.loads(run("diff", chat, "--budget", "6000", "--json").stdout)


def test_models_are_counted_looked_up_and_searched(run: Run) -> None:
    everything = json.loads(run("models", "--json").stdout)
    assert everything["models"] > 1000
    assert "openai" in everything["providers"]
    assert len(everything["dated"]) == 10
    one = run("models", "gpt-4o").stdout
    assert "128,000 tokens" in one
    assert "US$" in one
    assert "models match" in run("models", "sonnet", "--limit", "3").stdout


def test_policies_are_listed_and_shown_with_their_options(run: Run) -> None:
    listed = run("policies").stdout
    for name in refold.policies.names():
        assert name in listed
    shown = run("policies", "wolffish").stdout
    assert "Truncate" in shown
    assert "head_cap=6000" in shown
    assert {each["name"] for each in json.loads(run("policies", "--json").stdout)} == set(refold.policies.names())


def test_the_demo_shows_one_session_before_and_after_its_bill_and_the_undo(run: Run) -> None:
    shown = run("demo").stdout
    for words in ("too long: the provider refuses it", "fits, breaks no rule", "[Digest of earlier messages", "US$"):
        assert words in shown
    assert "gives back all 693 messages" in shown
    assert "refold plan FILE" in shown
    told = json.loads(run("demo", "--json").stdout)
    assert told["violations"] == 0
    assert told["rewound"]
    assert told["after"] < told["window"] < told["before"]
    assert told["user_messages_kept"] == told["user_messages"] == len(told["largest"]) == 9
    assert sum(count["messages"] for fate, count in told["fates"].items() if fate != "inserted") == told["messages"]
    assert max(size for _, size in told["largest"]) < told["window"] < max(size for size, _ in told["largest"])
    assert told["bill"][1] < told["bill"][0]
    drawn = (ROOT / "docs" / "pictures" / "terminal-demo.svg").read_text("utf-8")
    pictured = html.unescape(re.sub("<[^>]*>", " ", drawn)).replace("\xa0", " ")
    sizes = [int(size.replace(",", "")) for size in re.findall(r"(?:as it is|with refold) +([\d,]{6,}) ", pictured)]
    assert sizes == pytest.approx([told["before"], told["after"]], rel=0.05), "take the pictures anew: make screenshots"
    described = re.search(r"!\[(`refold demo`.*?)\]\(docs/pictures", (ROOT / "README.md").read_text("utf-8"))
    assert described
    assert all(figure in pictured for figure in re.findall(r"\d[\d,]*\d", described[1])), (
        "README: figures of the picture"
    )


def test_the_demo_in_a_window_that_holds_the_session_says_that_nothing_is_to_be_done(run: Run) -> None:
    shown = run("demo", "--window", "1m").stdout
    assert "fits" in shown
    assert "nothing has to be compacted" in shown


def test_the_demo_compares_all_policies(run: Run) -> None:
    result = run("demo", "--compare", "--policy", "neurolink")
    assert result.exit_code == 0
    assert "window 32,000" in result.stdout
    assert "window 200,000" in result.stdout
    trials = json.loads(run("demo", "--compare", "--policy", "refold", "--window", "32k", "--json").stdout)
    tasks = [trial for trial in trials if trial["example"] == "task"]
    assert all(trial["valid"] and trial["fits"] for trial in trials if trial not in tasks)
    assert tasks
    assert all(trial["read"] == trial["mails"] == 41 for trial in tasks)


def test_several_conversations_of_one_file_are_selected(run: Run, tmp_path: Path) -> None:
    bodies = [{"model": "gpt-4o", "messages": [{"role": "user", "content": "x"}] * size} for size in (2, 5)]
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(json.dumps(body) + "\n" for body in bodies))
    sizes = [json.loads(run("stats", path, "--select", which, "--json").stdout)["messages"] for which in "12"]
    assert sorted(sizes) == [2, 5]
    assert len(json.loads(run("stats", path, "--select", "all", "--json").stdout)) == 2
    assert "--select 2" in run("stats", path).stderr


def test_a_plan_that_would_not_fit_ends_with_code_1_and_is_still_shown(run: Run, tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Rule upon rule. " * 800}, {"role": "user", "content": "Go on."}]
    (tmp_path / "big.json").write_text(json.dumps(messages))
    result = run("plan", tmp_path / "big.json", "--policy", "wolffish", "--window", "1k")
    assert result.exit_code == 1
    assert "wolffish" in result.stdout
    assert "name a larger window" in result.stderr


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("8000", 8000), ("8k", 8000), ("8_000", 8000), ("8,000", 8000), ("1.5K", 1500), ("1m", 1_000_000)],
)
def test_numbers_of_tokens_are_written_in_several_ways(text: str, tokens: int) -> None:
    assert TokenNumber().convert(text, None, None) == tokens


@pytest.mark.parametrize(("text", "goal"), [("50%", 0.5), ("0.5", 0.5), ("1.0", 1.0), ("60k", 60_000), ("1", 1)])
def test_goals_are_shares_or_tokens(text: str, goal: float) -> None:
    found = Goal().convert(text, None, None)
    assert (found, type(found)) == (goal, type(goal))


def test_a_window_taken_from_a_near_name_is_said_to_be(run: Run, chat: Path) -> None:
    result = run("plan", chat, "--model", "gpt-4o-mini-house-edition")
    assert result.exit_code == 0
    assert "near name" in result.stderr


def test_the_reported_size_is_used_where_it_is_asked_for(run: Run, tmp_path: Path) -> None:
    request = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
    reply = {
        "choices": [{"message": {"role": "assistant", "content": "hello"}}],
        "usage": {"prompt_tokens": 70_000, "completion_tokens": 5, "total_tokens": 70_005},
    }
    (tmp_path / "log.jsonl").write_text(json.dumps({"request": request, "response": reply}) + "\n")
    plain = json.loads(run("check", tmp_path / "log.jsonl", "--window", "128k", "--policy", "opal", "--json").stdout)
    told = json.loads(
        run("check", tmp_path / "log.jsonl", "--window", "128k", "--policy", "opal", "--reported", "--json").stdout
    )
    assert plain["tokens"] < 100
    assert told["tokens"] >= 70_000


def test_what_was_done_is_reported_as_json_beside_the_messages(run: Run, chat: Path) -> None:
    result = run("compact", chat, "--window", "8k", "--json")
    report = json.loads(result.stderr)
    assert report["messages_before"] == 82
    assert report["messages_after"] == len(json.loads(result.stdout))
    assert report["sizes"]["after"] <= report["sizes"]["goal"]


def test_a_compaction_that_does_not_pay_yet_waits_and_plan_and_check_say_why(run: Run, chat: Path) -> None:
    tokens = json.loads(run("stats", chat, "--model", "gpt-4o", "--json").stdout)["total"]
    sized = ("--model", "gpt-4o", "--window", int(tokens / 0.9 / 0.65))
    planned = run("plan", chat, *sized)
    assert planned.exit_code == 0
    assert "waits until it pays" in planned.stdout
    assert "tokens of input" in planned.stdout
    assert "US$" in planned.stdout
    verdict = json.loads(run("check", chat, *sized, "--json").stdout)
    assert verdict["due"] is False
    assert verdict["waiting"]
    assert "compaction waits" in run("check", chat, *sized).stdout
    assert "supersede" in run("plan", chat, *sized, "--no-wait").stdout
    assert "pays from call" in " ".join(run("plan", chat, *sized, "--expected-calls", 500).stdout.split())
