import pytest
from msgspec.structs import replace

import refold
from refold._rules.pairing import GroupPairing, IdPairing
from refold.core.edits import Hide, Insert, Rewrite
from refold.core.messages import (
    Message,
    MessageId,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    texts,
)
from refold.core.transcript import Transcript
from refold.core.view import FormatTraits
from refold.stages.close_calls import CloseCalls
from refold.testing import talk, view_of

RESULT = "[Tool result unavailable - conversation was compacted]"  # N16
TOGETHER = FormatTraits(results_together=True, system_in_list=False, assistant_last=False, alternates=True)
SHAPES = [(GroupPairing(), FormatTraits()), (GroupPairing(together=True), TOGETHER), (IdPairing(), FormatTraits())]


def closed(stage, transcript, rule=None, traits=None):
    rule = rule or GroupPairing()
    view = view_of(transcript, rules=(rule,), traits=traits)
    edits = stage.edits(view, ())
    after = view.after(edits)
    assert rule.broken(after.messages) == ()
    assert stage.edits(after, ()) == ()
    return after.messages, edits


def said(messages):
    return [f"{message.role}: {' | '.join(texts(message))}" for message in messages]


@pytest.mark.parametrize(("rule", "traits"), SHAPES)
def test_a_whole_conversation_is_left_alone(rule, traits):
    transcript = talk("u: go", "a:  | read(a) as c1 | read(b) as c2", "t: c2 = B | c1 = A", "a: ok")
    assert closed(CloseCalls(), transcript, rule, traits)[1] == ()


@pytest.mark.parametrize(("rule", "traits"), SHAPES)
def test_a_call_without_result_gets_a_marked_one_right_after_it(rule, traits):
    messages, edits = closed(CloseCalls(), talk("u: go", "a: hm | read(a) as c1", "u: never mind"), rule, traits)
    assert said(messages) == ["user: go", 'assistant: hm | {"path": "a"}', f"tool: {RESULT}", "user: never mind"]
    assert messages[2].note is not None
    assert messages[2].note.kind == "synthetic"
    assert len(edits) == 1


def test_the_markers_are_parameters_and_name_the_tool():
    stage = CloseCalls(result="none", call="asked {tool}")
    messages, _ = closed(stage, talk("u: go", "a:  | read(a) as c1", "u: so", "t: c9 = lost"))
    assert said(messages)[2] == "tool: none"
    assert said(messages)[4:] == ["assistant: asked unknown_tool | {}", "tool: lost"]


def test_a_missing_result_joins_the_message_of_the_others_where_they_share_one():
    parts = (ToolResult("c1", (Text("A"),), at=("content", 0)), Text("go on", at=("content", 1)))
    calls = (ToolCall("c1", "read", at=("content", 0)), ToolCall("c2", "read", at=("content", 1)))
    transcript = Transcript(
        (
            Message(MessageId("a"), "assistant", calls, native={"role": "assistant"}),
            Message(MessageId("b"), "user", parts, native={"role": "user"}),
            Message(MessageId("c"), "assistant", (Text("ok"),), native={"role": "assistant"}),
        )
    )
    _, edits = closed(CloseCalls(), transcript, GroupPairing(together=True), TOGETHER)
    assert [type(edit) for edit in edits] == [Rewrite]
    assert edits[0].at == ("content", 2)


def test_a_missing_result_stands_after_the_others_where_each_is_its_own_message():
    transcript = talk("u: go", "a:  | read(a) as c1 | read(b) as c2", "t: c1 = A", "a: ok")
    messages, _ = closed(CloseCalls(), transcript)
    assert said(messages)[2:4] == ["tool: A", f"tool: {RESULT}"]


@pytest.mark.parametrize(("rule", "traits"), SHAPES)
def test_a_result_without_call_gets_a_call_before_it(rule, traits):
    messages, _ = closed(CloseCalls(), talk("u: go", "a: hm", "u: so", "t: c9 = lost", "a: ok"), rule, traits)
    marker = "[Tool call for unknown_tool - conversation was compacted] | {}"
    assert said(messages)[3:5] == [f"assistant: {marker}", "tool: lost"]


