import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold import formats
from refold.core.edits import fold
from refold.core.messages import Text, ToolCall
from refold.stages.close_calls import CloseCalls
from refold.stages.repair import Repair
from refold.testing import view_of
from tests.laws.strategies import FORMATS, natives


def mended(name, said, *stages):
    """The native list after the stages, and the edits."""
    format = formats.find(name)
    view = view_of(formats.read(format, said), window=10**9, rules=format.rules, traits=format.traits)
    for stage in stages or (Repair(),):
        view = view.after(stage.edits(view, ()))
    out = formats.assemble(format, view.messages)
    return out, formats.broken(format, formats.read(format, out).messages), view.edits


def user(text="go"):
    return {"role": "user", "content": text}


def test_empty_messages_go_and_blank_words_go():
    said = [
        user(),
        {"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": ""}]},
        {"role": "assistant", "content": [{"type": "text", "text": " \n"}]},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "so?"}]},
    ]  # fmt: skip
    out, broken, _ = mended("anthropic", said)
    assert broken == ()
    assert [block["type"] for block in out[1]["content"]] == ["tool_use"]
    assert [message["role"] for message in out] == ["user", "assistant", "user"]
    assert [block["type"] for block in out[2]["content"]] == ["tool_result", "text"]


def test_an_empty_request_at_the_end_is_filled():
    out, broken, _ = mended("anthropic", [user(), {"role": "assistant", "content": "hi"}, user("")])
    assert broken == ()
    assert out[2]["role"] == "user"
    assert out[2]["content"] == "(no content)" or out[2]["content"][0]["text"] == "(no content)"


def test_equal_ids_in_one_message_are_told_apart_with_their_results():
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}} for _ in range(3)]
    calls[1]["id"] = "c-2"
    answers = [{"role": "tool", "tool_call_id": call["id"], "content": str(n)} for n, call in enumerate(calls)]
    out, broken, _ = mended(
        "openai-chat", [user(), {"role": "assistant", "content": None, "tool_calls": calls}, *answers]
    )
    assert broken == ()
    assert [call["id"] for call in out[1]["tool_calls"]] == ["c", "c-2", "c-3"]
    assert [(each["tool_call_id"], each["content"]) for each in out[2:]] == [("c", "0"), ("c-2", "1"), ("c-3", "2")]


def test_broken_arguments_become_an_object_that_holds_them():
    cut = '{"command": "find . -size +10M | hea'
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": cut}}
    said = [
        user(),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "no"},
    ]
    out, broken, _ = mended("openai-chat", said)
    assert broken == ()
    assert json.loads(out[1]["tool_calls"][0]["function"]["arguments"]) == {"broken_arguments": cut}
    assert said[1]["tool_calls"][0]["function"]["arguments"] == cut


def test_the_user_opens_where_an_assistant_would():
    out, broken, _ = mended("anthropic", [{"role": "assistant", "content": "hello"}, user()])
    assert broken == ()
    assert [message["role"] for message in out] == ["user", "assistant", "user"]


def test_a_result_first_of_all_gets_a_call_and_the_user_before_it():
    said = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "A"}]}]
    out, broken, _ = mended("anthropic", said, CloseCalls(), Repair())
    assert broken == ()
    assert [message["role"] for message in out] == ["user", "assistant", "user"]


def test_a_system_message_that_opens_the_list_is_said_by_the_user_in_a_tag():
    said = [{"role": "system", "content": [{"text": "Be brief."}]}, {"role": "user", "content": [{"text": "go"}]}]
    out, broken, _ = mended("bedrock", said)
    assert broken == ()
    assert out[0]["content"][0] == {"text": "<system>\nBe brief.\n</system>"}


def test_two_messages_of_one_speaker_are_joined_where_speakers_alternate():
    out, broken, edits = mended("bedrock", [{"role": "user", "content": [{"text": text}]} for text in "ab"])
    assert broken == ()
    assert out == [{"role": "user", "content": [{"text": "a"}, {"text": "b"}]}]
    assert len(edits) == 1


def test_results_are_put_first_in_their_message():
    said = [
        user(),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "text", "text": "so"}, {"type": "tool_result", "tool_use_id": "c", "content": "A"}]},
    ]  # fmt: skip
    out, broken, _ = mended("anthropic", said)
    assert broken == ()
    assert [block["type"] for block in out[2]["content"]] == ["tool_result", "text"]
    assert out[2]["content"][0] is said[2]["content"][1]


def test_a_lone_half_of_a_server_call_goes():
    asked = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    said = [user(), {"role": "assistant", "content": [{"type": "text", "text": "Searching."}, asked]}, user("so?")]
    out, broken, _ = mended("anthropic", said)
    assert broken == ()
    assert out[1]["content"] == [{"type": "text", "text": "Searching."}]


def test_a_lone_call_that_reasoning_led_to_is_answered_although_lone_halves_are_hidden():
    reasoning = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "read", "arguments": "{}"}
    out, broken, _ = mended("openai-responses", [user(), reasoning, call, user("so?")], CloseCalls(hide=True), Repair())
    assert broken == ()
    assert out[1:3] == [reasoning, call]
    assert out[3]["type"] == "function_call_output"


