import json

import pytest

import refold
from refold.errors import UnreadableTranscript
from refold.transcripts import read
from refold.transcripts._bodies import body_of, format_of, reported

USER = {"role": "user", "content": "hi"}
CHAT = [
    USER,
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "tool", "tool_call_id": "c", "content": "x"},
]
ANTHROPIC = [USER, {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "n", "input": {}}]}]
RESPONSES = [USER, {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}]
GEMINI = [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"functionCall": {"name": "n"}}]}]
BEDROCK = [
    {"role": "user", "content": [{"text": "hi"}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c"}}]},
]
FORMATS = {
    "openai-chat": CHAT,
    "anthropic": ANTHROPIC,
    "openai-responses": RESPONSES,
    "gemini": GEMINI,
    "bedrock": BEDROCK,
}


def raw(value):
    return json.dumps(value).encode()


def lines(*rows):
    return "\n".join(map(json.dumps, rows)).encode()


@pytest.mark.parametrize("format", FORMATS)
def test_a_list_of_messages_is_read_in_each_format_alike_a_message_a_line(format):
    messages = FORMATS[format]
    for source in (raw(messages), lines(*messages)):
        (item,) = read(source)
        assert (item.kind, item.format, item.name, item.messages) == ("plain", format, "main", messages)


@pytest.mark.parametrize(
    ("body", "format", "system"),
    [
        ({"messages": CHAT, "model": "gpt"}, "openai-chat", None),
        ({"messages": [USER], "system": "s", "model": "m"}, "anthropic", "s"),
        ({"messages": [USER], "tools": [{"name": "t", "input_schema": {}}]}, "anthropic", None),
        ({"input": RESPONSES, "instructions": "s", "model": "gpt"}, "openai-responses", "s"),
        ({"contents": GEMINI, "systemInstruction": {"parts": []}}, "gemini", {"parts": []}),
        ({"messages": BEDROCK, "system": [{"text": "s"}], "toolConfig": {"tools": [{}]}}, "bedrock", [{"text": "s"}]),
    ],
)
def test_a_request_body_is_read_in_each_format(body, format, system):
    (item,) = read(raw(body))
    assert (item.format, item.system) == (format, system or None if system != {"parts": []} else system)
    assert item.messages == body.get("messages", body.get("input", body.get("contents")))
    assert item.model == body.get("model")


def test_a_body_whose_input_is_one_text_is_one_user_message():
    (item,) = read(raw({"model": "gpt", "input": "hi"}))
    assert (item.format, item.messages) == ("openai-responses", [USER])


def test_requests_a_line_are_conversations_of_their_own():
    one, two = read(lines({"messages": [USER]}, {"messages": CHAT, "tools": [{"type": "function"}]}))
    assert (one.name, two.name, two.tools) == ("request 1", "request 2", [{"type": "function"}])


def test_one_message_alone_is_a_conversation():
    assert read(raw(USER))[0].messages == [USER]


def test_a_damaged_message_is_named_and_skipped_only_leniently():
    with pytest.raises(UnreadableTranscript, match="entry 1 is no message of any format but a str"):
        read(raw([USER, "oops", USER]))
    with pytest.raises(
        UnreadableTranscript, match="line 2 is no message of any format but an object with the keys role"
    ):
        read(lines(USER, {"role": "user"}))
    (item,) = read(lines(USER, {"role": "user"}, USER), lenient=True)
    assert item.messages == [USER, USER]
    assert item.notes == ("1 × line 2 is no message but an object with the keys role, skipped",)


def test_lines_that_were_never_meant_as_messages_are_counted():
    (item,) = read(lines({"session": 1}, USER))
    assert item.notes == ("1 × object with the keys session, no message (line 1)",)


def test_messages_that_fit_several_formats_are_chat():
    assert format_of([USER, {"role": "assistant", "content": "x"}]) == "openai-chat"
    assert format_of([{"role": "user", "content": [{"type": "text", "text": "x"}]}]) == "openai-chat"


@pytest.mark.parametrize(
    "messages",
    [[], [1], [{}], [{"role": "robot", "content": "x"}], [{"type": "summary"}], [{"role": {}, "content": 1}]],
)
def test_what_is_no_list_of_messages_has_no_format(messages):
    assert format_of(messages) is None
    assert body_of({"messages": messages}) is None


def test_usage_of_each_provider_is_brought_to_one_measure():
    assert reported(2, {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": None})[0].prompt == 9
    anthropic = reported(
        2, {"input_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 1}
    )[0]
    assert (anthropic.prompt, anthropic.cache_read, anthropic.cache_write, anthropic.covers) == (9, 5, 3, 2)
    gemini = reported(0, {"promptTokenCount": 9, "candidatesTokenCount": 1, "cachedContentTokenCount": 4})[0]
    assert (gemini.prompt, gemini.cache_read) == (9, 4)
    assert reported(0, {"prompt_tokens": 0}) == ()
    assert reported(0, None) == ()


def test_tool_messages_without_an_id_answer_the_calls_in_their_place():
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for number, name in enumerate(("read", "grep"))
    ]
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "name": "grep", "content": "found"},
        {"role": "tool", "content": "text"},
    ]
    (found,) = read(json.dumps(messages).encode())
    assert [message.get("tool_call_id") for message in found.messages] == [None, None, "c1", "c0"]
    assert any("2 tool messages without an id" in note for note in found.notes)
    assert refold.violations(found.messages) == ()


@pytest.mark.parametrize("key", ["messages", "input", "contents"])
def test_what_is_no_message_in_a_body_is_named_by_its_place_counted_from_0(key):
    message = {"role": "user", "parts": [{"text": "x"}]} if key == "contents" else USER
    with pytest.raises(UnreadableTranscript, match="message 1 of main is a int, not an object"):
        read(json.dumps({"model": "gpt-4o", key: [message, 7]}).encode())


@pytest.mark.parametrize("write", [raw, lambda rows: lines(*rows)])
def test_a_message_without_role_is_not_left_out(write):
    messages = [USER, {"content": "Never deploy on a Friday."}, {"role": "assistant", "content": "ok"}]
    (conversation,) = read(write(messages))
    assert conversation.messages == messages
    assert conversation.notes == ()


def test_a_function_response_in_the_role_that_the_readme_of_google_genai_has_is_read():
    messages = [*GEMINI, {"role": "tool", "parts": [{"functionResponse": {"name": "n", "response": {}}}]}]
    (conversation,) = read(raw(messages))
    assert (conversation.format, conversation.messages) == ("gemini", messages)
