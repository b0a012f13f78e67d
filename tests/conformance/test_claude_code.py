"""learn-claude-code v5 (seed 003): one test a row of its behaviour, with the document's own numbers."""

from __future__ import annotations

import json
import os
import stat
from itertools import pairwise

import pytest
from msgspec.structs import replace

import refold
from refold._rules.pairing import GroupPairing
from refold.agent import Agent, AgentProfile, Decision, tool
from refold.agent._changed_files import Files
from refold.agent._subagents import DIGEST, subagent
from refold.agent._workspace import Workspace
from refold.agent.cards import DoneCard, StartedCard
from refold.core._engine import due
from refold.core.budget import Budget
from refold.core.counting import CharCounter
from refold.core.messages import Text, text_of
from refold.core.needs import ArchiveNeed, FileNeed, Provided, Refused, SummaryNeed
from refold.core.token_units import ReportedTokens
from refold.core.transcript import Transcript
from refold.core.view import Cause, FormatTraits
from refold.errors import SummaryRefused
from refold.policies import find
from refold.sessions import open_store
from refold.stages.restore import Restore, recently_read
from refold.testing import talk, view_of
from refold.testing.client import ScriptedClient
from refold.testing.provider import ScriptedReply
from tests.agent.kit import Watched, results
from tests.agent.kit import calls as answers
from tests.conformance.chats import READ, SUMMARY, chat
from tests.conformance.drive import Asked, absent, after, drive, shown

POLICY = find("claude-code")
MICRO = POLICY.steps[0].stage
CLEARED = "[Old tool result content cleared]"


def calls(*sizes, name="bash", request="u: go"):
    lines = [request]
    for number, size in enumerate(sizes):
        lines += [f"a: look | {name}(f{number}.py) as c{number}", f"t: c{number} = {'x' * size}"]
    return talk(*lines, "a: done")


def cleared(transcript):
    view = view_of(transcript, window=10**6, goal=POLICY.goal)
    return [text == CLEARED for text in shown(view.after(MICRO.edits(view, ())))[2:-1:2]]


@pytest.mark.parametrize(
    ("window", "max_output", "threshold"),
    [(200_000, 16_384, 170_616), (200_000, 20_000, 167_000), (200_000, 64_000, 167_000), (200_000, None, 167_000)],
)
def test_l01_threshold_is_window_less_reserve_up_to_20_000_less_13_000(window, max_output, threshold):
    budget = Budget(window, POLICY.reserve(window, max_output))
    assert POLICY.trigger.tokens(budget) == threshold
    assert not POLICY.trigger.reached(threshold, budget)
    assert POLICY.trigger.reached(threshold + 1, budget)


def test_l02_the_last_3_results_are_kept_on_every_call():
    assert POLICY.steps[0].when == "every_call"
    assert cleared(calls(20_000, 20_000, 20_000, 20_000, 20_000)) == [True, True, False, False, False]
    assert cleared(calls(90_000, 90_000, 90_000)) == [False, False, False]


@pytest.mark.parametrize(("size", "expected"), [(1_000, False), (1_001, True)])
def test_l02_only_results_above_1_000_tokens_are_cleared(size, expected):
    assert cleared(calls(size, 30_000, 1, 1, 1))[:2] == [expected, True]


@pytest.mark.parametrize(("size", "expected"), [(9_999, False), (10_000, True)])
def test_l02_nothing_is_cleared_unless_20_000_are_saved(size, expected):
    assert cleared(calls(10_000, size, 1, 1, 1))[:2] == [expected, expected]


@pytest.mark.parametrize(
    "name", ["bash", "read_file", "write_file", "edit_file", "glob", "grep", "list_dir", "notebook_edit"]
)
def test_l02_the_8_named_tools_are_cleared(name):
    assert cleared(calls(30_000, 1, 1, 1, name=name))[0]


def test_l02_results_of_other_tools_are_neither_cleared_nor_counted():
    assert cleared(calls(30_000, 1, 1, 1, name="browser")) == [False] * 4
    mixed = talk(
        "u: go",
        "a: l | bash(x) as c1",
        "t: c1 = " + "x" * 30_000,
        *[line for n in range(2, 6) for line in (f"a: l | browser(x) as c{n}", f"t: c{n} = y")],
        "a: done",
    )
    assert not any(cleared(mixed))  # the one bash result is among the last 3 of its kind


