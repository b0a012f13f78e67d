import copy
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from refold import formats
from refold.core.edits import Hide, Insert, Rewrite, fold
from refold.core.messages import (
    Image,
    Message,
    MessageId,
    Note,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.transcript import ROOT
from refold.formats._base import get
from tests.laws.strategies import FORMATS, natives

every_format = pytest.mark.parametrize("name", FORMATS)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("\ud83d"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    [
        "role",
        "content",
        "parts",
        "type",
        "text",
        "name",
        "id",
        "call_id",
        "tool_calls",
        "tool_call_id",
        "function_call",
        "function",
        "arguments",
        "output",
        "input",
        "source",
        "data",
        "thinking",
        "signature",
        "image_url",
        "url",
        "toolUse",
        "toolResult",
        "toolUseId",
        "functionCall",
        "functionResponse",
        "response",
        "inlineData",
        "reasoningContent",
        "reasoningText",
        "action",
        "summary",
        "encrypted_content",
        "refusal",
        "reasoning_content",
    ]
)
kinds = st.sampled_from(
    [
        "user",
        "assistant",
        "model",
        "tool",
        "system",
        "function",
        "text",
        "tool_use",
        "tool_result",
        "thinking",
        "image",
        "document",
        "function_call",
        "function_call_output",
        "shell_call_output",
        "reasoning",
        "message",
        "web_search_call",
        "input_image",
        "server_tool_use",
        "web_search_tool_result",
        "image_url",
        "file",
        "input_audio",
        "computer_call",
        "local_shell_call",
    ]
)
nearly = st.recursive(
    kinds | st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def test_the_strategies_cover_every_format():
    assert formats.names() == FORMATS


def read(name, said):
    format = formats.find(name)
    return format, formats.read(format, said)


def results(transcript):
    return [
        (message, part) for message in transcript.messages for part in message.parts if isinstance(part, ToolResult)
    ]


@every_format
@given(data=st.data())
def test_get_put_an_unedited_message_is_written_as_the_very_same_object(name, data):
    said = data.draw(natives(name))
    format, transcript = read(name, said)
    assert all(format.write(message) is native for message, native in zip(transcript.messages, said, strict=True))
    out = formats.assemble(format, transcript.messages)
    assert len(out) == len(said)
    assert all(new is old for new, old in zip(out, said, strict=True))


@every_format
@given(data=st.data())
def test_put_get_reading_a_written_edit_shows_the_edit(name, data):
    said = data.draw(natives(name))
    format, transcript = read(name, said)
    spots = [
        (message, part)
        for message in transcript.messages
        for part in message.parts
        if isinstance(part, Text) or (isinstance(part, ToolResult) and not part.server)
    ]
    message, part = data.draw(st.sampled_from(spots))
    new = Text("[short]") if isinstance(part, Text) else replace(part, content=(Text("[short]"),))
    (edited,) = [each for each in fold(transcript.messages, [[Rewrite(message.id, part.at, new)]]) if each.patches]
    again = format.read(format.write(edited), message.id)
    assert bare(again) == bare(edited)


@every_format
@given(data=st.data())
def test_put_get_a_word_inside_a_result_can_be_changed_by_its_own_path(name, data):
    said = data.draw(natives(name))
    format, transcript = read(name, said)
    spots = [
        (message, inner)
        for message, result in results(transcript)
        for inner in result.content
        if isinstance(inner, Text) and not result.server
    ]
    if not spots:
        return
    message, inner = data.draw(st.sampled_from(spots))
    (edited,) = [m for m in fold(transcript.messages, [[Rewrite(message.id, inner.at, Text("[short]"))]]) if m.patches]
    again = format.read(format.write(edited), message.id)
    assert bare(again) == bare(edited)


@every_format
@given(data=st.data())
def test_put_get_a_removed_part_is_gone_and_the_others_stay_in_order(name, data):
    said = data.draw(natives(name))
    format, transcript = read(name, said)
    spots = [
        (message, part)
        for message in transcript.messages
        for part in message.parts
        if part.at
        and not isinstance(part, Reasoning)
        and not any(isinstance(other, Reasoning) and other.at[: len(part.at)] == part.at for other in message.parts)
    ]
    if not spots:
        return
    message, part = data.draw(st.sampled_from(spots))
    (edited,) = [m for m in fold(transcript.messages, [[Rewrite(message.id, part.at, None)]]) if m.patches]
    again = format.read(format.write(edited), message.id)
    if name == "openai-chat" and not edited.calls:  # whose readable thinking is bound only beside calls
        edited = replace(edited, parts=tuple(map(unbound, edited.parts)))
    assert bare(again) == bare(edited) or not any(is_content(part) for part in edited.parts)


def unbound(part):
    return replace(part, sealed=False) if isinstance(part, Reasoning) and part.text else part


@every_format
@given(data=st.data())
def test_siblings_what_an_edit_does_not_touch_stays_the_same_object(name, data):
    said = data.draw(natives(name))
    format, transcript = read(name, said)
    spots = [
        (m, part) for m in transcript.messages for part in m.parts if isinstance(part, Text | ToolResult) and part.at
    ]
    if not spots:
        return
    message, part = data.draw(st.sampled_from(spots))
    new = Text("[short]") if isinstance(part, Text) else replace(part, content=(Text("[short]"),))
    if isinstance(part, ToolResult) and part.server:
        return
    (edited,) = [each for each in fold(transcript.messages, [[Rewrite(message.id, part.at, new)]]) if each.patches]
    out = format.write(edited)
    others = [other for other in message.parts if other.at[: len(part.at)] != part.at]
    assert all(get(out, other.at) is get(message.native, other.at) for other in others if other.at)
    old, block = get(message.native, part.at), get(out, part.at)
    if isinstance(old, dict):
        assert {key for key in old if key.startswith("x_") or key in ("cache_control", "is_error")} <= block.keys()
    assert all(out[key] is value for key, value in message.native.items() if key != part.at[0])


@every_format
@given(native=st.dictionaries(st.text(max_size=8), junk, max_size=4) | st.dictionaries(keys, nearly, max_size=6))
def test_total_read_takes_any_dict_and_writes_it_back(name, native):
    format = formats.find(name)
    message = format.read(native, ROOT)
    assert format.write(message) is native
    assert isinstance(format.identity(native), bytes)
    assert isinstance(format.recognizes(native), bool)
    formats.broken(format, [message, replace(message, id=MessageId("other"))])
    for rule in format.rules:
        assert rule.cuts([message]) <= {0, 1}


@every_format
@given(native=st.dictionaries(keys, nearly, max_size=6))
def test_total_write_takes_an_edit_of_any_part_of_any_dict(name, native):
    format = formats.find(name)
    message = format.read(native, ROOT)
    before = copy.deepcopy(native)
    for part in message.parts:
        for new in (Text("[short]"), part, None):
            (edited,) = fold([message], [[Rewrite(message.id, part.at, new)]])
            assert isinstance(format.write(edited), dict)
    assert native == before


@every_format
@given(data=st.data())
def test_nothing_is_mutated(name, data):
    said = data.draw(natives(name))
    before = copy.deepcopy(said)
    format, transcript = read(name, said)
    edits = [
        Rewrite(message.id, part.at, replace(part, content=(Text("[short]"),)))
        for message, part in results(transcript)
        if not part.server
    ]
    formats.assemble(format, fold(transcript.messages, [edits]))
    formats.broken(format, transcript.messages)
    assert said == before


@every_format
@given(data=st.data())
def test_a_valid_conversation_breaks_no_rule_and_its_format_is_told(name, data):
    said = data.draw(natives(name))
    format, transcript = read(name, said)
    assert formats.broken(format, transcript.messages) == ()
    found = formats.detect(said).name
    assert found == name or (found == "openai-chat" and all(plain(native) for native in said))


@every_format
@given(data=st.data())
def test_what_stays_between_two_cuts_keeps_its_calls_and_results_together(name, data):
    said = data.draw(natives(name))
    format, transcript = read(name, said)
    pairing = next(rule for rule in format.rules if rule.name == "pairing")
    cuts = sorted(set.intersection(*(rule.cuts(transcript.messages) for rule in format.rules)))
    assert cuts[0] == 0
    assert cuts[-1] == len(said)
    for start, stop in pairwise(cuts):
        assert pairing.broken(transcript.messages[start:stop]) == ()
        rest = (*transcript.messages[:start], *transcript.messages[stop:])
        assert pairing.broken(rest) == ()


def may_be_stored(before):
    """Tell whether an output after these items may answer a call that the provider stores or that a reference names."""
    named = any(message.native.get("type") == "item_reference" for message in before)
    return named or {message.role for message in before} <= {"tool", "system"}


@every_format
@given(data=st.data())
def test_a_lost_result_and_a_lost_call_are_found(name, data):
    said = data.draw(natives(name))
    format, transcript = read(name, said)
    pairing = next(rule for rule in format.rules if rule.name == "pairing")
    asking = [message for message in transcript.messages if message.calls]
    if not asking:
        return
    hidden = data.draw(st.sampled_from(asking))
    place = transcript.index[hidden.id]
    if name != "openai-responses" or not may_be_stored(transcript.messages[:place]):
        assert pairing.broken(fold(transcript.messages, [[Hide((hidden.id,))]]))
    answers = next(m for m in transcript.messages[place + 1 :] if m.role == "tool")
    after = (*transcript.messages, *format_user(format))
    assert pairing.broken(fold(after, [[Hide((answers.id,))]]))


@every_format
@given(data=st.data())
def test_ids_are_a_chain_that_volatile_keys_do_not_change(name, data):
    said = data.draw(natives(name))
    format, transcript = read(name, said)
    head = formats.read(format, said[: len(said) // 2])
    assert formats.read(format, said, head) == transcript
    marked = json.loads(json.dumps(said))
    for native in marked:
        content = native.get("content")
        if isinstance(content, list) and content and "cache_control" in format.volatile:
            content[-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
        if isinstance(content, list) and "cachePoint" in format.volatile:
            content.append({"cachePoint": {"type": "default"}})
    assert [m.id for m in formats.read(format, marked).messages] == [m.id for m in transcript.messages]


@every_format
@pytest.mark.parametrize("role", ["system", "user", "assistant"])
@pytest.mark.parametrize("text", ["Said.", "", " "])
def test_a_message_of_ours_is_written_and_read_again(name, role, text):
    format = formats.find(name)
    made = Message(MessageId("made:1"), role, (Text(text),), Note("marker"))
    (native,) = formats.assemble(format, [made])
    again = format.read(native, ROOT)
    assert (text.strip() or "(no content)") in again.parts[0].text
    if role != "system" or format.traits.system_in_list:
        assert again.role == role
    assert not [violation for violation in formats.broken(format, [again]) if violation.rule == "content"]


@every_format
def test_a_synthetic_pair_is_written_and_read_again(name):
    format = formats.find(name)
    calls = tuple(ToolCall(f"c{n}", "read", '{"path":"a.py"}') for n in range(2))
    answers = tuple(ToolResult(f"c{n}", (Text("gone"),), "read") for n in range(2))
    made = [
        Message(MessageId("made:0"), "user", (Text("Go on."),), Note("synthetic")),
        Message(MessageId("made:1"), "assistant", (Text("Reading."), *calls), Note("synthetic")),
        Message(MessageId("made:2"), "tool", answers, Note("synthetic")),
    ]
    transcript = formats.read(format, formats.assemble(format, made))
    assert formats.broken(format, transcript.messages) == ()
    asked = [call for message in transcript.messages for call in message.calls]
    assert [(call.call_id, call.name, json.loads(call.arguments)) for call in asked] == [
        ("c0", "read", {"path": "a.py"}),
        ("c1", "read", {"path": "a.py"}),
    ]
    assert [result.text for _, result in results(transcript)] == ["gone", "gone"]


@every_format
@given(data=st.data())
def test_where_roles_alternate_a_hidden_message_leaves_no_two_neighbors_of_one_speaker(name, data):
    said = data.draw(natives(name, min_turns=2))
    format, transcript = read(name, said)
    message = data.draw(st.sampled_from([m for m in transcript.messages if not m.calls and m.role != "tool"]))
    note = Message(MessageId("made:1"), "user", (Text("A marker."),), Note("marker"))
    out = formats.assemble(format, fold(transcript.messages, [[Hide((message.id,)), Insert(note, message.id)]]))
    if format.traits.alternates:
        assert all(format.speaker(first) != format.speaker(second) for first, second in pairwise(out))
    joined = formats.assemble(format, transcript.messages, alternate=True)
    speakers = [format.speaker(native) for native in joined]
    assert all(first != second or not first for first, second in pairwise(speakers))


def bare(message):
    """What a message says, without addresses, in which edits and joined words differ."""
    return (message.role, [bare_part(part) for part in message.parts])


def bare_part(part):
    if isinstance(part, ToolResult):
        words = [inner.text for inner in part.content if isinstance(inner, Text) and inner.text]
        images = [inner for inner in part.content if isinstance(inner, Image)]
        return ("result", part.call_id, part.is_error, words, len(images))
    return replace(part, at=())


def is_content(part):
    return not isinstance(part, Reasoning) and getattr(part, "kind", "") != "cachePoint"


def plain(native):
    content = native.get("content")
    return isinstance(content, str) or (
        isinstance(content, list)
        and all(block.get("type") in ("text", "hologram", "novelty", "container_upload") for block in content)
    )


def format_user(format):
    made = Message(MessageId("made:9"), "user", (Text("And now?"),), Note("marker"))
    return formats.read(format, formats.assemble(format, [made])).messages