def test_reasoning_without_its_item_goes():
    said = [user(), {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"}, user("so?")]
    out, broken, _ = mended("openai-responses", said)
    assert broken == ()
    assert out == [said[0], said[2]]


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_a_valid_conversation_is_left_alone(name, data):
    said = data.draw(natives(name))
    out, _, edits = mended(name, said, Repair(), CloseCalls(), Repair())
    assert edits == ()
    assert all(new is old for new, old in zip(out, said, strict=True))


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_a_conversation_from_which_messages_were_lost_is_made_valid(name, data):
    said = data.draw(natives(name, min_turns=2))
    kept = data.draw(st.lists(st.booleans(), min_size=len(said), max_size=len(said)))
    damaged = [native for native, keep in zip(said, kept, strict=True) if keep]
    hide = data.draw(st.booleans())
    out, broken, _ = mended(name, damaged, Repair(), CloseCalls(hide=hide), Repair())
    assert [violation for violation in broken if violation.rule != "reasoning" or name == "openai-responses"] == []
    again, _, edits = mended(name, out, Repair(), CloseCalls(hide=hide), Repair())
    assert [type(edit) for edit in edits] == []
    assert again == out


def test_mending_does_not_touch_what_is_whole_beside_what_is_not():
    said = [user(), {"role": "assistant", "content": "  "}, user("more"), {"role": "assistant", "content": "ok"}]
    format = formats.find("openai-chat")
    transcript = formats.read(format, said)
    view = view_of(transcript, rules=format.rules)
    out = formats.assemble(format, fold(transcript.messages, [Repair().edits(view, ())]))
    assert [id(each) for each in out] == [id(said[0]), id(said[2]), id(said[3])]


def test_the_repaired_parts_are_what_a_reader_of_the_view_sees():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}
    format = formats.find("openai-chat")
    transcript = formats.read(format, [user(), {"role": "assistant", "content": "hm", "tool_calls": [call]}])
    view = view_of(transcript, rules=format.rules)
    after = view.after(Repair().edits(view, ()))
    assert after.messages[1].parts[0] == Text("hm", ("content",))
    assert isinstance(after.messages[1].parts[1], ToolCall)
    assert json.loads(after.messages[1].parts[1].arguments) == {"broken_arguments": "{"}


def test_calls_without_an_id_get_one():
    used = [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ("", "call-1", "")]
    out, broken, _ = mended(
        "anthropic", [user(), {"role": "assistant", "content": used}, user("go on")], Repair(), CloseCalls()
    )
    assert broken == ()
    assert [block["id"] for block in out[1]["content"]] == ["call-2", "call-1", "call-3"]


def test_reasoning_that_leads_to_nothing_goes_however_much_there_is_of_it():
    thought = {"type": "reasoning", "id": "rs1", "summary": []}
    said = [user(), *[dict(thought) for _ in range(4)]]
    out, broken, _ = mended("openai-responses", said, Repair())
    assert (out, broken) == ([user()], ())


def call(id, arguments="{}"):
    return {"type": "function_call", "call_id": id, "name": "f", "arguments": arguments}


def output(id, text="A", kind="function_call_output"):
    return {"type": kind, "call_id": id, "output": text}


REPAIRED = [Repair(), CloseCalls(), Repair()]
REPAIRED_BY_HIDING = [Repair(), CloseCalls(hide=True), Repair()]


def test_a_call_made_up_for_a_result_does_not_take_a_later_result_whose_call_the_provider_stores():
    said = [call("c2"), output("c0"), {"type": "item_reference", "id": "msg_1"}, output("c0", "B")]
    out, broken, _ = mended("openai-responses", said, *REPAIRED)
    assert broken == ()
    assert out[-1] is said[-1]
    made, moved = (item for item in out if item.get("call_id") not in ("c2", "c0", None))
    assert (made["type"], moved["output"]) == ("function_call", "A")
    assert made["call_id"] == moved["call_id"]


@pytest.mark.parametrize("stages", [REPAIRED, REPAIRED_BY_HIDING])
def test_an_id_twice_in_calls_that_still_wait_is_left_to_wait(stages):
    said = [call("c2"), call("c1"), call("c2", '{"n": 1}'), output("c2")]
    out, broken, edits = mended("openai-responses", said, *stages)
    assert (out, broken, edits) == (said, (), ())


def test_a_result_of_another_kind_beside_the_one_that_the_call_takes_gets_a_call_of_its_own():
    said = [call("c0"), output("c0", "B", "custom_tool_call_output"), output("c0")]
    out, broken, _ = mended("openai-responses", said, *REPAIRED)
    assert broken == ()
    assert [item["type"] for item in out] == [
        "function_call",
        "message",
        "custom_tool_call",
        "custom_tool_call_output",
        "function_call_output",
    ]
    assert all(any(item is one for one in out) for item in said)
    hidden, broken, _ = mended("openai-responses", said, *REPAIRED_BY_HIDING)
    assert (hidden, broken) == ([said[0], said[2]], ())


def test_a_call_with_a_result_of_another_kind_does_not_keep_others_waiting():
    said = [call("c0"), call("c1"), call("c1", '{"n": 1}'), output("c0", "B", "custom_tool_call_output"), output("c1")]
    out, broken, _ = mended("openai-responses", said, *REPAIRED_BY_HIDING)
    assert broken == ()
    assert [item.get("arguments") for item in out if item["type"] == "function_call"] == ["{}", "{}"]


def test_a_call_made_up_for_a_result_behind_two_messages_of_the_model_has_them_joined():
    said = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"text": "first"}]},
        {"role": "model", "parts": [{"text": "second"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "A"}}}]},
    ]
    out, broken, _ = mended("gemini", said, *REPAIRED)
    assert broken == ()
    assert [part.get("text") for part in out[1]["parts"]][:2] == ["first", "second"]
    assert out[-1] is said[-1]
