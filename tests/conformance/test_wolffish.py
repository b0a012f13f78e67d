"""Wolffish (seed 000): one test a row of its behaviour, with the document's own numbers."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

import refold
from refold._cli.demo_mail import tried
from refold._condense.transcript_text import serialize
from refold._gateway.conversations.budgets import Budgets
from refold._gateway.settings import GatewaySettings
from refold.agent import Agent, Tool, ToolOutcome, tool
from refold.agent._compaction_log import Decision, Snapshots
from refold.agent._daily_log import DailyLog
from refold.agent._tasks import TaskFile, TaskFiles
from refold.agent.cards import DoneCard, StartedCard
from refold.agent.events import ToolFinished, ToolStarted, UsageReported
from refold.clients._factory import client
from refold.config import Settings
from refold.core._engine import due
from refold.core.budget import Budget, Share, Usage
from refold.core.counting import CharCounter
from refold.core.edits import Rewrite
from refold.core.messages import (
    Image,
    Message,
    Note,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.needs import Provided, SummaryNeed
from refold.core.token_units import EstimatedTokens
from refold.core.transcript import Transcript
from refold.core.usage_gauges import HigherOf
from refold.core.view import Cause
from refold.handlers import Handlers
from refold.policies import find
from refold.recovery._run import recovering
from refold.sessions import MemoryStore, Session
from refold.stages.selectors import LargestThenOldest
from refold.stages.strip_media import StripImages
from refold.stages.truncate import Truncate
from refold.summaries.summarizers import model_summarizer, retrying
from refold.testing import talk, view_of
from refold.testing.client import ScriptedClient
from refold.testing.provider import ScriptedProvider, ScriptedReply
from refold.testing.provider._mail_agent import MailAgent, Mailbox
from tests.agent.kit import Watched, calls, results
from tests.conformance.drive import (
    Asked,
    absent,
    after,
    drive,
    shown,
    stage_edits,
)

POLICY = find("wolffish")
MARKER = "[Screenshot analyzed — image omitted from context]"


def view_at(transcript, window, **more):
    return view_of(transcript, window=window, goal=POLICY.goal, **more)


def steps(count, size=2_000, first="u: the task"):
    """A turn of so many calls, each with a result of so many characters."""
    lines = [first]
    for number in range(count):
        lines += [f"a: | read(f{number}.py) as c{number}".replace("a: |", "a: look |"), f"t: c{number} = {'x' * size}"]
    return talk(*lines)


def test_w01_system_prompt_tools_and_messages_are_counted_against_the_input_budget_before_every_call():
    messages = [{"role": "user", "content": "y" * 300}]
    tools = [{"type": "function", "function": {"name": "read", "parameters": {}}}]
    check = refold.check(
        messages, format="openai-chat", policy="wolffish", window=10_000, system="s" * 900, tools=tools
    )
    parts = check.breakdown
    assert parts.system == 600  # 900 characters / 1.5
    assert parts.messages == 200
    assert parts.tools > 0
    assert check.tokens == parts.system + parts.messages + parts.tools
    assert check.limit < 10_000


def test_w02_a_token_is_one_and_a_half_characters():
    assert POLICY.counter == CharCounter(1.5)
    assert POLICY.counter.text("x" * 1_500) == 1_000


@pytest.mark.parametrize(("size", "expected"), [(750, False), (751, True)])
def test_w02_the_trigger_is_above_75_percent_of_the_input_budget(size, expected):
    view = view_at(talk("u: " + "x" * size), 1_000, cause=Cause.THRESHOLD)
    assert due(POLICY, view) is expected


def test_w02_the_document_s_log_line_is_above_its_threshold():
    assert POLICY.trigger.tokens(Budget(1_000_000, 32_768)) == 725_424
    assert POLICY.trigger.reached(839_203, Budget(1_000_000, 32_768))
    assert not POLICY.trigger.reached(725_424, Budget(1_000_000, 32_768))


def test_w02_compaction_goes_down_to_50_percent():
    assert POLICY.goal == Share(0.50)
    view = view_at(steps(20), 40_000, cause=Cause.THRESHOLD)
    assert view.tokens > 30_000
    assert after(POLICY, view, Asked("short")).tokens <= 20_000


@pytest.mark.parametrize(("estimate", "reported", "expected"), [(839_203, 541_090, 839_203), (500, 900, 900)])
def test_w03_the_larger_of_estimate_and_reported_input_decides(estimate, reported, expected):
    assert POLICY.gauge == HigherOf()
    assert POLICY.gauge.measure(EstimatedTokens(estimate), EstimatedTokens(0), Usage(reported)).count == expected
    assert POLICY.gauge.measure(EstimatedTokens(estimate), EstimatedTokens(0), None).count == estimate


def test_w05_tool_results_go_largest_first_until_projected_savings_cover_the_excess():
    sizes = (1_000, 3_000, 2_000, 700, 700, 700)
    lines = ["u: the task"]
    for number, size in enumerate(sizes):
        lines += [f"a: look | read(f{number}) as c{number}", f"t: c{number} = {'x' * size}"]
    view = view_of(talk(*lines), goal=1)

    def chosen(excess):
        return [t.characters for t in LargestThenOldest()(replace(view, goal=refold.Exactly(view.tokens - excess)))]

    assert chosen(1) == [3_000]
    assert chosen(2_250) == [3_000]  # 75 % of 3,000 covers it exactly
    assert chosen(2_251) == [3_000, 2_000]
    assert chosen(2_250 + 1_500 + 1) == [3_000, 2_000, 1_000]


def test_w05_assistant_messages_come_next_oldest_first_and_user_messages_last():
    lines = ["u: " + "t" * 900]
    for number in range(5):
        lines += ["a: " + str(number) * (600 + number), "u: " + str(number) * (800 + number)]
    view = view_of(talk(*lines), goal=1)
    found = [(t.message.role, t.characters) for t in LargestThenOldest()(view)]
    assert found == [("assistant", 600), ("assistant", 601), ("user", 800), ("user", 801)]


def test_w05_the_first_user_message_and_the_last_three_of_each_role_are_never_chosen():
    view = view_of(steps(5), goal=1)
    chosen = {target.message.id for target in LargestThenOldest()(view)}
    results = [message.id for message in view.messages if message.role == "tool"]
    assert chosen == set(results[:2])
    assert LargestThenOldest()(view_of(steps(3), goal=1)) == ()
    users = view_of(talk("u: " + "x" * 9_000, *[f"u: {number}" * 500 for number in range(3)]), goal=1)
    assert LargestThenOldest()(users) == ()


def test_w05_the_last_three_results_are_counted_result_by_result_in_a_shared_message():
    calls = " | ".join(f"read(f{number}) as c{number}" for number in range(5))
    results = " | ".join(f"c{number} = {'x' * 900}" for number in range(5))
    view = view_of(talk("u: go", f"a: look | {calls}", f"t: {results}"), goal=1)
    assert [target.result.call_id for target in LargestThenOldest()(view)] == ["c0", "c1"]


def test_w05_error_results_are_never_chosen():
    lines = ["u: go", "a: look | read(a) as c0", "t! c0 = " + "x" * 9_000]
    lines += [line for n in range(1, 4) for line in (f"a: look | read(a) as c{n}", f"t: c{n} = ok")]
    assert LargestThenOldest()(view_of(talk(*lines), goal=1)) == ()


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("error", [ValueError("x" * 40_000), ToolOutcome("disk full " * 4_000, is_error=True)])
def test_w05_an_error_of_40_000_characters_is_sent_whole_after_a_compaction_on_every_format(format, error):
    def broken() -> str:
        if isinstance(error, Exception):
            raise error
        return error

    def page(number: int) -> str:
        return f"{number} " * 10_000

    script = [ScriptedReply("", [("broken", {})]), *(ScriptedReply("", [("page", {"number": n})]) for n in range(7))]
    run = Watched([*script, "Done."], tools=(tool(broken), tool(page)), policy="wolffish", format=format, budget=Budget(200_000, 64_000),
                  summarize=lambda need: "TASK: go on")  # fmt: skip
    run.agent.run("go")
    assert run.told(DoneCard)
    outputs = results(run.sent())
    assert len(outputs[0]) >= 40_000
    assert "TRUNCATED" not in outputs[0]
    assert "TRUNCATED" in outputs[1]


@pytest.mark.parametrize(("size", "count"), [(499, 0), (500, 1)])
def test_w05_messages_under_500_characters_are_never_chosen(size, count):
    lines = ["u: go", "a: look | read(a) as c0", "t: c0 = " + "x" * size]
    lines += [line for n in range(1, 4) for line in (f"a: look | read(a) as c{n}", f"t: c{n} = ok")]
    assert len(LargestThenOldest()(view_of(talk(*lines), goal=1))) == count


def test_w05_earlier_summaries_may_be_compacted_again():
    lines = ["u: go", *[line for n in range(4) for line in (f"a: {n}", f"u: {n}")]]
    messages = list(talk(*lines).messages)
    messages.insert(2, Message("made:1", "user", (Text("s" * 5_000),), Note("summary")))
    view = view_of(Transcript(tuple(messages)), goal=1)
    assert [target.message.id for target in LargestThenOldest()(view)] == ["made:1"]


def test_w06_all_images_leave_seen_tool_results_with_one_marker_each_never_twice():
    transcript = talk("u: go", "a: x | shot() as c1 | shot() as c2", "t: c1 = one[image] | c2 = two[image]", "a: seen")
    two = transcript.messages[2].results[0]
    more = replace(two, content=(*two.content, Image("image/png", at=("content", 0, "content", 2))))
    tool = replace(transcript.messages[2], parts=(more, transcript.messages[2].parts[1]))
    view = view_of(Transcript((*transcript.messages[:2], tool, *transcript.messages[3:])), goal=1)
    once = view.after(StripImages().edits(view, ()))
    for result in once.messages[2].results:
        assert result.text.count(MARKER) == 1
        assert not any(isinstance(part, Image) for part in result.content)
    assert StripImages().edits(once, ()) == ()


def test_w06_a_result_that_carries_the_marker_already_gets_no_second_one():
    view = view_of(talk("u: go", "a: x | shot() as c1", f"t: c1 = {MARKER}[image]", "a: seen"), goal=1)
    assert shown(view.after(StripImages().edits(view, ())))[2].count(MARKER) == 1


def test_w06_pictures_that_no_model_has_seen_yet_stay():
    view = view_of(talk("u: go", "a: x | shot() as c1", "t: c1 = new[image]"), goal=1)
    assert StripImages().edits(view, ()) == ()


def test_w07_the_summary_is_made_from_the_full_originals():
    view = view_at(steps(12, size=3_000), 30_000)
    asked = Asked("short")
    plan = drive(POLICY, view, asked)
    (need,) = asked.summaries
    targets = {edit.message for edit in plan.edits if isinstance(edit, Rewrite)}
    assert targets
    originals = {message.id: message for message in view.transcript.messages}
    for message in need.messages:
        assert message == originals[message.id]
    assert targets <= {message.id for message in need.messages}
    assert "x" * 3_000 in need.text
    assert "TRUNCATED" not in need.text
    assert "x" * 3_000 not in "".join(shown(view.after(plan.edits))[1:6])


@pytest.mark.parametrize(
    ("size", "head", "tail"),
    [(1_000, 150, 80), (37_500, 5_625, 3_000), (40_000, 6_000, 3_000), (45_000, 6_000, 3_000)],
)
def test_w08_head_and_tail_are_shares_up_to_a_cap_with_a_label_between(size, head, tail):
    lines = ["u: go", "a: x | read(a) as c0", "t: c0 = " + "h" * (size // 2) + "t" * (size - size // 2)]
    lines += [line for n in range(1, 4) for line in (f"a: x | read(a) as c{n}", f"t: c{n} = ok")]
    view = view_of(talk(*lines), goal=1)
    text = view.after(Truncate().edits(view, ())).messages[2].results[0].text
    label = (
        f"[TRUNCATED — {size:,} chars original, {size - head - tail:,} chars omitted, "
        f"showing first {head:,} + last {tail:,} chars]"
    )
    assert text == "h" * head + f"\n{label}\n" + "t" * tail


def test_w08_the_document_s_example_label():
    view = view_of(steps(4, size=45_000), goal=1)
    text = view.after(Truncate().edits(view, ())).messages[2].results[0].text
    expected = "[TRUNCATED — 45,000 chars original, 36,000 chars omitted, showing first 6,000 + last 3,000 chars]"
    assert expected in text


def test_w08_an_assistant_target_loses_its_reasoning_and_keeps_its_calls():
    call = ToolCall("c0", "read", '{"path": "a"}', at=("content", 2))
    thought = Reasoning("deep thought", sealed=True, at=("content", 0))
    first = Message("m1", "assistant", (thought, Text("w" * 2_000, ("content", 1)), call))
    tool = Message("m2", "tool", (ToolResult("c0", (Text("ok"),), at=("content", 0)),))
    rest = talk("u: again", *[f"a: {n}" for n in range(3)]).messages
    view = view_of(Transcript((*talk("u: go").messages, first, tool, *rest)), goal=1)
    message = view.after(Truncate().edits(view, ())).messages[1]
    assert message.calls == (call,)
    assert not any(isinstance(part, Reasoning) for part in message.parts)
    assert "TRUNCATED" in message.parts[0].text


def reports(count, size):
    """A task in OpenAI's chat format: so many reads, each with an output of so many characters."""
    messages = [{"role": "user", "content": "Read all reports."}]
    for number in range(count):
        function = {"name": "read", "arguments": json.dumps({"path": f"r{number}"})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        output = f"{number:04}" + "word " * (size // 5)
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": output[:size]},
        ]
    return messages


def test_w08_one_compaction_cuts_an_output_of_30_000_characters_once_to_6_900():
    messages = reports(12, 30_000)
    done = refold.compact(messages, policy="wolffish", window=200_000, summarize=lambda need: "TASK: read all.")
    outputs = [message["content"] for message in done.messages if message["role"] == "tool"]
    label = "[TRUNCATED — 30,000 chars original, 23,100 chars omitted, showing first 4,500 + last 2,400 chars]"
    for old, new in zip(messages[2::2][:9], outputs[:9], strict=True):
        whole = old["content"]
        assert new == f"{whole[:4_500]}\n{label}\n{whole[-2_400:]}"
    assert outputs[9:] == [message["content"] for message in messages[-5::2]]
    cut = [edit.message for edit in done.plan.edits if isinstance(edit, Rewrite)]
    assert len(cut) == len(set(cut)) == 9


def test_w08_where_that_does_not_reach_the_target_other_texts_are_cut_and_not_the_same_again():
    words = [{"role": "assistant", "content": f"Plan {number}. " + "words " * 1_000} for number in range(6)]
    turns = [message for plan in words for message in (plan, {"role": "user", "content": "go on"})]
    messages = [*reports(12, 30_000), *turns]
    done = refold.compact(messages, policy="wolffish", window=200_000, summarize=lambda need: "TASK: read all.")
    assert done.plan.sizes.after > done.plan.sizes.goal
    outputs = [message["content"] for message in done.messages if message["role"] == "tool"]
    assert [len(output) for output in outputs] == [4_500 + 2_400 + 99] * 9 + [30_000] * 3
    plans = [str(message["content"]) for message in done.messages if str(message["content"]).startswith("Plan")]
    assert ["TRUNCATED" in plan for plan in plans] == [True] * 3 + [False] * 3  # the last three stay


def test_w08_a_second_truncation_never_nests_labels():
    view = view_of(steps(4, size=45_000), goal=1)
    once = view.after(Truncate().edits(view, ()))
    assert Truncate().edits(once, ()) == ()  # one run cuts a text once
    later = replace(once, start=tuple(once.messages), edits=())
    twice = later.after(Truncate().edits(later, ()))
    text = twice.messages[2].results[0].text
    assert text.count("TRUNCATED") == 1
    assert "45,000 chars original" in text
    assert len(text) < len(once.messages[2].results[0].text)


def test_w09_the_one_summary_call_asks_for_five_sections():
    asked = Asked("short")
    drive(POLICY, view_at(steps(12), 20_000), asked)
    (need,) = asked.summaries
    for section in ("TASK:", "PROGRESS:", "REMAINING:", "DATA:", "DECISIONS:"):
        assert f"\n{section}" in need.instructions
    assert "the task" in need.text


def test_w10_a_user_message_with_summary_and_nudge_is_appended():
    view = view_at(steps(12), 20_000)
    last = after(POLICY, view, Asked("TASK: read everything")).messages[-1]
    assert last.role == "user"
    assert last.note is not None
    assert last.note.kind == "summary"
    text = last.parts[0].text
    assert text.startswith("[Compaction Summary]\n\nTASK: read everything\n\n[Status: ")
    assert "do NOT repeat" in text


def test_w10_when_the_summary_failed_a_notice_says_so():
    view = view_at(steps(12), 20_000)
    for asked in (Asked(None), absent):
        last = after(POLICY, view, asked).messages[-1]
        assert last.role == "user"
        assert last.note == Note("notice")
        assert last.parts[0].text.startswith("[Compaction Notice: ")


def test_w10_an_earlier_summary_is_updated_and_gives_its_place_to_the_new_one():
    messages = list(steps(12).messages)
    messages.insert(3, Message("made:1", "user", (Text("[Compaction Summary]\n\nwhat was before"),), Note("summary")))
    asked = Asked("all of it")
    seen = after(POLICY, view_at(Transcript(tuple(messages)), 20_000), asked)
    assert asked.summaries[0].previous == "what was before"
    assert "what was before" not in asked.summaries[0].text
    assert [m.id for m in seen.messages if m.note] == [seen.messages[-1].id]


def test_w04_an_overflow_compacts_the_largest_whatever_the_thresholds_say():
    view = view_at(steps(20), 1_000_000, cause=Cause.OVERFLOW)
    assert view.over_goal < 0
    forced = POLICY.after_overflow
    assert forced is not None
    plan = drive(forced, view, Asked("short"))
    truncated = next(step for step in plan.steps if step.label == "truncate")
    assert truncated.after <= view.tokens * 0.51  # half is projected at 25 % kept; short texts keep a little more
    assert plan.stages_used == ("truncate", "summary")
    assert drive(POLICY, replace(view, cause=Cause.THRESHOLD), Asked("short")).empty


ALLOWANCES = {  # the document's table; GPT-5 takes no more than 272,000 tokens of input
    "deepseek-v4-pro": (1_000_000, 967_232),
    "claude-opus-4-6": (1_000_000, 1_000_000),
    "claude-opus-4-8": (1_000_000, 1_000_000),  # "4.6+"
    "claude-sonnet-4-6": (1_000_000, 1_000_000),
    "grok-4.3": (1_000_000, 934_464),
    "gpt-5": (400_000, 272_000),
    "gpt-4.1": (1_000_000, 967_232),
    "kimi-k2": (262_144, 196_608),
    "qwen3.7-max": (1_000_000, 934_464),
}


@pytest.mark.parametrize("model", ALLOWANCES)
def test_w14_the_input_budget_of_every_door_is_the_documents_window_less_its_output_reserve(model):
    window, limit = ALLOWANCES[model]
    messages = [{"role": "user", "content": "go"}]
    assert refold.check(messages, policy="wolffish", model=model).limit == limit
    settings = Settings.load({"policy": "wolffish", "model": model}, environ={})
    assert refold.check(messages, **settings.arguments()).limit == limit
    for given in (None, settings):
        decisions = []
        agent = Agent(ScriptedClient(["Done."], model=model), policy="wolffish", settings=given,
                      observers=[lambda event, into=decisions: into.append(event)])  # fmt: skip
        agent.run("go")
        assert [each.budget for each in decisions if isinstance(each, Decision)] == [limit]
        assert agent.session.context_window == window
    assert Budgets(GatewaySettings(policy="wolffish")).bound(model, None).budget == Budget(window, window - limit)


def test_w14_a_window_that_is_set_and_other_policies_follow_no_table_of_wolffish():
    messages = [{"role": "user", "content": "go"}]
    assert refold.check(messages, policy="wolffish", model="kimi-k2", window=100_000).limit == 65_000
    assert refold.check(messages, policy="refold", model="claude-opus-4-6").limit < 1_000_000
    settings = Settings.load({"policy": "wolffish", "model": "kimi-k2", "window": 100_000}, environ={})
    assert refold.check(messages, **settings.arguments()).limit == 65_000


def test_w05_targets_of_a_stage_and_of_the_policy_agree():
    view = view_at(steps(12), 20_000)
    assert {edit.message for edit in stage_edits(POLICY.steps[1].stage, view)} == {
        target.message.id for target in LargestThenOldest()(view)
    }


def test_w04_a_refusal_of_the_provider_is_compacted_and_the_call_made_again():
    messages = [{"role": "user", "content": "Read every mail"}]
    for number in range(12):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read_mail", "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": f"c{number}",
                "content": f"Mail {number}. " + "words " * 100 * (number + 1),
            },
        ]
    with ScriptedProvider(["Done"], window=6_000) as provider:
        ours = client("m", provider.openai_url)
        made = recovering(ours.complete, messages, policy="wolffish", model="m", window=200_000)
        ours.close()
    assert [received.status for received in provider.received] == [400, 200]
    assert made.reply.text == "Done"
    steps = [step for step in made.plans[0].steps if step.label == "truncate"]
    largest = made.plans[0].edits[steps[0].start]
    assert made.plans[0].cause is Cause.OVERFLOW
    assert "Mail 8." in largest.to.text  # the largest but for the protected last three


