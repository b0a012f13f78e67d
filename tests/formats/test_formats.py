import json
from pathlib import Path

import pytest

import refold
from refold import formats
from refold.core.edits import Rewrite, fold
from refold.core.messages import (
    File,
    Image,
    Message,
    MessageId,
    Note,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.transcript import ROOT
from refold.errors import BadMessages, UnknownFormat
from refold.formats._registry import SEARCHED_AT_ONCE

RECORDED = Path(__file__).parent / "recorded"


def messages_of(name, stem):
    format = formats.find(name)
    body = json.loads((RECORDED / name / f"{stem}.json").read_text())
    return formats.read(format, formats.open_body(format, body).messages).messages


def kinds(message):
    return [type(part).__name__ for part in message.parts]


def test_an_unknown_format_is_refused_with_the_names_of_all():
    with pytest.raises(UnknownFormat, match="anthropic, bedrock, gemini, openai-chat, openai-responses"):
        formats.find("cohere")


def test_plain_roles_and_strings_are_openai_chat():
    assert formats.detect([{"role": "user", "content": "hi"}]).name == "openai-chat"


def test_plain_blocks_with_cache_marks_are_anthropic():
    block = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    assert formats.detect([{"role": "user", "content": [block]}]).name == "anthropic"
    assert formats.detect([{"role": "system", "content": [block]}]).name == "openai-chat"


@pytest.mark.parametrize(
    ("said", "seen"),
    [([], "an empty list"), ([{"foo": 1}], "the keys foo"), (["hi"], "type str"), ([{}], "without keys")],
)
def test_what_cannot_be_told_is_refused_saying_what_was_seen(said, seen):
    with pytest.raises(UnknownFormat, match=seen):
        formats.detect(said)


@pytest.mark.parametrize(("entry", "seen"), [("hi", "type str"), ({"foo": 1}, "the keys foo"), (None, "NoneType")])
def test_an_entry_that_is_no_message_is_named_with_its_position(entry, seen):
    with pytest.raises(BadMessages, match=f"message 1 .*{seen}"):
        formats.read(formats.find("openai-chat"), [{"role": "user", "content": "hi"}, entry])


@pytest.mark.parametrize("format", formats.names())
def test_a_message_nested_beyond_what_json_can_say_is_named_with_its_position(format):
    deep = {}
    deep["inner"] = deep
    with pytest.raises(BadMessages, match="message 1 is nested too deeply"):
        formats.read(formats.find(format), [{"role": "user", "content": "x"}, {"role": "user", "content": deep}])


def test_a_body_without_messages_is_refused():
    with pytest.raises(BadMessages, match="contents"):
        formats.open_body(formats.find("gemini"), {"messages": []})


def test_a_request_body_is_opened_whatever_the_format_calls_its_parts():
    body = json.loads((RECORDED / "bedrock" / "converse.json").read_text())
    request = formats.open_body(formats.find("bedrock"), body)
    assert (request.model, request.max_output) == ("anthropic.claude-sonnet-4-5", 2048)
    assert formats.system_text(request.system).startswith("You help.")
    assert '"query"' in formats.tools_text(request.tools)
    body = json.loads((RECORDED / "gemini" / "signed-calls.json").read_text())
    request = formats.open_body(formats.find("gemini"), body)
    assert (formats.system_text(request.system), request.max_output) == ("You plan trips.", 4096)


def test_a_body_is_closed_with_other_messages_and_everything_else_the_same_objects():
    body = json.loads((RECORDED / "anthropic" / "agent-with-thinking.json").read_text())
    format = formats.find("anthropic")
    request = formats.open_body(format, body)
    closed = formats.close_body(format, request, request.messages[2:], "Other.")
    assert closed["messages"] == body["messages"][2:]
    assert closed["system"] == "Other."
    assert all(closed[key] is body[key] for key in body if key not in ("messages", "system"))


def test_arguments_of_a_class_of_strings_are_read_as_plain_text():
    class Streamed(str):
        __slots__ = ()

    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": Streamed('{"path": "a.py"}')}}
    said = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ]
    shape = formats.find("openai-chat")
    assert not formats.broken(shape, formats.read(shape, said).messages)