def test_l02_the_tools_of_the_chat_are_cleared_as_the_8_are_and_nobody_is_told(tmp_path):
    for number in range(12):
        (tmp_path / f"f{number}.py").write_text(f"line {number} of a file\n" * 600)  # 11 KB
    reads = [ScriptedReply("", [("read", {"path": f"f{number}.py"})]) for number in range(12)]
    run = Watched([*reads, "Done."], policy="claude-code", tools=Workspace(tmp_path).tools(), max_output=16_384,
                  budget=Budget(200_000, 16_384))  # fmt: skip
    run.agent.run("read all")
    texts = results(run.sent())
    assert texts.count(CLEARED) >= 8
    assert CLEARED not in texts[-3:]
    assert results(run.agent.originals).count(CLEARED) == 0
    assert run.told(StartedCard) == run.told(DoneCard) == []  # microcompact is invisible


def test_l02_where_microcompact_is_enough_there_is_no_card_and_auto_compact_has_one():
    def bash(command: str) -> str:
        return "x" * 120_000

    script = [ScriptedReply("", [("bash", {"command": f"make {n}"})] * calls) for n, calls in enumerate((3, 2, 1, 1))]
    run = Watched([*script, "Done."], policy="claude-code", tools=(tool(bash),), summarize=lambda need: "so far",
                  profile=AgentProfile(output="as it is"), budget=Budget(180_000, 20_000))  # fmt: skip
    run.agent.run("build")
    assert any(decision.due for decision in run.told(Decision))  # above the threshold before the results were cleared
    assert [results(run.sent(number)).count(CLEARED) for number in range(5)] == [0, 0, 2, 3, 4]
    assert run.told(StartedCard) == run.told(DoneCard) == []
    assert run.agent.compact() is not None
    assert len(run.told(StartedCard)) == len(run.told(DoneCard)) == 1


@pytest.mark.parametrize(
    ("name", "cleared_too"),
    [
        ("read", True),
        ("write", True),
        ("list", True),
        ("mcp__fs__read_file", True),
        ("delegate", False),
        ("fetch", False),
    ],
)
def test_l02_a_tool_is_known_by_what_it_does(name, cleared_too):
    messages = [{"role": "user", "content": "go"}]
    for number in range(5):
        call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": '{"path": "a"}'}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]},
                     {"role": "tool", "tool_call_id": f"c{number}", "content": "x" * 60_000}]  # fmt: skip
    messages.append({"role": "assistant", "content": "done"})
    done = refold.compact(messages, policy="claude-code", budget=refold.Budget(300_000, 20_000))
    assert [message["content"] == CLEARED for message in done.messages if message["role"] == "tool"] == [
        cleared_too, cleared_too, False, False, False,
    ]  # fmt: skip


def test_l02_the_call_structure_stays():
    view = view_of(calls(30_000, 1, 1, 1), window=10**6, goal=POLICY.goal, rules=(GroupPairing(),))
    seen = view.after(MICRO.edits(view, ()))
    assert GroupPairing().broken(seen.messages) == ()
    assert [call.call_id for message in seen.messages for call in message.calls] == ["c0", "c1", "c2", "c3"]


def test_l03_auto_compact_runs_only_when_the_total_exceeds_the_threshold():
    view = view_of(calls(100, 100), window=33_000, reserve=10_000, goal=POLICY.goal, cause=Cause.THRESHOLD)
    at = replace(view, measured=ReportedTokens(10_000))
    above = replace(view, measured=ReportedTokens(10_001))
    assert not due(POLICY, at)
    assert due(POLICY, above)
    assert drive(POLICY, at, Asked("short")).empty
    assert "auto-compact" in drive(POLICY, above, Asked("short")).stages_used


def test_l04_the_transcript_is_archived_first_then_everything_becomes_summary_and_acknowledgement():
    view = view_of(calls(3_000, 3_000), goal=POLICY.goal)
    asked = Asked("what happened")
    seen = after(POLICY, view, asked)
    assert isinstance(asked.needs[0], ArchiveNeed)
    assert asked.needs[0].messages == view.transcript.messages
    assert isinstance(asked.needs[1], SummaryNeed)
    assert asked.needs[1].max_tokens == 2_000
    assert [message.role for message in seen.messages] == ["user", "assistant"]
    assert shown(seen)[0] == "[Conversation compressed]\n\nwhat happened"
    assert shown(seen)[1].startswith("Understood.")