def test_w11_a_task_file_holds_2_000_characters_of_each_output_and_states_the_sizes(tmp_path):
    task = TaskFile(tmp_path, "42")
    task.add("google_gmail_search", "x" * 9_450)
    text = task.path.read_text()
    assert "### Step 1: google_gmail_search\n- **Output:** (9,450 chars) xxx" in text
    assert text.rstrip().endswith("x [7,450 chars omitted]")
    assert text.count("x") == 2_000
    assert task.path.name == "TASK-42.md"
    assert "x" * 9_450 in (tmp_path / "TASK-42-detail.log").read_text()


def test_w11_41_outputs_of_60_kb_make_a_task_file_of_under_100_kb_and_a_log_of_everything(tmp_path):
    task = TaskFile(tmp_path, "mail")
    run = Watched([calls("y" * 60_000) for _ in range(41)] + ["Done."], observers=(task,), policy="wolffish",
                  budget=Budget(10**7), max_output=100_000)  # fmt: skip
    run.agent.run("read all")
    assert task.path.stat().st_size < 100_000
    assert task.detail.stat().st_size > 41 * 60_000
    assert [stat.S_IMODE(path.stat().st_mode) for path in (task.path, task.detail)] == [0o600, 0o600]


def test_w12_a_runtime_block_ends_every_system_prompt():
    run = Watched([calls(*"abc"), calls("d"), "Done."], policy="wolffish", system="Be brief.")
    run.agent.run("go")
    systems = [received.body["messages"][0]["content"] for received in run.client.received]
    assert all(text.startswith("Be brief.\n\n<runtime>\n") and text.endswith("</runtime>") for text in systems)
    for text, step, called in zip(systems, (1, 2, 3), (0, 3, 4), strict=True):
        assert f"Tool iteration this turn: {step}\n" in text
        assert f"Tools called this turn: {called}\n" in text
        assert "EVERY item" in text
        assert "10 to 15 calls" in text


