"""Fields of a message whose value is of a type that no provider takes: each is named, and repaired where that is possible."""

from typing import Any

import pytest

import refold
from refold.errors import BrokenConversation

LISTS = ("bedrock", "gemini")
USERS: dict[str, dict[str, Any]] = {
    "openai-chat": {"role": "user"},
    "openai-responses": {"type": "message", "role": "user"},
    "anthropic": {"role": "user"},
    "bedrock": {"role": "user"},
    "gemini": {"role": "user"},
}


def key_of(format: str) -> str:
    return "parts" if format == "gemini" else "content"


def block(format: str, text: object) -> dict[str, Any]:
    kind = {"openai-responses": {"type": "input_text"}, "bedrock": {}, "gemini": {}}.get(format, {"type": "text"})
    return {**kind, "text": text}


def user(format: str, content: object) -> dict[str, Any]:
    return {**USERS[format], key_of(format): content}


def said(format: str, message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a conversation whose second message is the one given, on the user's side."""
    name = "model" if format == "gemini" else "assistant"
    own = {"openai-responses": {"type": "output_text", "text": "ok"}}.get(format, block(format, "ok"))
    return [user(format, [block(format, "hi")]), {**USERS[format], "role": name, key_of(format): [own]}, message]


def faults(format: str, message: dict[str, Any]) -> list[str]:
    found = refold.violations(said(format, message), format=format)
    assert {each.at for each in found} <= {(2,)}
    return [each.message for each in found]


@pytest.mark.parametrize("format", USERS)
@pytest.mark.parametrize(
    ("content", "was", "words"),
    [(7, "a number", "7"), (True, "true", "true"), ({"type": "text", "text": "hello"}, "an object", "hello")],
)
def test_a_content_that_is_none_is_named_with_the_remedy_and_repaired_to_words(
    format: str, content: object, was: str, words: str
) -> None:
    message = user(format, content)
    wanted = "a list of blocks" if format in LISTS else "a string or a list of blocks"
    assert faults(format, message) == [f"{key_of(format)} is {was}: give {wanted}"]
    repaired = refold.repair(said(format, message), format=format)
    assert repaired.messages[2][key_of(format)] == ([block(format, words)] if format in LISTS else words)
    assert refold.rewind(repaired) == said(format, message)


@pytest.mark.parametrize("format", USERS)
def test_a_text_in_place_of_a_list_is_an_error_where_the_provider_takes_lists_alone(format: str) -> None:
    wrong = [f"{key_of(format)} is a string: give a list of blocks"] if format in LISTS else []
    assert faults(format, user(format, "hello")) == wrong


@pytest.mark.parametrize("format", USERS)
def test_an_entry_of_a_content_that_is_no_block_is_named_with_its_place(format: str) -> None:
    message = user(format, [block(format, "one"), "two", 3, None])
    at = key_of(format)
    assert faults(format, message) == [
        f"{at}[1] is a string: give a block", f"{at}[2] is a number: give a block", f"{at}[3] is null: give a block",
    ]  # fmt: skip
    repaired = refold.repair(said(format, message), format=format).messages[2]
    assert [each["text"] for each in repaired[at]] == ["one", "two", "3"]
    assert refold.violations(said(format, repaired), format=format) == ()


@pytest.mark.parametrize("format", USERS)
def test_a_block_of_text_without_text_is_named_and_goes(format: str) -> None:
    message = user(format, [block(format, "one"), block(format, {"of": 2})])
    assert faults(format, message) == [f"{key_of(format)}[1].text is an object: give a string"]
    repaired = refold.repair(said(format, message), format=format).messages[2]
    assert repaired[key_of(format)] == [block(format, "one"), block(format, '{"of":2}')]


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic"])
def test_a_block_without_a_type_is_named_and_one_of_an_unknown_type_is_carried(format: str) -> None:
    message = user(format, [block(format, "one"), {"text": "two"}])
    assert faults(format, message) == ["content[1].type is missing: give a string"]
    repaired = refold.repair(said(format, message), format=format).messages[2]
    assert [each["text"] for each in repaired["content"]] == ["one", "two"]
    unknown = user(format, [block(format, "one"), {"type": "hologram", "depth": 7}])
    assert refold.repair(said(format, unknown), format=format).messages[2] is unknown
    assert faults(format, unknown) == []


@pytest.mark.parametrize("format", ["openai-chat", "anthropic", "bedrock"])
def test_a_message_without_role_is_an_error_and_no_repair_invents_one(format: str) -> None:
    message = {"content": [block(format, "hello")], "type": "note"}
    (text,) = [text for text in faults(format, message) if text.startswith("role")]
    assert text.startswith("role is missing: give ")
    with pytest.raises(BrokenConversation, match="role is missing"):
        refold.repair(said(format, message), format=format)
    assert any(text.startswith("role is a number: give ") for text in faults(format, {**message, "role": 7}))


def test_a_role_that_a_provider_does_not_know_is_an_error_and_one_of_a_vendor_of_chat_is_carried() -> None:
    assert faults("anthropic", {**user("anthropic", "hello"), "role": "tool"}) == [
        "role is 'tool': give user, assistant or system"
    ]
    assert faults("openai-chat", {**user("openai-chat", "hello"), "role": "narrator"}) == []
    assert faults("gemini", {"parts": [{"text": "hello"}]}) == []


@pytest.mark.parametrize(
    ("calls", "text"),
    [
        ("oops", "tool_calls is a string: give a list of calls"),
        ({"id": "c1"}, "tool_calls is an object: give a list of calls"),
        (["oops"], "tool_calls[0] is a string: give a call"),
        ([{"id": "c1", "type": "function", "function": None}], "tool_calls[0].function has no name: give one"),
        ([{"id": "c1", "type": "custom"}], "tool_calls[0].custom has no name: give one"),
    ],
)
def test_calls_that_are_none_are_named_and_go(calls: object, text: str) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "one", "tool_calls": calls}]
    assert [each.message for each in refold.violations(messages)] == [text]
    assert refold.repair(messages).messages == [messages[0], {"role": "assistant", "content": "one"}]