def test_l04_an_unfinished_request_stays_and_is_last():
    transcript = Transcript(calls(3_000, 3_000, request="u: fix the bug").messages[:-1])
    view = view_of(transcript, goal=POLICY.goal)
    seen = after(POLICY, view, Asked("so far"))
    assert [message.role for message in seen.messages] == ["user", "assistant", "user"]
    assert seen.messages[-1] is view.messages[0]


def test_l04_the_acknowledgement_is_left_out_where_an_assistant_may_not_be_last():
    view = view_of(calls(3_000), goal=POLICY.goal, traits=FormatTraits(assistant_last=False))
    assert [message.role for message in after(POLICY, view, Asked("short")).messages] == ["user"]


def test_l04_without_anybody_to_ask_a_digest_is_used_and_a_failure_changes_nothing():
    view = view_of(calls(30_000, 30_000), window=200_000, goal=POLICY.goal)
    first = after(POLICY, view, absent).messages[0]
    assert first.note is not None
    assert first.note.kind == "digest"
    with pytest.raises(SummaryRefused):
        drive(POLICY, view, Asked(None))


def test_l04_nothing_but_a_system_message_is_left_alone():
    assert drive(POLICY, view_of(talk("s: be brief"), goal=POLICY.goal), Asked("short")).empty


@pytest.mark.parametrize("named", [True, False])
def test_l04_an_agent_with_a_workspace_writes_the_transcript_to_disk_before_it_replaces_everything(tmp_path, named):
    def look(number: int) -> str:
        return f"line {number} é\n" * 1_000

    where = {"folder": tmp_path / "outputs"} if named else {}
    replies = [ScriptedReply("", [("look", {"number": number})]) for number in range(14)]
    run = Watched([*replies, "Done."], policy="claude-code", tools=(tool(look),), files=Files(tmp_path),
                  budget=Budget(45_000, 2_000), summarize=lambda need: "so far", **where)  # fmt: skip
    run.agent.run("look at all")
    assert run.told(DoneCard)
    (path,) = (tmp_path / ("outputs" if named else ".transcripts")).glob("transcript-*.jsonl")
    written = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert written == run.agent.originals[: len(written)]
    assert len(written) > 10
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert refold.count(written, model="gpt-4o") > 0  # it can be read again
    run.agent.compact()
    again = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert again == run.agent.originals  # the whole of it, no message twice


def read_many(count, size=100):
    return calls(*[size] * count, name="read_file")


def test_l05_up_to_5_recently_read_files_come_back_each_with_an_acknowledgement():
    view = view_of(read_many(7, 3_000), window=200_000, goal=POLICY.goal)
    asked = Asked("short", files={f"f{n}.py": f"content of {n}" for n in range(7)})
    seen = after(POLICY, view, asked)
    files = [need for need in asked.needs if isinstance(need, FileNeed)]
    assert [need.path for need in files] == ["f6.py", "f5.py", "f4.py", "f3.py", "f2.py"]
    assert {need.max_tokens for need in files} == {5_000}
    texts = shown(seen)
    assert len(texts) == 2 + 5 * 2
    assert "content of 6" in texts[2]
    assert "f6.py" in texts[2]
    assert texts[3::2] == ["Noted, file content restored."] * 5
    assert [message.role for message in seen.messages] == ["user", "assistant"] * 6


@pytest.mark.parametrize(("size", "restored"), [(5_000, True), (5_001, False)])
def test_l05_a_file_may_have_5_000_tokens(size, restored):
    view = view_of(read_many(1, 9_000), window=200_000, goal=POLICY.goal)
    seen = after(POLICY, view, Asked("short", files={"f0.py": "y" * size}))
    assert any("y" * size in text for text in shown(seen)) is restored