def test_w13_compaction_happens_before_each_call_of_the_model_and_nowhere_else_and_tools_run_in_order():
    run = Watched([*(calls("word " * 1_500, "b", "c") for _ in range(40)), "Done."], policy="wolffish",
                  budget=Budget(100_000, 4_000), summarize=lambda need: "TASK: go on")  # fmt: skip
    run.agent.run("go")
    kinds = (Decision, StartedCard, DoneCard, UsageReported, ToolStarted, ToolFinished)
    order = [type(event) for event in run.events if isinstance(event, kinds)]
    for place, kind in enumerate(order):
        if kind is StartedCard:
            assert order[place - 1 : place + 3] == [Decision, StartedCard, DoneCard, UsageReported]
        if kind is UsageReported and place + 1 < len(order):
            assert order[place + 1 : place + 7] == [ToolStarted, ToolFinished] * 3
    assert order.count(Decision) == order.count(UsageReported) == 41
    assert order.count(DoneCard) >= 2


def test_w15_a_card_says_that_it_is_compacting_and_one_in_its_place_what_was_done():
    ticks = iter(range(10_000))
    run = Watched([*(calls("word " * 1_500) for _ in range(18)), "Done."], policy="wolffish",
                  budget=Budget(100_000, 4_000), clock=lambda: float(next(ticks)),
                  summarize=lambda need: "TASK: go on")  # fmt: skip
    run.agent.run("go")
    started, done = run.told(StartedCard)[0], run.told(DoneCard)[0]
    assert started.messages == done.messages_before
    assert started.targets == len(done.targets) > 0
    assert done.seconds > 0
    assert done.saved == done.before - done.after > 0
    target = done.targets[0]
    assert (target.name, target.original, target.method) == ("echo", 7_500, "truncate")
    assert 0 < target.compacted < 2_000
    assert target.reduction == 1 - target.compacted / 7_500


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
def test_w15_a_card_has_one_target_for_each_tool_result_in_every_format(format):
    def page(number: int) -> str:
        return f"{number:04} " * 1_500

    replies = [ScriptedReply("", [("page", {"number": 4 * n + k}) for k in range(4)]) for n in range(5)]
    run = Watched([*replies, "Done."], policy="wolffish", format=format, tools=(tool(page),), budget=Budget(100_000, 4_000), summarize=lambda need: "TASK: go on")  # fmt: skip
    run.agent.run("go")
    (started,), (done,) = run.told(StartedCard), run.told(DoneCard)
    assert started.targets == len(done.targets) == 10
    assert {(each.name, each.original, each.method) for each in done.targets} == {("page", 7_500, "truncate")}
    assert {each.compacted for each in done.targets} == {1_725 + 95}