def test_openai_chat_reads_calls_pictures_and_who_speaks():
    said = messages_of("openai-chat", "agent-with-parallel-calls")
    assert [message.role for message in said] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    image = said[1].parts[1]
    assert isinstance(image, Image)
    assert (image.media_type, image.width, image.height, image.detail) == ("image/png", 3, 2, "high")
    assert said[5].parts[0] == Reasoning("split gives strings.", True, at=("reasoning_content",))
    assert said[5].calls[0].kind == "custom"


def test_openai_chat_reads_old_function_calls_files_audio_and_refusals():
    said = messages_of("openai-chat", "old-function-calls")
    assert said[2].calls == (ToolCall("", "weather", '{"city":"Porto"}', at=("function_call",)),)
    assert said[3].results[0].name == "weather"
    assert kinds(said[5]) == ["File", "File", "Opaque"]
    assert said[6].parts == (Opaque("refusal", 21, ("refusal",)),)


def test_responses_reads_every_kind_of_call_with_its_output():
    said = messages_of("openai-responses", "reasoning-and-every-kind-of-call")
    assert said[1].parts == (Reasoning("Look at the log first.", sealed=True, size=8),)
    asked = [call.kind for message in said for call in message.calls]
    assert asked == ["function", "custom", "local_shell", "shell", "computer"]
    assert [result.kind for message in said for result in message.results] == asked
    server = [part.kind for message in said for part in message.parts if isinstance(part, ToolCall) and part.server]
    assert server == ["web_search", "mcp"]
    shell = next(message.results[0] for message in said if message.results and message.results[0].kind == "shell")
    assert shell.text == "12 passed\n\nwarning: slow\n"


def test_anthropic_reads_thinking_documents_and_what_the_provider_did_itself():
    said = messages_of("anthropic", "agent-with-thinking")
    assert kinds(said[0]) == ["Text", "Image", "File"]
    assert said[0].parts[2] == File("document", "text/plain", 9, "Guide", "Use tabs.", ("content", 2))
    assert [part.sealed for part in said[1].parts[:2]] == [True, True]
    assert [result.is_error for result in said[2].results] == [True, False]
    assert kinds(said[3]) == ["ToolCall", "ToolResult", "ToolCall", "ToolResult", "Text", "Opaque", "Opaque"]
    assert (said[3].calls, said[3].results) == ((), ())
    assert [message.role for message in said] == ["user", "assistant", "user", "assistant", "user"]


def test_gemini_reads_a_signature_as_sealed_reasoning_at_its_own_key():
    said = messages_of("gemini", "signed-calls")
    assert Reasoning("", True, 8, ("parts", 1, "thoughtSignature")) in said[1].parts
    assert [call.arguments for call in said[1].calls] == ['{"place":"Porto"}', '{"place":"Faro"}']
    assert [result.text for result in said[2].results] == ["six", '{"high":["seven"],"low":["one"]}']
    assert said[2].role == "tool"


def test_bedrock_reads_json_results_as_text_and_cache_points_as_no_content():
    said = messages_of("bedrock", "converse")
    assert kinds(said[0]) == ["Text", "File", "Image", "Opaque", "Opaque"]
    assert [result.text for result in said[2].results] == ['{"rows":[[12]]}', "syntax error"]
    assert [result.is_error for result in said[2].results] == [False, True]


def written(name, native, *edits):
    format = formats.find(name)
    message = format.read(native, ROOT)
    (edited,) = fold([message], [[Rewrite(ROOT, at, to) for at, to in edits]])
    return format.write(edited)