@pytest.mark.parametrize(
    ("format", "call"),
    [
        ("anthropic", {"type": "tool_use", "id": "c1", "input": {}}),
        ("bedrock", {"toolUse": {"toolUseId": "c1", "input": {}}}),
        ("bedrock", {"toolUse": "oops"}),
        ("gemini", {"functionCall": {"args": {}}}),
    ],
)
def test_a_call_without_name_is_named_and_goes(format: str, call: dict[str, Any]) -> None:
    asked = said(format, user(format, [block(format, "go on")]))
    asked[1] = {**asked[1], key_of(format): [block(format, "ok"), call]}
    found = refold.violations(asked, format=format)
    assert [(each.message, each.at) for each in found] == [("a call without name", (1,))]
    assert refold.repair(asked, format=format).messages[1][key_of(format)] == [block(format, "ok")]


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"type": "function_call", "call_id": "c1", "arguments": "{}"}, "a call without name"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "a call or a result without call_id"),
        ({"type": "custom_tool_call", "name": "f", "call_id": None, "input": ""}, "a call or a result without call_id"),
        ({"type": "function_call_output", "call_id": 7, "output": "x"}, "a call or a result without call_id"),
    ],
)
def test_an_item_of_a_call_without_name_or_id_is_named_and_goes(item: dict[str, Any], text: str) -> None:
    messages = [user("openai-responses", "hi"), item, user("openai-responses", "go on")]
    found = refold.violations(messages, format="openai-responses")
    assert text in [each.message for each in found if each.at == (1,)]
    assert refold.repair(messages, format="openai-responses").messages == [messages[0], messages[2]]


def test_a_type_that_is_no_text_is_named() -> None:
    message = {"type": {"a": 1}, "role": "user", "id": ["x"], "content": "hello"}
    assert faults("openai-responses", message)[0] == "type is an object: give a string"


STREAMED = {"partialArgs": [{"jsonPath": "$.path", "stringValue": "a.py"}], "willContinue": True}
HEALTHY: list[tuple[str, list[dict[str, Any]]]] = [
    # the README of google-genai answers a call in the role "tool"; an empty role is none
    ("gemini", [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                {"role": "tool", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}]),
    ("gemini", [{"role": "model", "parts": [{"text": "ok"}]}, {"role": "", "parts": [{"text": "go on"}]}]),
    # arguments as Vertex AI streams them (google.genai.types.FunctionCall.partial_args)
    ("gemini", [{"role": "model", "parts": [{"functionCall": {"name": "f", "willContinue": True}},
                                            {"functionCall": STREAMED}, {"functionCall": {}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}]),
    # openai.types.responses.response_input_item_param: FunctionCallOutput, ItemReference
    ("openai-responses", [{"type": "function_call_output", "call_id": None, "name": "f", "output": "done"}]),
    ("openai-responses", [{"type": None, "id": "msg_1"}]),
    # vLLM and OpenAI take an image without a type
    ("openai-chat", [{"role": "user", "content": [{"type": "text", "text": "see"}, {"image_url": "https://a.test/b"}]}]),
]  # fmt: skip


@pytest.mark.parametrize(("format", "rest"), HEALTHY)
def test_what_the_types_of_the_sdks_and_servers_allow_is_no_fault(format: str, rest: list[dict[str, Any]]) -> None:
    messages = [user(format, [block(format, "hi")]), *rest]
    assert refold.violations(messages, format=format) == ()
    assert all(new is old for new, old in zip(refold.repair(messages).messages, messages, strict=True))