def test_w16_events_carry_their_figures_and_are_written_to_a_log_of_the_day(tmp_path):
    day = datetime(2026, 6, 9, 8, 30, tzinfo=UTC)
    log = DailyLog(tmp_path, system="wolffish", clock=lambda: day)
    run = Watched([*(calls("word " * 1_500) for _ in range(18)), "Done."], policy="wolffish", observers=(log,),
                  budget=Budget(100_000, 4_000), summarize=lambda need: "TASK: go on")  # fmt: skip
    run.agent.run("go")
    text = (tmp_path / "2026-06-09.log.md").read_text()
    started, done = run.told(StartedCard)[0], run.told(DoneCard)[0]
    wanted = {"messagesCount": started.messages, "force": False}
    assert f"- 08:30:00 compaction.started {json.dumps(wanted)}\n" in text
    wanted = {"tokensSaved": done.saved, "targetsCount": len(done.targets)}
    assert f"- 08:30:00 compaction.applied {json.dumps(wanted)}\n" in text
    assert "word word" not in text


def test_w16_the_events_pair_and_say_force_where_a_refusal_of_the_provider_demands_it(tmp_path):
    day = datetime(2026, 6, 9, 8, 30, tzinfo=UTC)
    log = DailyLog(tmp_path, system="wolffish", clock=lambda: day)
    run = Watched([*(calls("word " * 1_500) for _ in range(12)), "Done."], policy="wolffish", observers=(log,),
                  window=14_000, budget=Budget(400_000, 1_000), summarize=lambda need: "TASK: go on")  # fmt: skip
    run.agent.run("go")
    assert [received.status for received in run.client.received].count(400) >= 1
    lines = (tmp_path / "2026-06-09.log.md").read_text().splitlines()
    events = [line.split(" ", 2)[2] for line in lines if " compaction." in line]
    assert len(events) >= 2
    for started, applied in zip(events[::2], events[1::2], strict=True):
        assert started.startswith("compaction.started ")
        assert applied.startswith("compaction.applied ")
    assert events[0].endswith('"force": true}')  # and the later ones know the window