def test_removed_parts_are_swept_last_so_that_no_path_moves():
    native = {"role": "user", "content": [{"type": "text", "text": text} for text in "abcd"]}
    gone = written("anthropic", native, (("content", 0), None), (("content", 2), None), (("content", 3), Text("D")))
    assert [block["text"] for block in gone["content"]] == ["b", "D"]


def test_a_removed_key_goes_from_the_object():
    native = {"role": "assistant", "content": "hi", "reasoning_content": "hm", "x": 1}
    assert written("openai-chat", native, (("reasoning_content",), None)) == {
        "role": "assistant",
        "content": "hi",
        "x": 1,
    }


def test_a_message_of_which_nothing_is_left_says_so():
    native = {"role": "user", "content": [{"type": "text", "text": "a"}], "x": 1}
    for name in ("anthropic", "openai-chat"):
        out = written(name, native, (("content", 0), None))
        assert "(no content)" in json.dumps(out["content"])
        assert out["x"] == 1


def test_removed_calls_leave_no_empty_list():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    native = {"role": "assistant", "content": None, "tool_calls": [call]}
    out = written("openai-chat", native, (("tool_calls", 0), None))
    assert out == {"role": "assistant", "content": "(no content)"}


def test_a_picture_becomes_words_in_a_block_of_the_right_type():
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert written("openai-chat", {"role": "user", "content": [image]}, (("content", 0), Text("[image]")))[
        "content"
    ] == [{"type": "text", "text": "[image]"}]
    item = {"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/a.png"}]}
    assert written("openai-responses", item, (("content", 0), Text("[image]")))["content"] == [
        {"type": "input_text", "text": "[image]"}
    ]
    part = {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "aaaa"}}]}
    assert written("gemini", part, (("parts", 0), Text("[image]")))["parts"] == [{"text": "[image]"}]


def test_new_arguments_are_written_in_the_shape_of_the_format():
    native = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}, "x": 2}]}
    out = written("anthropic", native, (("content", 0), ToolCall("c", "f", '{"a": 2}')))
    assert out["content"] == [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 2}, "x": 2}]
    out = written("anthropic", native, (("content", 0), ToolCall("c", "f", "cut {")))
    assert out["content"][0]["input"] == {"raw": "cut {"}


def test_a_gemini_response_object_becomes_output_or_error():
    def part(response):
        return {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": response, "x": 1}}]}

    new = ToolResult("", (Text("short"),), "f")
    assert written("gemini", part({"a": 1, "b": 2}), (("parts", 0), new))["parts"][0]["functionResponse"] == {
        "name": "f",
        "response": {"output": "short"},
        "x": 1,
    }
    failed = ToolResult("", (Text("short"),), "f", is_error=True)
    out = written("gemini", part({"error": "long"}), (("parts", 0), failed))
    assert out["parts"][0]["functionResponse"]["response"] == {"error": "short"}


def test_joined_messages_keep_results_and_reasoning_first():
    format = formats.find("anthropic")
    note = Note("synthetic")
    thought = {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "b"}],
    }
    said = [
        Message(MessageId("1"), "user", (Text("a"),), note),
        Message(MessageId("2"), "user", (Text("b"),), note),
        Message(MessageId("3"), "assistant", (Text("mine"), ToolCall("c", "f", "{}")), note),
        format.read(thought, MessageId("4")),
        Message(MessageId("5"), "user", (Text("c"),), note),
        Message(MessageId("6"), "tool", (ToolResult("c", (Text("r"),)),), note),
    ]
    out = formats.assemble(format, said)
    assert [message["role"] for message in out] == ["user", "assistant", "user"]
    assert [block["type"] for block in out[1]["content"]] == ["thinking", "text", "tool_use", "text"]
    assert [block["type"] for block in out[2]["content"]] == ["tool_result", "text"]


