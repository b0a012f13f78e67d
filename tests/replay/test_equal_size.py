import json

import pytest

from refold import policies
from refold.core.budget import Never
from refold.core.policy import Policy, Step
from refold.replay._equal_size import SMALLEST, label, limits, places_of, results_at_sizes
from refold.replay._repeated_compaction import Cycles, cycles, planted, planting
from refold.replay._timeline import timeline
from refold.stages.slide import Slide
from refold.transcripts import RecordedConversation

SIZES = (0.1, 0.25, 4_000)


def turn(number, rows=30):
    used = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": f"src/part_{number}.py"}}
    shown = "\n".join(f"line {line} of part_{number} calls helper_{number}_{line}(value)" for line in range(rows))
    before = f"As helper_{number - 9}_7 did, part {number} is fine." if number > 9 else "Fine."
    return [
        {"role": "user", "content": f"Look at part {number}. Never touch vault_{number}."},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": shown}]},
        {"role": "assistant", "content": before},
    ]


def line(turns=40, rows=30):
    return timeline(
        RecordedConversation("plain", "anthropic", [message for n in range(turns) for message in turn(n, rows)])
    )


def chat(turns=40, rows=40):
    call = {"type": "function", "function": {"name": "read", "arguments": json.dumps({"path": "a.py"})}}
    messages = [{"role": "system", "content": "Be brief. " * 400}]
    for number in range(turns):
        shown = "\n".join(f"row_{number}_{row} = {row}" for row in range(rows))
        messages += [
            {"role": "user", "content": f"Step {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call | {"id": f"c{number}"}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": shown},
            {"role": "assistant", "content": f"row_{max(number - 5, 0)}_3 it is."},
        ]
    return timeline(RecordedConversation("plain", "openai-chat", messages))


def test_a_conversation_is_cut_before_answers_and_sizes_that_ask_nothing_are_left_out():
    found = places_of(line(), (*SIZES, 10_000_000, 0.001))
    assert len(found) == 3
    for place in found:
        assert [name for name, _ in place.sizes] == ["10%", "25%", "4k"]
        assert place.cut.needed
    assert places_of(line(2), SIZES) == ()


@pytest.mark.parametrize("name", policies.names())
def test_what_a_policy_holds_fits_the_size_and_breaks_no_rule(name):
    talk = line()
    found = results_at_sizes(talk, policies.find(name), places_of(talk, (0.25,)))
    assert len(found) == 3
    for each in found:
        assert each.quality is not None
        assert 0 < each.used <= 1
        assert each.quality.valid == 1
        assert each.quality.recall + each.quality.lost <= 1.0001
        assert each.quality.recall <= each.quality.recoverable


def test_no_policy_is_above_the_certified_bound():
    talk = line()
    places = places_of(talk, SIZES)
    most = {(each.cut, each.size): each.bounds for each in limits(places)}
    for each in results_at_sizes(talk, policies.find("refold"), places):
        bounds = most[each.cut, each.size]
        assert each.quality.recall <= bounds.certified + 0.02
        assert bounds.random <= bounds.certified >= bounds.oracle >= bounds.recency


def test_system_messages_come_on_top_of_every_size():
    talk = chat()
    places = places_of(talk, (0.10,))
    assert places[0].fixed > 500
    assert places[0].sizes[0][1] < SMALLEST * 4
    assert all(each.quality for each in results_at_sizes(talk, policies.find("refold"), places))


def test_a_size_that_a_policy_cannot_reach_is_told_and_not_judged():
    talk = timeline(
        RecordedConversation("plain", "anthropic", [
            {"role": "user", "content": " ".join(f"Never touch vault_{number} of main_ledger." for number in range(900))},
            *[message for number in range(1, 12) for message in turn(number)],
        ])
    )  # fmt: skip
    found = results_at_sizes(talk, policies.find("refold"), places_of(talk, (0.1,)))
    assert found
    assert {each.quality for each in found} == {None}


def test_sizes_have_short_names():
    assert [label(size) for size in (0.1, 0.125, 15_000, 1_500, 800)] == ["10%", "12.5%", "15k", "1.5k", "800"]


@pytest.mark.parametrize("talk", [line(rows=90), chat(rows=180)], ids=["anthropic", "openai-chat"])
def test_planted_instructions_stand_before_the_first_compaction_and_break_no_rule(talk):
    found = planted(talk)
    messages = found.line.transcript.messages
    said = [text for message in messages[: found.ends[0]] for text in map(str, message.parts)]
    for rule in planting().rules:
        assert any(rule in text for text in said)
    attacks = [place for place, message in enumerate(messages) if planting().attack in str(message.parts)]
    assert len(attacks) == 1
    assert found.ends[0] <= attacks[0] < found.ends[1]
    assert messages[attacks[0]].role == "tool"
    for rule in found.line.format.rules:
        assert rule.broken(messages) == ()
    assert len(messages) == len(talk.transcript.messages) + len(planting().rules)


def test_refold_keeps_every_planted_instruction_over_five_compactions_with_an_attack():
    found = cycles(planted(line(rows=90)), policies.find("refold"))
    assert found.planted == (1.0,) * 5
    assert found.own == 1.0
    assert found.last >= 0.98 * found.once
    assert (found.broken, found.attacked) == (0, True)


def test_a_policy_that_only_lets_the_oldest_go_loses_planted_instructions():
    slide = Slide("[older messages were left out]", 0, first=0, skip_at=2, to_goal=True)
    found = cycles(planted(line(rows=90)), Policy("slide", (Step(slide),), trigger=Never()))
    assert found.planted[0] > found.planted[-1] == 0


def test_five_compactions_end_the_same_every_time():
    one, two = (cycles(planted(line(rows=90)), policies.find("opal")) for _ in range(2))
    assert one == two != Cycles()


def test_a_conversation_too_short_for_five_compactions_is_left_out():
    assert planted(line(2)) is None
    assert planted(timeline(RecordedConversation("plain", "anthropic", turn(0)[:1]))) is None


def test_a_conversation_without_tools_has_no_attack():
    words = [
        {"role": role, "content": f"{role} {number} " + f"word_{number} " * 400}
        for number in range(24)
        for role in ("user", "assistant")
    ]
    found = planted(timeline(RecordedConversation("plain", "anthropic", words)))
    assert not found.attacked
    assert cycles(found, policies.find("refold")).planted[-1] == 1