def test_w17_the_decision_line_shows_what_decided_and_decides_by_the_rule():
    # the document's own sample says false, against its rule: 839,203 are above 725,424
    decision = Decision(839_203, 541_090, 839_203, 967_232, 725_424, 52, 26_000, 17_334, 47, False, True)
    assert decision.line == (
        "[compactor] charEstimate=839203 lastKnown=541090 effective=839203 budget=967232 threshold=725424 (75%) "
        "messages=52 sysChars=26000 tools=47 force=false needsCompaction=true"
    )


def test_w17_each_check_is_a_line_and_each_step_a_snapshot(tmp_path):
    run = Watched([calls("a"), "Done."], policy="wolffish", system="s" * 300, observers=(Snapshots(tmp_path),))
    run.agent.run("go")
    first, second = run.told(Decision)
    assert (first.last_known, second.last_known) == (None, run.client.received[0].tokens)
    assert first.effective == first.estimate
    assert second.effective == max(second.estimate, second.last_known)
    assert (first.messages, second.messages, first.tools) == (1, 3, 2)
    assert first.threshold == 72_000  # 75 % of 96,000
    body = json.loads((tmp_path / "turn-0001-step-002.json").read_text())
    assert body["tokenBudget"] == 96_000
    assert body["tokenCount"] == second.system_tokens == POLICY.counter.text("s" * second.system_chars)


