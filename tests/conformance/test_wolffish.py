"""Wolffish (seed 000): one test a row of its behaviour, with the document's own numbers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import refold
from refold.core.budget import Budget, Share, Usage
from refold.core.counting import CharCounter
from refold.core.edits import Rewrite
from refold.core.engine import due
from refold.core.gauge import HigherOf
from refold.core.messages import Image, Message, Note, Reasoning, Text, ToolCall, ToolResult
from refold.core.transcript import Transcript
from refold.core.view import Cause
from refold.limits.models import wolffish_allowance
from refold.outside.clients import client
from refold.policies import find
from refold.recovery import recovering
from refold.stages.choose import LargestThenOldest
from refold.stages.strip_images import StripImages
from refold.stages.truncate import Truncate
from refold.testing import talk, view_of
from refold.testing.provider import ScriptedProvider
from tests.conformance.drive import Asked, absent, after, drive, shown, stage_edits

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
    assert POLICY.gauge.measure(estimate, 0, Usage(reported)) == expected
    assert POLICY.gauge.measure(estimate, 0, None) == estimate


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


def test_w08_a_second_truncation_never_nests_labels():
    view = view_of(steps(4, size=45_000), goal=1)
    once = view.after(Truncate().edits(view, ()))
    twice = once.after(Truncate().edits(once, ()))
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
    assert view.excess < 0
    forced = POLICY.after_overflow
    assert forced is not None
    plan = drive(forced, view, Asked("short"))
    truncated = next(step for step in plan.steps if step.label == "truncate")
    assert truncated.after <= view.tokens * 0.51  # half is projected at 25 % kept; short texts keep a little more
    assert plan.stages_used == ("truncate", "summary")
    assert drive(POLICY, replace(view, cause=Cause.THRESHOLD), Asked("short")).empty


@pytest.mark.parametrize(
    ("model", "window", "reserve", "budget"),
    [
        ("deepseek-v4-pro", 1_000_000, 32_768, 967_232),
        ("claude-opus-4-6", 1_000_000, 0, 1_000_000),
        ("claude-sonnet-4-6", 1_000_000, 0, 1_000_000),
        ("grok-4.3", 1_000_000, 65_536, 934_464),
        ("gpt-5", 400_000, 65_536, 334_464),
        ("gpt-4.1", 1_000_000, 32_768, 967_232),
        ("kimi-k2", 262_144, 65_536, 196_608),
        ("qwen3.7-max", 1_000_000, 65_536, 934_464),
    ],
)
def test_w14_the_input_budget_is_the_window_less_the_output_reserve(model, window, reserve, budget):
    found = wolffish_allowance(model)
    assert found is not None
    assert (found.window, found.reserve, found.input) == (window, reserve, budget)
    assert Budget(window, reserve).input == budget


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
