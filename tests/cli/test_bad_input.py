import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import Result

from tests.depth import deep

Run = Callable[..., Result]


def refused(result: Result, *words: str, code: int = 2) -> None:
    assert result.exit_code == code, (result.exit_code, result.output)
    assert result.stdout == ""
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("refold: "), result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in last, (word, last)


def test_a_file_that_is_not_there_is_named(run: Run, tmp_path: Path) -> None:
    for command in ("stats", "plan", "compact", "check", "repair", "diff"):
        refused(run(command, tmp_path / "absent.json"), "absent.json", "no such file")


def test_a_name_that_is_empty_is_no_folder(run: Run) -> None:
    for command in ("stats", "diff", "check"):
        refused(run(command, ""), "name of the file is empty")


@pytest.mark.parametrize(("content", "seen"), [("7", "one number"), ('"hi"', "one text"), ("true", "one truth value")])
def test_a_single_value_is_told_in_words(run: Run, tmp_path: Path, content: str, seen: str) -> None:
    (tmp_path / "value.json").write_text(content)
    refused(run("stats", tmp_path / "value.json"), "value.json", seen)


def test_an_empty_file_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("")
    refused(run("stats", tmp_path / "empty.json"), "empty.json", "empty")


def test_broken_json_is_named_with_line_and_column(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_text('{"role": "user", "content": "hi"}\n{"role": "user", "content": oops}\n')
    refused(run("plan", tmp_path / "cut.jsonl", "--window", "8k"), "cut.jsonl:2:29", "broken JSON", "--lenient")


def test_lenient_reading_passes_over_the_broken_line_and_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_text('{"role": "user", "content": "hi"}\n{"role": "user", "content": oops}\n')
    result = run("stats", tmp_path / "cut.jsonl", "--lenient", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["messages"] == 1
    assert "line 2" in result.stderr


def test_what_is_no_transcript_is_described(run: Run, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"theme": "dark"}')
    refused(run("stats", tmp_path / "settings.json"), "theme", "not a transcript")


def test_an_unknown_format_is_refused(run: Run, chat: Path) -> None:
    refused(run("plan", chat, "--format", "morse", "--window", "8k"), "morse")


def test_a_wrong_format_is_refused(run: Run, chat: Path) -> None:
    refused(run("plan", chat, "--format", "anthropic", "--window", "8k"), "openai-chat", "anthropic")


def test_an_unknown_kind_is_refused(run: Run, chat: Path) -> None:
    refused(run("stats", chat, "--kind", "diary"), "diary")


def test_a_conversation_that_is_not_in_the_file_cannot_be_selected(run: Run, chat: Path) -> None:
    refused(run("stats", chat, "--select", "7"), "'7'", "select one of these")


def test_an_unknown_policy_is_refused(run: Run, chat: Path) -> None:
    refused(run("plan", chat, "--policy", "wolfish", "--window", "8k"), "wolfish", "wolffish")
    refused(run("policies", "wolfish"), "wolfish")


def test_a_policy_file_that_cannot_be_run_is_said_in_one_line(run: Run, chat: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("POLICY = (")
    (tmp_path / "yours.py").write_text("POLICY = 7")
    refused(run("plan", chat, "--policy", tmp_path / "mine.py", "--window", "8k"), "mine.py", "SyntaxError")
    refused(run("policies", tmp_path / "mine.py"), "mine.py", "SyntaxError")
    refused(run("plan", chat, "--policy", tmp_path / "yours.py", "--window", "8k"), "yours.py", "POLICY")
    refused(run("plan", chat, "--policy", tmp_path / "none.py", "--window", "8k"), "none.py")


def test_an_unknown_model_is_refused(run: Run, chat: Path) -> None:
    refused(run("plan", chat, "--model", "no-such-model-xyz"), "no-such-model-xyz", "--window")
    refused(run("models", "no-such-model-xyz"), "no-such-model-xyz")


def test_an_unknown_model_in_the_file_asks_for_a_window(run: Run, tmp_path: Path) -> None:
    request = {"model": "house-model-xyz", "messages": [{"role": "user", "content": "hi"}]}
    (tmp_path / "own.json").write_text(json.dumps(request))
    refused(run("plan", tmp_path / "own.json"), "house-model-xyz", "--window")
    assert run("plan", tmp_path / "own.json", "--window", "8k").exit_code == 0


def test_what_an_unknown_model_is_advised_to_look_up_lists_models(run: Run, chat: Path) -> None:
    for command in (("plan", chat, "--model", "gtp-4o"), ("models", "gtp-4o")):
        refused(run(*command), "did you mean gpt-4o?", "`refold models 4o`")
    assert "gpt-4o" in run("models", "4o").stdout
    counted = run("stats", chat, "--model", "gtp-4o")
    assert (counted.exit_code, "default tokenizer" in counted.stderr) == (0, True)


def test_an_unknown_provider_is_refused(run: Run) -> None:
    refused(run("models", "gpt-4o", "--provider", "azzure"), "'azzure'", "did you mean azure?")
    assert run("models", "gpt-4o", "--provider", "azure").exit_code == 0


def test_a_store_that_is_none_is_refused_as_it_was_typed(run: Run, chat: Path, tmp_path: Path) -> None:
    for command in (["sessions", "list"], ["mcp"], ["sessions", "import", str(chat)]):
        before = chat.read_bytes(), sorted(tmp_path.iterdir())
        refused(run(*command, "--store", chat), str(chat))
        refused(run(*command, "--store", tmp_path), str(tmp_path))
        assert (chat.read_bytes(), sorted(tmp_path.iterdir())) == before


def test_a_file_that_cannot_be_imported_leaves_no_store_behind(run: Run, chat: Path, tmp_path: Path) -> None:
    refused(run("sessions", "import", chat, "--store", tmp_path / "new.db"), "chat.json", "refold sessions export")
    assert not (tmp_path / "new.db").exists()


def test_a_program_or_file_that_is_not_there_is_refused_before_anything_starts(run: Run, tmp_path: Path) -> None:
    refused(run("run", "--store", tmp_path / "g.db", "--", "no-such-program"), "no-such-program", "no such program")
    assert not list(tmp_path.iterdir())
    refused(run("serve", "--check", "--openai-key-file", tmp_path / "absent"), "--openai-key-file", "absent")


def test_no_place_to_write_to_is_refused(run: Run, chat: Path) -> None:
    refused(run("compact", chat, "--window", "8k", "--out", ""), "is empty", "standard output")


def test_of_many_notes_about_files_a_few_are_told(run: Run, tmp_path: Path) -> None:
    for name in ("one.jsonl", "two.jsonl"):
        bodies = [
            {"model": "gpt-4o", "messages": messages} for messages in ([{"role": "user", "content": "hi"}], [], [])
        ]
        (tmp_path / name).write_text("".join(f"{json.dumps(body)}\n" for body in bodies) + "oops\n" * 50)
    alone = run("check", tmp_path / "one.jsonl", "--window", "8k", "--lenient").stderr.splitlines()
    both = run("check", tmp_path, "--window", "8k", "--lenient").stderr.splitlines()
    assert len(alone) == 2
    assert [line.partition(".jsonl: ")[0].rpartition("/")[2] for line in both] == ["one", "one", "two", "two"]
    assert both[1].endswith("and 1 more; `refold stats --lenient` lists them all")


def test_no_budget_at_all_is_asked_for(run: Run, chat: Path) -> None:
    refused(run("plan", chat), "--window", "--model", "--budget")


def test_a_window_smaller_than_system_and_tools_is_refused(run: Run, body: Path) -> None:
    refused(run("plan", body, "--window", "20"), "system prompt and tools", "larger window")


@pytest.mark.parametrize("number", ["-5", "0", "many", "1e400", "999999999999999999999", "0.5", ""])
def test_numbers_that_cannot_be_are_refused(run: Run, chat: Path, number: str) -> None:
    refused(run("plan", chat, "--window", number), "--window")
    refused(run("plan", chat, "--window", "8k", "--max-output", number), "--max-output")


@pytest.mark.parametrize("goal", ["-5", "0", "0.0", "1.5", "150%", "half", "nan", "-0.5", "%"])
def test_goals_that_cannot_be_are_refused(run: Run, chat: Path, goal: str) -> None:
    refused(run("plan", chat, "--window", "8k", "--goal", goal), "--goal")


def test_a_goal_above_the_input_budget_is_refused(run: Run, chat: Path) -> None:
    refused(run("plan", chat, "--window", "8k", "--goal", "100k"), "100,000")


def test_a_plan_for_another_conversation_is_refused(run: Run, chat: Path, body: Path, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.json", tmp_path / "out.json"
    plan.write_text(run("plan", chat, "--window", "8k", "--json").stdout)
    refused(run("apply", plan, body, "-o", out), "make a new plan")
    refused(run("diff", body, "--plan", plan), "make a new plan")
    assert not out.exists()


def test_a_plan_of_a_later_version_is_refused(run: Run, chat: Path, tmp_path: Path) -> None:
    made = json.loads(run("plan", chat, "--window", "8k", "--json").stdout)
    (tmp_path / "later.json").write_text(json.dumps(made | {"refold_plan": 99}))
    refused(run("apply", tmp_path / "later.json", chat), "later.json", "99", "newer")


def test_an_unreadable_plan_is_refused(run: Run, chat: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(b"\xff\xfe nonsense")
    refused(run("apply", tmp_path / "plan.json", chat), "plan.json", "not a plan")
    refused(run("apply", tmp_path / "gone.json", chat), "gone.json", "No such file")
    refused(run("apply", tmp_path, chat), str(tmp_path))


def test_a_plan_that_was_changed_by_hand_is_refused(run: Run, chat: Path, tmp_path: Path) -> None:
    made = json.loads(run("plan", chat, "--window", "8k", "--json").stdout)
    made["plan"]["policy"] = "mine"
    (tmp_path / "plan.json").write_text(json.dumps(made))
    refused(run("apply", tmp_path / "plan.json", chat), "changed after it was made")


def test_bytes_that_are_not_utf8_are_named_with_their_place(run: Run, tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'[\n{"role": "user", "content": "caf\xe9"}]')
    refused(run("stats", tmp_path / "latin.json"), "latin.json:2:33", "UTF-8")
    assert run("stats", tmp_path / "latin.json", "--lenient").exit_code == 0


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        (gzip.compress(b'{"role": "user"}', mtime=0), "unpack it first (`gunzip`)"),
        (b"\x28\xb5\x2f\xfd\x24\x05", "unpack it first (`zstd -d`)"),
        (b"PK\x03\x04\x14\x00", "unpack it first (`unzip`)"),
        (b"SQLite format 3\x00\x10\x00", "`refold sessions export`"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--lenient",)])
def test_a_compressed_file_or_a_database_is_named_as_such(
    run: Run, tmp_path: Path, content: bytes, remedy: str, more: tuple[str, ...]
) -> None:
    (tmp_path / "session.jsonl").write_bytes(content)
    refused(run("stats", tmp_path / "session.jsonl", *more), "session.jsonl", remedy)


def test_deeply_nested_content_does_not_end_in_a_traceback(run: Run, tmp_path: Path) -> None:
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    (tmp_path / "deep.json").write_text(f'[{{"role": "user", "content": {deep}}}]')
    refused(run("stats", tmp_path / "deep.json"), "deep.json")


def test_content_nested_as_deep_as_json_can_be_read_is_carried(run: Run, tmp_path: Path) -> None:
    deep = '{"a":' * 300 + "1" + "}" * 300
    (tmp_path / "deep.json").write_text(f'[{{"role": "user", "content": [{{"type": "odd", "inner": {deep}}}]}}]')
    result = run("compact", tmp_path / "deep.json", "--window", "8k")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads((tmp_path / "deep.json").read_text())


def test_a_folder_that_is_not_there_is_no_place_to_write(run: Run, chat: Path, tmp_path: Path) -> None:
    refused(run("compact", chat, "--window", "8k", "-o", tmp_path / "no" / "out.json"), "there is no folder")
    refused(run("repair", chat, "-o", tmp_path / "no" / "out.json"), "there is no folder")


@pytest.mark.parametrize(
    "command",
    [
        *(["sessions", *words] for words in (["list"], ["show", "last"], ["search", "x"], ["export", "last"])),
        *(["sessions", *words] for words in (["rewind", "last"], ["delete", "last"])),
        ["mcp"],
    ],
)
def test_looking_into_a_store_that_is_not_there_makes_none(run: Run, tmp_path: Path, command: list[str]) -> None:
    refused(run(*command, "--store", tmp_path / "no" / "x.db"), "there is no store", "check the name")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="the modes of a Unix system")
def test_a_folder_without_permission_is_no_place_to_write(
    run: Run, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    if os.geteuid() == 0:  # root may write anywhere: judge by the mode, as the system does for others
        monkeypatch.setattr(os, "access", lambda path, mode: bool(os.stat(path).st_mode & 0o222))
    refused(run("compact", chat, "--window", "8k", "-o", locked / "out.json"), "not writable")


def test_a_place_the_system_calls_unwritable_is_refused(
    run: Run, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    refused(run("compact", chat, "--window", "8k", "-o", tmp_path / "out.json"), "not writable", "permissions")


def test_a_folder_that_cannot_be_read_is_said_to_be_so(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    refused(run("stats", tmp_path), "this folder cannot be read", "permissions")


def test_a_replay_goes_on_where_its_results_cannot_be_stored_unless_the_place_was_named(
    run: Run, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = (
        "replay",
        chat,
        "--window",
        "8k",
        "--model",
        "gpt-4o",
        "--policy",
        "none",
        "--size",
        "50%",
        "--jobs",
        "1",
    )
    went_on = run(*command)
    assert (went_on.exit_code, "results are not stored" in went_on.stderr) == (0, True)
    assert not (tmp_path / "cache").exists()
    refused(run(*command, "--cache", tmp_path / "cache"), "--cache", "not writable", "--no-cache")


def test_a_full_disk_is_said_in_one_line_and_leaves_nothing(
    run: Run, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device", target)

    monkeypatch.setattr(os, "replace", full)
    before = set(tmp_path.iterdir())
    refused(run("compact", chat, "--window", "8k", "-o", tmp_path / "out.json"), "No space left")
    assert set(tmp_path.iterdir()) == before


def test_several_files_need_a_folder_to_write_to(run: Run, chat: Path, body: Path, tmp_path: Path) -> None:
    refused(run("compact", chat, body, "--window", "8k"), "name a folder with -o")
    refused(run("compact", chat, body, "--window", "8k", "-o", chat), "name a folder with -o")


def test_an_unknown_option_or_command_is_said_in_one_line(run: Run, chat: Path) -> None:
    refused(run("plan", chat, "--sideways"), "--sideways", "refold plan --help")
    refused(run("squeeze", chat), "squeeze", "--help")
    refused(run("rewind", "last"), "rewind", "did you mean `refold sessions rewind`?")
    refused(run("plan"), "FILE")


def test_plan_and_conversation_cannot_both_be_standard_input(run: Run) -> None:
    refused(run("apply", "-", "-", input="[]"), "standard input")


def test_a_folder_without_transcripts_is_refused(run: Run, tmp_path: Path) -> None:
    refused(run("stats", tmp_path), str(tmp_path))
    refused(run("stats", tmp_path / "*.json"), "no file matches")
    (tmp_path / "settings.json").write_text('{"theme": "dark"}')
    refused(run("stats", tmp_path), "no transcript in 1 file:")


def test_what_cannot_fit_ends_with_code_1_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Rule upon rule. " * 800}, {"role": "user", "content": "Go on."}]
    (tmp_path / "big.json").write_text(json.dumps(messages))
    result = run(
        "compact", tmp_path / "big.json", "--policy", "wolffish", "--window", "1k", "-o", tmp_path / "out.json"
    )
    refused(result, "cannot bring the request under", code=1)
    assert not (tmp_path / "out.json").exists()


def test_what_cannot_be_repaired_is_named_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    said = [{"role": "user", "content": [{"text": "hi"}]}, {"role": "tool", "content": [{"text": "ok"}]}]
    (tmp_path / "odd.json").write_text(json.dumps(said))
    result = run("repair", tmp_path / "odd.json", "--format", "bedrock", "-o", tmp_path / "out.json")
    refused(result, "odd.json", "role is 'tool': give user, assistant or system", "`refold check`", code=1)
    assert not (tmp_path / "out.json").exists()


def test_a_content_that_is_a_number_is_a_violation_with_place_and_remedy(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(json.dumps([{"role": "user", "content": "hi"}, {"role": "user", "content": 7}]))
    result = run("check", tmp_path / "odd.json")
    assert result.exit_code == 1
    assert "1  form  content is a number: give a string or a list of blocks" in result.stdout
    repaired = run("repair", tmp_path / "odd.json")
    assert json.loads(repaired.stdout)[1] == {"role": "user", "content": "7"}


@pytest.mark.parametrize("line", ["null", "7", "[1]", '"x"', '{"refold_session": 1}'])
def test_a_line_of_another_shape_is_told_in_words_of_the_file(run: Run, tmp_path: Path, line: str) -> None:
    (tmp_path / "other.jsonl").write_text(line)
    result = run("sessions", "import", tmp_path / "other.jsonl", "--store", tmp_path / "new.db")
    refused(result, "line 1 is not a line of an exported session", "refold sessions export")
    assert "subscriptable" not in result.stderr
    assert "indices" not in result.stderr


def test_megabytes_in_one_message_are_taken(run: Run, tmp_path: Path) -> None:
    line = "The quick brown fox jumps over the lazy dog, number after number.\n"
    arguments = {
        "id": "c1",
        "type": "function",
        "function": {"name": "bash", "arguments": '{"command": "cat big.log"}'},
    }
    messages = [
        {"role": "user", "content": "Show the log."},
        {"role": "assistant", "content": None, "tool_calls": [arguments]},
        {"role": "tool", "tool_call_id": "c1", "content": line * (deep(20_000_000, 100_000_000) // len(line))},
        {"role": "assistant", "content": "Long."},
        {"role": "user", "content": "Go on."},
    ]
    (tmp_path / "big.json").write_bytes(msgspec.json.encode(messages))
    result = run("compact", tmp_path / "big.json", "--window", "32k", "--counter", "policy", "--policy", "claude-code")
    assert result.exit_code in (0, 1), result.stderr
    assert len(result.stdout) < 1_000_000


def test_tens_of_thousands_of_messages_are_taken(run: Run, tmp_path: Path) -> None:
    messages = [
        {"role": "assistant" if number % 2 else "user", "content": f"word {number}"}
        for number in range(deep(20_001, 100_001))
    ]
    (tmp_path / "many.jsonl").write_bytes(b"".join(msgspec.json.encode(message) + b"\n" for message in messages))
    result = run("plan", tmp_path / "many.jsonl", "--window", "64k", "--policy", "neurolink")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) < 1_000


def test_an_option_of_other_commands_is_said_to_be_theirs(run: Run, chat: Path) -> None:
    refused(
        run("stats", chat, "--window", "8k"), "no option --window here", "plan", "compact", "see refold stats --help"
    )
    refused(run("plan", chat, "--lenent"), "no option --lenent here; did you mean --lenient?")


def test_a_list_without_messages_is_said_to_be_empty(run: Run, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text('{"messages": []}')
    refused(run("plan", tmp_path / "none.json", "--window", "8k"), "none.json", "the list of messages is empty")


def test_a_search_for_nothing_is_refused(run: Run, tmp_path: Path) -> None:
    refused(run("sessions", "search", " ", "--store", tmp_path / "s.db"), "give a word")


def test_an_invalid_conversation_that_is_not_touched_is_named_with_its_remedy(run: Run, tmp_path: Path) -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "zz", "content": "x"}]
    (tmp_path / "bad.json").write_text(json.dumps(said))
    for command in ("plan", "compact"):
        result = run(command, tmp_path / "bad.json", "--window", "8k")
        assert result.exit_code == 0
        assert "1 violation of the rules of openai-chat: `refold repair` repairs it" in result.stderr


def test_a_command_that_there_is_none_of_is_told_with_one_that_is_near(run: Run, chat: Path) -> None:
    refused(run("stat", chat), "there is no command 'stat'; did you mean stats?", "see refold --help")
    refused(run("audit", chat), "there is no command 'audit'", "see refold --help")


def test_several_files_do_not_make_a_folder_with_the_name_of_a_file(run: Run, chat: Path, tmp_path: Path) -> None:
    (tmp_path / "second.json").write_text(chat.read_text())
    out = tmp_path / "out.json"
    refused(run("compact", chat, tmp_path / "second.json", "--window", "8k", "-o", out), "out.json", "name a folder")
    assert not out.exists()


def test_a_place_that_fails_at_the_end_is_told_by_its_own_name(run: Run, chat: Path) -> None:
    refused(run("compact", chat, "--window", "8k", "-o", "/proc/small.json"), "/proc/small.json: ", "check the path")
    refused(run("compact", chat, "--window", "8k", "-o", "/dev/full"), "/dev/full: No space left")


def test_numbers_that_do_not_fit_the_window_are_told_by_their_options(run: Run, chat: Path) -> None:
    refused(run("plan", chat, "--window", "8k", "--budget", "9k"), "--budget 9,000", "8,000", "--window")
    refused(run("plan", chat, "--window", "8k", "--max-output", "8k"), "--max-output 8,000", "8,000", "--window")


def test_a_policy_file_that_is_no_python_is_told_so(run: Run, chat: Path) -> None:
    refused(run("plan", chat, "--window", "8k", "--policy", "./mine.toml"), "./mine.toml", "ends in .py")


def test_a_missing_price_is_told_with_the_file(run: Run, chat: Path) -> None:
    refused(run("cost", chat), "chat.json: the file names no model", "--price-input")
    refused(run("replay", chat, "--window", "8k", "--jobs", 1), "chat.json: the file names no model", "--price-input")


@pytest.mark.parametrize("command", [("serve", "--port", 0), ("run",)])
def test_a_store_that_cannot_be_used_is_told_before_anything_is_served(
    run: Run, tmp_path: Path, command: tuple[object, ...]
) -> None:
    (tmp_path / "kept.db").write_text("no database")
    rest = ("--", "true") if command == ("run",) else ()
    refused(run(*command, "--store", tmp_path / "kept.db", *rest), "kept.db is not a database", "--store")
    assert (tmp_path / "kept.db").read_text() == "no database"
    pytest.importorskip("psycopg")
    refused(run(*command, "--store", "postgresql://u:secret@127.0.0.1:1/x", *rest), "u:***@127.0.0.1", "refused")


def test_what_a_gateway_is_told_wrongly_is_named_by_its_option(run: Run) -> None:
    serve = ("serve", "--port", 0, "--store", "memory")
    refused(run(*serve, "--model-window", "gpt-4o=abc"), "--model-window gpt-4o: 'abc' is no number of tokens")
    refused(run(*serve, "--summarizer-url", "http://127.0.0.1:1"), "--summarizer")
    refused(run(*serve, "--summarizer", "m", "--summarizer-url", "nowhere"), "--summarizer-url nowhere")