def test_w18_the_session_keeps_everything_and_a_reload_starts_from_the_full_content():
    store = MemoryStore()
    session = Session(store, "mail", in_flight=True)
    run = Watched([*(calls("word " * 1_500) for _ in range(18)), "Done."], policy="wolffish", session=session,
                  budget=Budget(100_000, 4_000), summarize=lambda need: "TASK: go on")  # fmt: skip
    run.agent.run("go")
    assert run.agent.plans
    reloaded = Session(store, "mail")
    assert reloaded.plans == ()
    assert reloaded.view() == reloaded.messages == run.agent.originals
    assert results(reloaded.view()) == ["word " * 1_500] * 18
    before = len(run.told(DoneCard))
    run.agent.run("and again")
    assert len(run.told(DoneCard)) == before + 1  # it was compacted from scratch


W19_BUDGET = 967_232


def mail_run(provider, wire):
    box, events = Mailbox(), []
    base = provider.url if wire == "anthropic" else provider.openai_url
    model = client("scripted", base, "key", wire)
    defined = [each["function"] for each in box.tools]
    tools = [
        Tool(each["name"], each["description"], each["parameters"], getattr(box, each["name"])) for each in defined
    ]
    agent = Agent(model, policy="wolffish", tools=tools, system=box.system, budget=Budget(1_000_000, 32_768),
                  summarize=model_summarizer(model, window=1_000_000), observers=[events.append])  # fmt: skip
    return box, agent, events


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_w19_the_task_of_41_e_mails_is_done_with_two_compactions_and_no_overflow(wire):
    with ScriptedProvider(behave=MailAgent(), window=W19_BUDGET, output_apart=True) as provider:
        box, agent, events = mail_run(provider, wire)
        answer = agent.run(box.task)
        agent.close()
    assert answer == "Briefing: 41 of 41 messages are read."
    assert box.unread == ()
    assert len(box.read) == 41  # none was read twice
    batches = [len(received.messages[-1].results) for received in provider.received if received.tools]
    assert {received.status for received in provider.received} == {200}
    cards = [event for event in events if isinstance(event, DoneCard)]
    assert len(cards) == 2
    assert all(card.after <= 0.5 * W19_BUDGET for card in cards)
    assert all(event.effective <= W19_BUDGET for event in events if isinstance(event, Decision))
    assert len(batches) == 5  # a search, three batches, the briefing