def test_a_call_made_for_a_result_bears_the_name_of_the_call_that_left_the_view():
    transcript = talk("u: go", "a:  | grep(x) as c1", "t: c1 = found", "a: ok")
    view = view_of(transcript, rules=(GroupPairing(),))
    view = view.after((Hide((transcript.messages[1].id,)),))
    after = view.after(CloseCalls().edits(view, ()))
    assert said(after.messages)[1] == "assistant: [Tool call for grep - conversation was compacted] | {}"


def test_a_stray_result_between_the_results_of_a_batch_moves_behind_them():
    transcript = talk("u: go", "a:  | read(a) as c1", "t: c9 = lost", "t: c1 = A", "a: ok")
    messages, _ = closed(CloseCalls(), transcript)
    assert [line.split(":")[0] for line in said(messages)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert said(messages)[2] == "tool: A"
    assert said(messages)[4] == "tool: lost"


@pytest.mark.parametrize(("rule", "traits"), SHAPES)
def test_hiding_takes_both_halves_away(rule, traits):
    transcript = talk(
        "u: go", "a: hm | read(a) as c1", "u: so", "a:  | read(b) as c2", "u: what", "t: c9 = lost", "a: ok"
    )
    messages, _ = closed(CloseCalls(hide=True), transcript, rule, traits)
    assert said(messages) == ["user: go", "assistant: hm", "user: so", "user: what", "assistant: ok"]


def test_a_call_beside_signed_reasoning_is_answered_even_when_hiding():
    parts = (Reasoning("hm", sealed=True, at=("content", 0)), ToolCall("c1", "read", at=("content", 1)))
    transcript = Transcript(
        (Message(MessageId("a"), "assistant", parts), Message(MessageId("b"), "user", (Text("no"),)))
    )
    messages, edits = closed(CloseCalls(hide=True), transcript, GroupPairing(together=True), TOGETHER)
    assert messages[0].parts == parts
    assert [type(edit) for edit in edits] == [Insert]


def test_of_two_results_the_first_stays_unless_it_is_a_placeholder():
    messages, _ = closed(CloseCalls(), talk("u: go", "a:  | read(a) as c1", "t: c1 = A", "t: c1 = B", "a: ok"))
    assert said(messages)[2:] == ["tool: A", "assistant: ok"]
    again = talk("u: go", "a:  | read(a) as c1", f"t: c1 = {RESULT}", "t: c1 = real", "t: c1 = more", "a: ok")
    messages, _ = closed(CloseCalls(), again)
    assert said(messages)[2:] == ["tool: real", "assistant: ok"]


def test_a_further_result_in_a_later_turn_gets_a_call_of_its_own():
    transcript = talk("u: go", "a:  | run(x) as c1", "t: c1 = started", "a: ok", "u: and?", "t: c1 = done", "a: fine")
    messages, _ = closed(CloseCalls(), transcript)
    assert said(messages)[5:7] == ["assistant: [Tool call for run - conversation was compacted] | {}", "tool: done"]


@pytest.mark.parametrize(("rule", "traits"), SHAPES[:2])
def test_a_result_that_stands_too_late_moves_next_to_its_call(rule, traits):
    transcript = talk("u: go", "a:  | read(a) as c1", "u: wait", "t: c1 = A", "a: ok")
    transcript = Transcript(tuple(replace(message, native={}) for message in transcript.messages))
    messages, _ = closed(CloseCalls(), transcript, rule, traits)
    assert said(messages)[2:] == ["tool: A", "user: wait", "assistant: ok"]


@pytest.mark.parametrize(("rule", "traits"), SHAPES)
def test_calls_at_the_very_end_are_left_open_unless_told_otherwise(rule, traits):
    transcript = talk("u: go", "a:  | read(a) as c1")
    assert closed(CloseCalls(), transcript, rule, traits)[1] == ()
    messages, _ = closed(CloseCalls(pending=False), transcript, rule, traits)
    assert said(messages)[-1] == f"tool: {RESULT}"


def test_a_conversation_that_ends_on_a_result_is_acknowledged_when_asked():
    transcript = talk("u: go", "a:  | read(a) as c1", "t: c1 = A")
    view = view_of(transcript, rules=(GroupPairing(),))
    edits = CloseCalls(acknowledge="Understood.").edits(view, ())  # V07
    assert said(view.after(edits).messages)[-1] == "assistant: Understood."
    refused = view_of(transcript, rules=(GroupPairing(together=True),), traits=TOGETHER)
    assert CloseCalls(acknowledge="Understood.").edits(refused, ()) == ()


def test_a_placeholder_of_an_earlier_repair_goes_with_its_call():
    messages, _ = closed(CloseCalls(), talk("u: go", "a: hm", "t: c9 = [result unavailable]", "u: so"))
    assert said(messages) == ["user: go", "assistant: hm", "user: so"]


def test_many_lone_halves_are_closed_in_linear_time():
    lines = [line for n in range(3000) for line in (f"a:  | read(x) as c{n}", "u: so", f"t: d{n} = lost")]
    _, edits = closed(CloseCalls(), talk("u: go", *lines))
    assert len(edits) == 6000


def asked(*ids):
    function = {"name": "a", "arguments": "{}"}
    calls = [{"id": id, "type": "function", "function": function} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


GO = {"role": "user", "content": "go"}
UNNAMED = [{"role": "tool", "content": "one"}, {"role": "tool", "tool_call_id": "", "content": "two"}]


@pytest.mark.parametrize("ids", [("c1", "c2"), ("", "")], ids=["calls with ids", "calls with empty ids"])
@pytest.mark.parametrize("after", [[GO], []], ids=["in the middle", "at the end"])
def test_results_without_an_id_answer_the_calls_before_them_in_order(ids, after):
    messages = [GO, asked(*ids), *UNNAMED, *after]
    repaired = refold.repair(messages).messages
    assert refold.violations(repaired) == ()
    called = [call["id"] for call in repaired[1]["tool_calls"]]
    assert [(each["tool_call_id"], each["content"]) for each in repaired[2:4]] == [
        (called[0], "one"),
        (called[1], "two"),
    ]
    assert len(set(called)) == 2
    assert repaired[4:] == after


@pytest.mark.parametrize("result", [UNNAMED[0], {"role": "tool", "name": "f", "content": "one"}])
def test_a_result_without_an_id_and_without_a_call_gets_both(result):
    repaired = refold.repair([GO, result, GO], format="openai-chat").messages
    assert refold.violations(repaired) == ()
    assert [message.get("content") for message in repaired][2:] == ["one", "go"]


@pytest.mark.parametrize(("rule", "traits"), SHAPES)
def test_a_call_that_the_user_cut_in_on_is_told_apart_from_one_whose_result_left(rule, traits):
    stage = CloseCalls(unanswered="[No result: cut in]")
    messages, _ = closed(stage, talk("u: go", "a: hm | read(a) as c1", "u: stop", "a: yes"), rule, traits)
    assert said(messages)[2] == "tool: [No result: cut in]"
    went_on, _ = closed(stage, talk("u: go", "a: hm | read(a) as c1", "a: so", "u: and"), rule, traits)
    assert f"tool: {RESULT}" in said(went_on)
    view = view_of(talk("u: go", "a: hm | read(a) as c1", "t: c1 = A", "u: stop"), rules=(rule,), traits=traits)
    after = view.after((Hide((view.messages[2].id,)),))
    assert RESULT in [text for message in after.after(stage.edits(after, ())).messages for text in texts(message)]