def test_l05_all_files_together_may_have_50_000_tokens():
    stage = Restore()
    assert (stage.files, stage.each, stage.total) == (5, 5_000, 50_000)
    view = view_of(read_many(4, 9_000), window=10**6, goal=POLICY.goal)
    done = view.after(POLICY.steps[2].stage.edits(view, (Provided("short"),)))
    tight = Restore(total=2_500)
    answers = tuple(Provided("y" * 1_000) for _ in tight.needs(done))
    assert len(tight.edits(done, answers)) == 2 * 2


def test_l05_a_file_read_twice_counts_once_and_a_failed_read_does_not():
    transcript = talk(
        "u: go",
        "a: l | read_file(a.py) as c1 | read_file(b.py) as c2",
        "t: c1 = x | c2 = y",
        "a: l | read_file(a.py) as c3 | read_file(gone.py) as c4",
        "t: c3 = x",
        "t! c4 = no such file",
    )
    assert recently_read(view_of(transcript), 5) == ("a.py", "b.py")


def test_l05_without_a_reader_nothing_is_restored():
    view = view_of(read_many(3, 3_000), goal=POLICY.goal)
    assert len(after(POLICY, view, Asked("short")).messages) == 2


def test_l06_the_summary_is_in_the_history_and_the_system_prompt_untouched():
    transcript = Transcript((*talk("s: be brief").messages, *calls(3_000).messages))
    view = view_of(transcript, goal=POLICY.goal)
    seen = after(POLICY, view, Asked("short"))
    assert seen.messages[0] is view.messages[0]
    assert seen.messages[1].role == "user"


def test_l07_the_person_s_words_shape_the_summary():
    asked = Asked("short")
    view = view_of(calls(3_000), goal=POLICY.goal, instructions="Keep every SQL statement.")
    seen = after(POLICY, view, asked)
    assert "Keep every SQL statement." in asked.summaries[0].instructions
    assert "Keep every SQL statement." not in asked.summaries[0].text
    assert [message.role for message in seen.messages] == ["user", "assistant"]
    plain = Asked("short")
    drive(POLICY, replace(view, instructions=""), plain)
    assert plain.summaries[0].instructions in asked.summaries[0].instructions


def test_l11_a_token_is_four_characters_rounded_down():
    assert POLICY.counter == CharCounter(4, floor=True)
    assert POLICY.counter is not None
    assert [POLICY.counter.text("x" * size) for size in (3, 4, 7, 8)] == [0, 1, 1, 2]


def test_l04_a_call_that_waits_for_its_result_stays():
    transcript = talk("u: go", "a: l | bash(x) as c1", "t: c1 = " + "x" * 3_000, "a: l | bash(y) as c2")
    view = view_of(transcript, goal=POLICY.goal, rules=(GroupPairing(),))
    seen = after(
        POLICY, view, lambda need: Provided("short") if isinstance(need, SummaryNeed) else Refused("no", "absent")
    )
    assert seen.messages[-1] is view.messages[-1]
    assert any(text_of(message) == "go" for message in seen.messages)
    assert all(isinstance(part, Text) for message in seen.messages[:-1] for part in message.parts)


def a_file(name, tmp_path, text):
    (tmp_path / name).write_text(text)
    return ScriptedReply("", [("read_file", {"path": name})])


def reader(tmp_path):
    @tool
    def read_file(path: str) -> str:
        return (tmp_path / path).read_text()

    return read_file


def test_l05_an_agent_brings_back_the_files_it_read_as_they_are_now(tmp_path):
    script = [a_file(f"f{n}.py", tmp_path, f"line {n}\n" * 1_000) for n in range(6)]
    run = Watched([*script, *(answers("word " * 2_000) for _ in range(3)), "Done."], policy="claude-code",
                  tools=(reader(tmp_path), *Watched([""]).agent._tools.values()), files=Files(tmp_path),
                  budget=Budget(35_000, 2_000), summarize=lambda need: "so far so good")  # fmt: skip
    run.agent.run("go")
    assert run.told(DoneCard)
    texts = [str(message["content"]) for message in run.sent()]
    back = [text for text in texts if "Restored after compaction" in text]
    assert 1 <= len(back) <= 5
    assert "f5.py" in back[0]
    assert "Noted, file content restored." in texts