def test_w19_the_task_ends_so_where_the_provider_counts_every_character_as_a_token():
    trial = tried("wolffish", 1_000_000, 32_768, CharCounter(1))  # docs/replay.md has all policies and 2.7 and 4
    assert (trial.read, trial.reads, trial.failed) == (41, 41, "")
    assert (trial.refusals, trial.compactions) == (0, 2)
    assert trial.after <= 0.5  # by the policy's own count
    assert trial.highest <= W19_BUDGET


def test_w09_a_record_above_the_summarizer_s_window_is_summarized_in_parts_with_five_waits_of_retries():
    waits = []
    failing = dict.fromkeys(range(1, 6), "server_error")
    with ScriptedProvider(["TASK: all was said."], window=3_000, faults=failing) as provider:
        ours = client("m", provider.openai_url)
        ask = retrying(model_summarizer(ours, window=3_000), sleep=waits.append)
        transcript = talk(*[f"{role}: part {n} " + "words " * 300 for n in range(8) for role in "ua"])
        need = SummaryNeed(
            transcript.messages, serialize(transcript.messages), "wolffish_summary", "Summarize.", max_tokens=400
        )
        answer = Handlers(summarize=ask).answer(need)
        ours.close()
    assert answer == Provided(text="TASK: all was said.")
    assert waits == [1, 2, 4, 8, 16]
    served = [received for received in provider.received if received.status == 200]
    assert all(received.tokens <= 3_000 for received in served)
    told = [received.messages[-1].parts[0].text for received in served]
    assert all(any(f"part {n} words" in text for text in told) for n in range(8))
    assert told[-1].count("all was said") == 2  # the last call merges two halves


def page(number: int) -> str:
    return f"{number:04} " * 1_500


PAGES = [ScriptedReply("", [("page", {"number": number})]) for number in range(16)]