def test_neighbors_are_joined_in_any_format_when_asked():
    format = formats.find("openai-chat")
    said = [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    transcript = formats.read(format, said)
    assert formats.assemble(format, transcript.messages) == said
    assert formats.assemble(format, transcript.messages, alternate=True)[0] == {"role": "user", "content": "a\n\nb"}


def test_the_assistant_says_a_word_between_two_users_that_only_tool_traffic_parts_when_asked():
    format = formats.find("openai-chat")
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "user", "content": "b"},
    ]
    out = formats.assemble(format, formats.read(format, said).messages, alternate=True)
    assert out == [*said[:3], {"role": "assistant", "content": "Understood."}, said[3]]
    assert formats.assemble(format, formats.read(format, said).messages) == said


def test_a_responses_message_of_ours_becomes_one_item_a_part():
    format = formats.find("openai-responses")
    made = Message(
        MessageId("1"),
        "assistant",
        (Text("hm"), ToolCall("c", "f", "{}"), ToolCall("d", "p", "x", "custom")),
        Note("synthetic"),
    )
    assert [item["type"] for item in formats.assemble(format, [made])] == [
        "message",
        "function_call",
        "custom_tool_call",
    ]


def test_a_search_result_is_a_document_with_its_words():
    blocks = [{"type": "text", "text": "At most 40."}]
    found = {"type": "search_result", "source": "https://example.com", "title": "Limits", "content": blocks}
    (part,) = formats.find("anthropic").read({"role": "user", "content": [found]}, ROOT).parts
    assert (part.name, part.text) == ("Limits", "At most 40.")
    same = {"searchResult": {"source": "https://example.com", "title": "Limits", "content": [{"text": "At most 40."}]}}
    (part,) = formats.find("bedrock").read({"role": "user", "content": [same]}, ROOT).parts
    assert (part.name, part.text) == ("Limits", "At most 40.")


def test_what_is_cited_is_not_counted_again():
    said = {"content": [{"text": "the grass is green"}], "citations": [{"title": "Colors", "source": "x" * 4_000}]}
    message = {"role": "assistant", "content": [{"citationsContent": said}]}
    assert refold.count([message], format="bedrock") < 40


def test_a_document_of_unknown_size_counts_as_a_page():
    source = {"type": "url", "url": "https://example.com/manual.pdf"}
    messages = [{"role": "user", "content": [{"type": "document", "source": source}]}]
    assert refold.count(messages, format="anthropic", model="claude-opus-4-8") > 1_000


@pytest.mark.parametrize("kind", ["compaction", "container_upload", "tool_addition", "mcp_tool_listing"])
def test_blocks_that_only_anthropic_has_tell_its_format(kind):
    assert (
        formats.detect([{"role": "user", "content": "Go on."}, {"role": "assistant", "content": [{"type": kind}]}]).name
        == "anthropic"
    )


def test_what_stands_before_a_compaction_block_in_its_own_message_is_not_counted():
    block = {"type": "compaction", "content": "The logs were read."}
    words = [{"type": "text", "text": "a word " * 400}]
    before = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": [*words, block]}]
    short = refold.count([before[0], {"role": "assistant", "content": [block]}], format="anthropic")
    assert refold.count(before, format="anthropic") == short


def test_what_a_provider_ignores_leaves_where_it_breaks_a_rule():
    stray = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    summary = {"role": "assistant", "content": [{"type": "compaction", "content": "The parser was ported."}]}
    messages = [{"role": "user", "content": [stray]}, summary, {"role": "user", "content": "Go on."}]
    result = refold.repair(messages, format="anthropic")
    assert result.messages == messages[1:]
    assert refold.rewind(result) == messages


def test_half_a_surrogate_pair_is_found_wherever_it_stands_in_a_long_message():
    format = formats.find("openai-chat")
    for place in (0, *range(SEARCHED_AT_ONCE - 40, SEARCHED_AT_ONCE + 4)):
        text = f"{'a' * place}\ud83d{'b' * 20}"
        (message,) = formats.read(format, [{"role": "user", "content": text}]).messages
        assert message.parts[0].text == f"{'a' * place}\ufffd{'b' * 20}"
