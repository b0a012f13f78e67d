import json

import pytest
from msgspec.structs import replace

import refold
from refold import policies
from refold._compaction.options import Options
from refold.core.budget import Exactly, Never, Usage
from refold.core.policy import Policy, Step
from refold.errors import BadBudget
from refold.replay._quality import cuts_of
from refold.replay._run import NONE, replayed
from refold.replay._timeline import timeline
from refold.replay._timestamps import Stamp
from refold.replay.cost import simulated
from refold.replay.pricing import CallTokens, UserPrices, tariff_for
from refold.stages.slide import Slide
from refold.transcripts import RecordedConversation, RecordedUsage

OPUS = "claude-opus-4-5"
TARIFF = tariff_for(OPUS)


def turn(number, lines=60):
    used = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": f"src/part_{number}.py"}}
    shown = "\n".join(f"line {line} of part_{number} calls helper_{number}_{line}(value)" for line in range(lines))
    return [
        {"role": "user", "content": f"Look at part {number}."},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": shown}]},
        {"role": "assistant", "content": f"Part {number} is fine."},
    ]


def talk(turns=30, reminds=None):
    messages = [message for number in range(turns) for message in turn(number)]
    if reminds:
        messages += [{"role": "user", "content": "And?"}, {"role": "assistant", "content": reminds}]
    return messages


def recorded(messages=None, usage=(), boundaries=(), **fields):
    given = talk() if messages is None else messages
    return RecordedConversation(
        "plain", "anthropic", given, model=OPUS, usage=tuple(usage), boundaries=boundaries, **fields
    )


def reports(messages, scale=1.0, fixed=5_000):
    """Usage as a provider would give it: its own count, `scale` times ours, on top of a fixed part."""
    found = []
    before = 0
    for covers in range(1, len(messages), 2):
        prompt = fixed + round(refold.count(messages[:covers], model=OPUS, format="anthropic") * scale)
        found.append(RecordedUsage(covers, prompt, 50, before, prompt - before))
        before = prompt
    return found


def run(line, name=None, window=20_000, **given):
    policy = policies.find(name) if isinstance(name, str) else name
    return replayed(line, policy, TARIFF, Options(window=window, model=OPUS), **given)


def test_the_prompts_of_a_replay_without_compaction_are_those_the_provider_reported():
    messages = talk()
    usage = reports(messages, scale=1.3)
    made = run(timeline(recorded(messages, usage)), window=200_000)
    assert len(made.context) == len(usage)
    assert max(abs(one - each.prompt) for one, each in zip(made.context, usage, strict=True)) <= len(messages)


def test_a_replay_without_compaction_costs_what_the_simulated_past_costs():
    messages = talk()
    found = recorded(messages, reports(messages))
    told = [Stamp(float(number * (400 if number > 20 else 10))) for number in range(len(found.usage))]
    past = sum(call.spent.dollars for call in simulated(found, TARIFF, told))
    assert run(timeline(found, told), window=200_000).spent.dollars == pytest.approx(past, rel=0.005)


def test_calls_are_the_answers_where_the_file_reports_no_usage():
    line = timeline(recorded())
    assert [beat.covers for beat in line.beats] == list(range(1, 120, 2))
    assert run(line, window=200_000).context[-1] == pytest.approx(
        refold.count(talk()[:-1], model=OPUS, format="anthropic"), rel=0.01
    )


@pytest.mark.parametrize("name", policies.names())
def test_every_policy_compacts_breaks_no_rule_and_is_the_same_every_time(name):
    line = timeline(recorded(talk(80)))
    one, two = (run(line, name, window=40_000, cuts=cuts_of(line)) for _ in range(2))
    assert one == two
    assert one.policy == name
    assert one.broken == 0
    assert one.compactions
    assert one.peak <= run(line, window=40_000).peak
    assert sum(each.after for each in one.compactions) < sum(each.before for each in one.compactions)


def test_the_first_compaction_is_where_the_policy_compacts_the_same_messages():
    messages = talk(80)
    line = timeline(recorded(messages))
    first = run(line, "refold", window=40_000).compactions[0]
    covers = line.beats[first.call].covers
    due = [
        refold.check(
            messages[: line.beats[call].covers], policy="refold", window=40_000, model=OPUS, format="anthropic"
        )
        for call in (first.call - 1, first.call)
    ]
    assert [each.due for each in due] == [False, True]
    before = line.beats[first.call - 1]
    told = Usage(run(line, window=40_000).context[first.call - 1], before.output, covers=before.covers)
    made = refold.compact(messages[:covers], policy="refold", window=40_000, model=OPUS, format="anthropic", usage=told)
    assert first.after == pytest.approx(refold.count(made.messages, model=OPUS, format="anthropic"), rel=0.01)


def test_a_policy_that_never_fires_costs_what_doing_nothing_costs():
    line = timeline(recorded())
    never = run(line, Policy("never", (Step(Slide("cut")),), trigger=Never()), window=200_000)
    nothing = run(line, window=200_000)
    assert (never.context, never.spent, never.bill) == (nothing.context, nothing.spent, nothing.bill)
    assert (never.policy, nothing.policy) == ("never", NONE)