@pytest.mark.parametrize("failures", [5, 6])
def test_w09_a_summarizer_of_an_agent_is_asked_again_after_1_2_4_8_and_16_seconds(failures):
    asked = []

    def summarize(need):
        asked.append(need)
        if len(asked) <= failures:
            raise ConnectionError("not now")
        return "TASK: go on"

    run = Watched([*PAGES, "Done."], policy="wolffish", tools=(tool(page),), budget=Budget(100_000, 4_000),
                  summarize=summarize)  # fmt: skip
    run.agent.run("read all")
    assert run.slept == [1, 2, 4, 8, 16]
    assert len(asked) == 6
    last = str(run.sent())
    assert ("[Compaction Summary]" in last) is (failures == 5)
    assert ("[Compaction Notice: " in last) is (failures == 6)


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
def test_w09_an_agent_without_a_summarizer_asks_its_own_model(format):
    parts = ("TASK: Read all pages.", "PROGRESS: The first pages were read.", "REMAINING: Those that were not read.",
             "DATA: " + " ".join(f"Page {number} holds its number." for number in range(16)), "DECISIONS: None.")  # fmt: skip
    headings = "\n".join(parts)

    def behave(received):
        if not received.tools:
            return headings
        return PAGES[pages_read] if (pages_read := len(run.agent.originals) // 2) < len(PAGES) else "Done."

    run = Watched(behave=behave, policy="wolffish", tools=(tool(page),), budget=Budget(100_000, 4_000), own_model=True,
                  format=format)  # fmt: skip
    assert run.agent.run("read all") == "Done."
    (summary,) = (received for received in run.client.received if not received.tools)
    assert "DECISIONS" in str(summary.body)
    assert page(0).strip() in str(summary.body).replace("\\n", "")
    assert all(part in str(run.sent()) for part in ("[Compaction Summary]", *parts))
    off = Settings.load({"enable_summarization": False}, environ={})
    quiet = Watched([*PAGES, "Done."], policy="wolffish", tools=(tool(page),), budget=Budget(100_000, 4_000),
                    settings=off)  # fmt: skip
    quiet.agent.run("read all")
    assert all(received.tools for received in quiet.client.received)
    assert "[Compaction Notice: " in str(quiet.sent())


def test_w18_in_flight_only_the_stored_conversation_keeps_everything_and_a_reload_starts_from_it():
    store = MemoryStore()
    session = Session(store, "here", format="openai-chat", policy="wolffish", window=10_000, in_flight=True)
    session.append(
        [{"role": "user", "content": "go"}, *({"role": "assistant", "content": "word " * 200} for _ in range(30))]
    )
    assert session.compact(force=True).compacted
    assert session.check().tokens < 8_000
    assert session.view() != session.messages
    again = Session(store, "here", policy="wolffish", window=10_000)
    assert again.view() == session.messages
    assert again.plans == ()


def test_w11_after_a_compaction_the_system_prompt_names_the_task_file_which_the_model_can_read_back(tmp_path):
    tasks = TaskFiles(tmp_path)
    run = Watched([*(calls("word " * 1_500) for _ in range(18)), "Done.", "Again."], policy="wolffish",
                  budget=Budget(100_000, 4_000), system="Be brief.", task_files=tasks,
                  summarize=lambda need: "TASK: go on")  # fmt: skip
    run.agent.run("go")
    systems = [received.body["messages"][0]["content"] for received in run.client.received]
    assert "<memory>" not in systems[0]
    assert systems[-1].startswith(f"Be brief.\n\n<memory>\n  The tool outputs of this task are stored in {tasks.path}:")
    assert "\n  Step 12: echo, 7,500 characters\n" in systems[-1]
    assert systems[-1].endswith("</runtime>")
    assert len({system.partition("<runtime>")[0] for system in systems}) == 1 + len(run.told(DoneCard))
    assert tasks.path.read_text().count("### Step ") == 18
    run.agent.run("and now?")
    assert "<memory>" not in run.client.received[-1].body["messages"][0]["content"]  # W18: all originals are back


def test_w02_a_check_is_due_above_75_percent_and_a_compaction_goes_down_to_50():
    messages = [{"role": "user", "content": "go"}]
    base = refold.check(messages, policy="wolffish", budget=100_000, counter="policy")

    def filled(tokens):
        system = "x" * ((tokens - base.tokens) * 3 // 2)
        return refold.check(messages, policy="wolffish", window=100_000, max_output=0, system=system)

    assert [(filled(tokens).tokens, filled(tokens).due) for tokens in (75_000, 75_002)] == [
        (75_000, False),
        (75_002, True),
    ]
    done = refold.compact(
        reports(40, 3_000), policy="wolffish", window=100_000, max_output=0, summarize=lambda need: "go"
    )
    assert done.plan.sizes.before > 75_000
    assert done.plan.sizes.after <= 51_000  # half, and the summary


@pytest.mark.parametrize(("reported", "larger"), [(50_000, True), (100, False)])
def test_w03_a_check_takes_the_larger_of_estimate_and_report(reported, larger):
    messages = reports(5, 3_000)
    estimate = refold.check(messages, policy="wolffish", window=100_000).tokens
    usage = refold.Usage(reported, covers=len(messages))
    assert refold.check(messages, policy="wolffish", window=100_000, usage=usage).tokens == (
        reported if larger else estimate
    )
    assert 10_000 < estimate < 50_000


def test_w05_a_compaction_takes_the_largest_outputs_and_leaves_what_is_protected():
    messages = reports(10, 2_000)
    messages[4]["content"] = "m" * 9_000
    messages[6]["content"] = "l" * 20_000
    messages[8]["content"] = "s" * 499
    done = refold.compact(messages, policy="wolffish", window=26_000, max_output=0, force=True, goal=20_000,
                          summarize=lambda need: "go")  # fmt: skip
    changed = [place for place, message in enumerate(messages) if done.messages[place] is not message]
    assert changed == [6]  # it alone covers the excess
    done = refold.compact(messages, policy="wolffish", window=26_000, max_output=0, force=True, goal=refold.Exactly(1),
                          summarize=lambda need: "go")  # fmt: skip
    kept = [place for place, message in enumerate(messages) if done.messages[place] is message]
    assert {0, 8, 16, 18, 20} <= set(kept)  # the task, a short text, the last three


def test_w06_images_of_seen_results_become_one_marker_each_in_what_is_sent():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
    messages = [{"role": "user", "content": "go"}]
    for number in range(6):
        call = {"type": "tool_use", "id": f"t{number}", "name": "shot", "input": {}}
        result = {
            "type": "tool_result",
            "tool_use_id": f"t{number}",
            "content": [{"type": "text", "text": "w " * 3_000}, image, image],
        }
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]

    def compacted(given):
        return refold.compact(given, policy="wolffish", window=30_000, max_output=0, force=True,
                              summarize=lambda need: "go").messages  # fmt: skip

    once = compacted(messages)
    results_ = [message["content"][0]["content"] for message in once[2:13:2]]
    assert [str(content).count(MARKER) for content in results_] == [1, 1, 1, 1, 1, 0]
    assert ["image" in [block["type"] for block in content] for content in results_] == [False] * 5 + [True]  # unseen
    twice = compacted([*once, {"role": "assistant", "content": "seen"}])
    assert str(twice[2:13:2]).count(MARKER) == 6


def test_w07_the_summarizer_of_a_compaction_gets_the_full_originals():
    needs = []
    messages = reports(12, 30_000)
    done = refold.compact(messages, policy="wolffish", window=10_000_000, max_output=0, force=True, goal=100_000,
                          summarize=lambda need: needs.append(need) or "TASK: go")  # fmt: skip
    (need,) = needs
    cut = [message["content"] for place, message in enumerate(messages) if done.messages[place] is not message]
    assert len(cut) == 9
    assert all(content in need.text for content in cut)
    assert "TRUNCATED" not in need.text


@pytest.mark.parametrize(
    ("summarize", "opening"), [(lambda need: "TASK: go", "[Compaction Summary]"), (None, "[Compaction Notice: ")]
)
def test_w10_the_last_message_sent_is_the_summary_with_a_nudge_or_a_notice(summarize, opening):
    done = refold.compact(reports(12, 30_000), policy="wolffish", window=200_000, summarize=summarize)
    last = done.messages[-1]
    assert last["role"] == "user"
    assert last["content"].startswith(opening)
    assert "final answer before ALL steps" in last["content"]