def test_l07_compact_with_instructions_is_shaped_by_the_users_words():
    asked = []
    run = Watched([answers("word " * 2_000), "Done."], policy="claude-code",
                  summarize=lambda need: asked.append(need) or "what was decided")  # fmt: skip
    run.agent.run("go")
    card = run.agent.compact("keep the names of all tables")
    assert card is not None
    assert "keep the names of all tables" in asked[0].instructions
    assert any("what was decided" in str(message["content"]) for message in run.agent.messages)


def test_l08_an_output_above_40_000_tokens_goes_to_disk_and_leaves_a_path_and_a_preview(tmp_path):
    run = Watched([answers("z" * 160_000), answers("z" * 160_004), "Done."], policy="claude-code", folder=tmp_path,
                  budget=Budget(1_000_000, 100_000))  # fmt: skip
    run.agent.run("go")
    whole, preview = results(run.agent.messages)
    assert whole == "z" * 160_000
    (saved,) = tmp_path.iterdir()
    assert saved.read_text() == "z" * 160_004
    assert str(saved) in preview
    assert preview.count("z" * 2_000) == 1
    assert len(preview) < 2_300


def test_l09_a_sub_agent_compacts_on_its_own_window_and_hands_on_a_bounded_digest():
    inner = ScriptedClient([*(answers("word " * 1_000) for _ in range(12)), "answer " * 5_000], window=12_000)
    made = []

    def make_inner():
        made.append(Agent(inner, policy="claude-code", tools=Watched([""]).agent._tools.values(),
                          budget=Budget(12_000, 2_000), max_output=2_000, summarize=lambda need: "short"))  # fmt: skip
        return made[-1]

    run = Watched([ScriptedReply("", [("delegate", {"task": "look around"})]), "Done."], tools=[subagent(make_inner)])
    assert run.agent.run("go") == "Done."
    assert made[0].plans
    assert not run.agent.plans
    (digest,) = results(run.agent.messages)
    assert len(digest) <= DIGEST
    assert "answer answer" in digest
    assert inner.received[0].messages[0].parts[0].text == "look around"  # nothing of the caller's conversation


def test_l10_a_file_that_changed_on_disk_is_told_at_the_next_turn(tmp_path):
    run = Watched([a_file("a.py", tmp_path, "1"), "Read.", "Looked again.", "Fine."], policy="claude-code",
                  tools=[reader(tmp_path)], files=Files(tmp_path))  # fmt: skip
    run.agent.run("read a.py")
    run.agent.run("and?")
    assert "a.py" not in str(run.agent.originals[-2])
    later = (tmp_path / "a.py").stat().st_mtime_ns + 10**9
    os.utime(tmp_path / "a.py", ns=(later, later))
    run.agent.run("and now?")
    assert "- a.py" in str(run.agent.originals[-2])
    assert run.agent.originals[-2]["content"][0] == {"type": "text", "text": "and now?"}


def test_l05_files_that_cannot_be_read_do_not_use_up_the_five_places(tmp_path):
    def read(need):
        if need.path in ("f8.py", "f7.py", "f4.py"):
            raise FileNotFoundError(need.path)
        return f"content of {need.path}"

    messages = [{"role": "user", "content": "go"}]
    for number in range(9):
        call = {"id": f"c{number}", "type": "function",
                "function": {"name": "read_file", "arguments": f'{{"path": "f{number}.py"}}'}}  # fmt: skip
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]},
                     {"role": "tool", "tool_call_id": f"c{number}", "content": "x" * 3_000}]  # fmt: skip
    messages.append({"role": "assistant", "content": "done"})
    done = refold.compact(messages, policy="claude-code", window=200_000, force=True,
                          handlers=refold.Handlers(summarize=lambda need: "so far", read_file=read))  # fmt: skip
    texts = [str(message["content"]) for message in done.messages]
    back = [text.split("\n")[-1] for text in texts if "Restored after compaction" in text]
    assert back == [f"content of f{number}.py" for number in (6, 5, 3, 2, 1)]


@pytest.mark.parametrize(("window", "tokens", "archived"), [(128_000, 30_000, False), (128_000, 40_001, True),
                                                            (60_000, 19_000, False), (60_000, 21_000, True)])  # fmt: skip