def test_what_left_the_view_and_is_written_again_has_to_be_read_again():
    plain = run(timeline(recorded(talk())), "wolffish", window=12_000)
    reminded = run(timeline(recorded(talk(reminds="Rename helper_0_55 and helper_1_55."))), "wolffish", window=12_000)
    assert reminded.compactions
    assert reminded.refetches == plain.refetches + 1
    assert reminded.refetch > plain.refetch
    assert reminded.bill == pytest.approx(reminded.spent.dollars + reminded.summary + reminded.refetch)


def test_a_summary_is_charged_as_a_call_that_reads_all_it_covers():
    line = timeline(recorded(talk(40)))
    asked = run(line, "opal", window=12_000)
    assert 0 < asked.summaries <= 2 * len(asked.compactions)
    least = asked.summaries * TARIFF.spent(CallTokens(1_000)).dollars
    assert least < asked.summary < asked.spent.dollars
    assert asked.dollars[-1] == pytest.approx(asked.bill, abs=1e-5)
    never = run(line, "refold", window=12_000)
    assert (never.summaries, never.summary) == (0, 0.0)


def test_a_prompt_above_the_step_of_a_tariff_costs_more():
    messages = talk(40)
    line = timeline(recorded(messages, reports(messages)))
    cheap = replayed(line, None, TARIFF, Options(window=500_000, model=OPUS))
    stepped = replace(TARIFF, rules=replace(TARIFF.rules, above=30_000, input_above=2.0, output_above=1.5))
    dear = replayed(line, None, stepped, Options(window=500_000, model=OPUS))
    assert dear.context == cheap.context
    above = [number for number, prompt in enumerate(cheap.context) if prompt > 30_000]
    assert 0 < above[0] < len(cheap.context)
    assert dear.dollars[: above[0]] == cheap.dollars[: above[0]]
    rest = cheap.dollars[-1] - cheap.dollars[above[0] - 1]
    assert 1.5 * rest < dear.dollars[-1] - dear.dollars[above[0] - 1] < 2 * rest


def test_what_a_tool_shows_again_does_not_have_to_be_read_again():
    again = {"type": "tool_use", "id": "again", "name": "Read", "input": {"file_path": "x"}}
    shown = {"type": "tool_result", "tool_use_id": "again", "content": "helper_0_55"}
    messages = [
        *talk(),
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": [again]},
        {"role": "user", "content": [shown]},
        {"role": "assistant", "content": "Rename helper_0_55."},
    ]
    assert run(timeline(recorded(messages)), "wolffish", window=12_000).refetches == (
        run(timeline(recorded(messages[:-1])), "wolffish", window=12_000).refetches
    )


def test_text_that_was_cached_and_is_written_again_is_damage_unless_it_had_expired():
    messages = talk(80)
    usage = reports(messages)
    quick = [Stamp(float(number)) for number in range(len(usage))]
    slow = [Stamp(1_000.0 * number) for number in range(len(usage))]
    warm, cold = (run(timeline(recorded(messages, usage), told), "neurolink", window=40_000) for told in (quick, slow))
    assert warm.damage > 0
    assert cold.compactions
    assert cold.damage == 0
    assert cold.tokens.read == 0


def test_calls_above_the_window_are_counted():
    made = run(timeline(recorded()), window=10_000)
    assert made.over == sum(prompt > 10_000 for prompt in made.context) > 0


def test_a_fixed_part_above_the_budget_is_refused():
    messages = talk(3)
    with pytest.raises(BadBudget, match="larger window"):
        run(timeline(recorded(messages, reports(messages, fixed=30_000))), "refold", window=20_000)


def test_a_budget_is_kept_and_a_trigger_of_tokens_fires():
    line = timeline(recorded())
    made = replayed(line, policies.find("refold"), TARIFF, Options(budget=9_000, model=OPUS))
    assert made.compactions[0].after <= 9_000
    assert made.over == sum(prompt > 9_000 for prompt in made.context)
    early = policies.find("opal")
    early = Policy("early", early.steps, trigger=Exactly(4_000), goal=early.goal)
    assert run(line, early).compactions[0].before > 4_000


def test_a_view_that_lost_nothing_is_judged_whole_and_a_compacted_one_is_not():
    messages = talk(40)
    for number in range(20, 40):
        messages[number * 4 + 3] = {
            "role": "assistant",
            "content": f"As helper_{number - 20}_55 did, part {number} is.",
        }
    line = timeline(recorded(messages))
    cuts = cuts_of(line)
    assert cuts
    whole, cut = (run(line, name, window=12_000, cuts=cuts) for name in (None, "wolffish"))
    assert {each.recall for each in whole.quality} == {1.0}
    assert min(each.recall for each in cut.quality) < 1.0
    assert {each.call for each in whole.quality} == {each.call for each in cut.quality}


def test_other_formats_are_replayed_too():
    asked = {"id": "c", "type": "function", "function": {"name": "read", "arguments": json.dumps({"path": "a.py"})}}
    messages = [
        message
        for number in range(40)
        for message in (
            {"role": "user", "content": f"Step {number}"},
            {"role": "assistant", "content": None, "tool_calls": [asked | {"id": f"c{number}"}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"word_{number} " * 300},
        )
    ]
    line = timeline(RecordedConversation("plain", "openai-chat", messages, model="gpt-5.5"))
    tariff = tariff_for("gpt-5.5", UserPrices(input=1.0))
    made = replayed(line, policies.find("opal"), tariff, Options(window=20_000, model="gpt-5.5"))
    assert made.compactions
    assert made.broken == 0
    assert made.tokens.written == 0