def test_l08_the_limit_is_40_000_tokens_or_half_of_a_small_input_budget(tmp_path, window, tokens, archived):
    def look(at: int) -> str:
        return "z" * tokens * 4

    run = Watched([ScriptedReply("", [("look", {"at": 1})]), "Done."], policy="claude-code", folder=tmp_path,
                  tools=(tool(look),), budget=Budget(window, 20_000))  # fmt: skip
    run.agent.run("go")
    assert ("saved to" in results(run.agent.messages)[0]) is archived
    assert bool(list(tmp_path.iterdir())) is archived


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
def test_l10_a_file_that_changes_in_the_middle_of_a_run_is_told_before_the_next_call(tmp_path, format):
    def change(path: str, by: int) -> str:
        (tmp_path / path).write_text("other")
        stamp = 2_000_000_000 + by
        os.utime(tmp_path / path, (stamp, stamp))
        return "done"

    script = [
        a_file("a.py", tmp_path, "1"),
        ScriptedReply("", [("change", {"path": "a.py", "by": 1})]),
        ScriptedReply("", [("change", {"path": "b.py", "by": 2})]),
        ScriptedReply("", [("change", {"path": "a.py", "by": 3})]),
        "Done.",
    ]
    run = Watched(
        script, policy="claude-code", tools=[reader(tmp_path), tool(change)], files=Files(tmp_path), format=format
    )
    run.agent.run("format all files")
    told = ["- a.py" in results(run.sent(number))[-1] for number in range(1, 5)]
    assert told == [False, True, False, True]  # b.py was not read
    assert str(run.agent.originals[0]["content"]) == "format all files"


@pytest.mark.parametrize(("max_output", "threshold"), [(16_384, 170_616), (64_000, 167_000)])
def test_l01_l03_a_check_is_due_only_above_the_threshold(max_output, threshold):
    messages = [{"role": "user", "content": "go"}]

    def filled(tokens):
        limits = {"policy": "claude-code", "window": 200_000, "max_output": max_output}
        system = "x" * 4 * (tokens - refold.check(messages, **limits).tokens)
        check = refold.check(messages, system=system, **limits)
        return check.tokens, check.due

    assert filled(threshold) == (threshold, False)
    assert filled(threshold + 1) == (threshold + 1, True)


def test_l06_an_agent_sends_one_system_prompt_and_the_summary_as_a_message():
    def look(number: int) -> str:
        return f"{number} " * 5_000

    replies = [ScriptedReply("", [("look", {"number": number})]) for number in range(14)]
    run = Watched([*replies, "Done."], policy="claude-code", tools=(tool(look),), system="Be brief.",
                  budget=Budget(45_000, 2_000), summarize=lambda need: "so far")  # fmt: skip
    run.agent.run("look at all")
    assert run.told(DoneCard)
    assert {str(received.body["messages"][0]) for received in run.client.received} == {
        str({"role": "system", "content": "Be brief."})
    }
    assert run.sent()[1]["role"] == "user"
    assert run.sent()[1]["content"].startswith("[Conversation compressed]")


def test_l11_a_check_counts_four_characters_as_a_token_rounded_down():
    check = refold.check([{"role": "user", "content": "go"}], policy="claude-code", window=200_000, system="x" * 403)
    assert check.breakdown.system == 100


def test_l09_a_chat_delegates_to_a_sub_agent_that_compacts_on_its_own(tmp_path):
    """The sub-agent reads until its own window is full; the chat's conversation gets its bounded answer alone."""

    def behave(received):
        messages = received.body["messages"]
        if not received.body.get("tools"):
            return SUMMARY
        if "DELEGATE it" not in str(messages):
            seen.append(received.tokens)
            return READ if len(seen) < 7 else "All was read."
        last = messages[-1]
        return ScriptedReply("", [("delegate", {"task": "look around"})]) if last["role"] == "user" else "Delegated."

    seen: list[int] = []
    notes = "".join(f"line {number} of the notes\n" for number in range(230))
    done, _ = chat(tmp_path, ["DELEGATE it"], "--subagents", "-p", "refold", behave=behave, notes=notes)
    assert "Delegated." in done.output
    assert any(later < earlier for earlier, later in pairwise(seen))  # it compacted on the way
    with open_store(tmp_path / "data" / "refold" / "sessions.db") as store:
        (head,) = store.sessions()
        assert head.messages == 4  # the request, the call, its digest, and the answer
