"""Messages that are, or hold, objects of the official SDKs: read as the JSON that the SDK sends, and given back."""

import json

import pytest
from anthropic.types import Message as AnthropicMessage
from google.genai import types as genai
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ParsedResponseFunctionToolCall, Response

import refold
from refold.adapt import Track
from refold.core._native import as_json
from refold.errors import BadMessages

LINES = "".join(f"{number}: a line of the file\n" for number in range(60))


def anthropic(number):
    reply = {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-opus-4-5", "stop_reason": "tool_use",
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [
            {"type": "thinking", "thinking": "I read it.", "signature": "c2lnbmF0dXJl"},
            {"type": "text", "text": f"I read file {number}.", "citations": None},
            {"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {"path": f"/src/{number}.py", "to": None}},
        ],
    }  # fmt: skip
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": LINES}
    return [
        {"role": "assistant", "content": AnthropicMessage.model_validate(reply).content},
        {"role": "user", "content": [result]},
    ]


def openai_chat(number):
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "read", "arguments": f'{{"path": {number}}}'},
    }
    reply = {"role": "assistant", "content": None, "refusal": None, "annotations": [], "tool_calls": [call]}
    return [
        ChatCompletionMessage.model_validate(reply),
        {"role": "tool", "tool_call_id": f"call_{number}", "content": LINES},
    ]


def openai_responses(number):
    output = [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "c2VjcmV0"},
        {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "read", "arguments": "{}",
         "status": "completed"},
    ]  # fmt: skip
    reply = Response.model_construct(id=f"resp_{number}", output=output)
    items = Response.construct(**reply.model_dump()).output
    return [*items, {"type": "function_call_output", "call_id": f"call_{number}", "output": LINES}]


def gemini(number):
    asked = genai.Part.from_function_call(name="read", args={"path": f"/src/{number}.py"})
    asked.thought_signature = b"signature\xff"
    answered = genai.Part.from_function_response(name="read", response={"result": LINES})
    return [genai.Content(role="model", parts=[asked]), genai.Content(role="user", parts=[answered])]


BY_FORMAT = {
    "anthropic": ({"role": "user", "content": "Read all files."}, anthropic),
    "openai-chat": ({"role": "user", "content": "Read all files."}, openai_chat),
    "openai-responses": ({"role": "user", "content": "Read all files."}, openai_responses),
    "gemini": (genai.Content(role="user", parts=[genai.Part(text="Read all files.")]), gemini),
}


def conversation(format):
    first, round = BY_FORMAT[format]
    return [first, *(message for number in range(20) for message in round(number))]


@pytest.fixture(params=BY_FORMAT)
def format(request):
    return request.param


@pytest.mark.parametrize("policy", ["refold", "wolffish", "opal", "claude-code"])
def test_objects_are_compacted_as_the_json_that_the_sdk_sends(format, policy):
    objects = conversation(format)
    sent = [as_json(message) for message in objects]
    result = refold.compact(objects, policy=policy, budget=6_000, force=True)
    assert result.format == format
    assert not result.plan.empty
    assert [as_json(message) for message in result.messages] == refold.compact(
        sent, policy=policy, budget=6_000, force=True
    ).messages
    assert refold.violations(result.messages, format=format) == ()


def test_untouched_objects_come_out_as_the_very_same_and_unchanged(format):
    objects = conversation(format)
    before = json.dumps([as_json(message) for message in objects])
    result = refold.compact(objects, budget=6_000)
    passed = {id(message) for message in objects}
    untouched = [message for message in result.messages if id(message) in passed]
    assert untouched[-1] is objects[-1]
    assert refold.compact(objects, budget=10**6).messages == objects
    assert all(new is old for new, old in zip(refold.rewind(result), objects, strict=True))
    assert all(result.messages[at] is objects[origin] for at, origin in enumerate(result.origins)
               if origin is not None and id(result.messages[at]) in passed)  # fmt: skip
    assert json.dumps([as_json(message) for message in objects]) == before


def test_a_format_is_told_from_objects_as_from_json(format):
    objects = conversation(format)
    named = refold.check(objects, window=100_000, format=format)
    assert refold.check(objects, window=100_000).tokens == named.tokens
    assert refold.violations(objects) == ()


@pytest.mark.parametrize("sent", [True, False])
def test_a_growing_list_is_of_the_format_that_its_first_telling_message_shows(format, sent):
    objects = conversation(format)
    messages = [as_json(message) for message in objects] if sent else objects
    meter, track = refold.Meter(window=100_000), Track(budget=6_000)
    for length in range(1, len(messages) + 1):
        size = meter.check(messages[:length]).tokens
        view = track.fold(messages[:length])
    assert size == refold.check(messages, window=100_000).tokens
    assert track.plans
    assert refold.violations(view.messages, format=format) == ()
    assert refold.compact(messages, budget=6_000, meter=meter).format == format


def test_what_the_sdk_keeps_for_itself_is_not_sent():
    call = {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"}
    parsed = ParsedResponseFunctionToolCall.model_validate(call | {"parsed_arguments": {"port": 8080}})
    assert as_json(parsed) == call


def test_json_stays_the_very_same_value():
    value = {"role": "user", "content": [{"type": "text", "text": "a"}, ("b", None, 1)], "of": object}
    assert as_json(value) is value


def test_an_object_that_its_own_sdk_cannot_write_is_named():
    message = ChatCompletionMessage.model_construct(role="assistant", content=object())
    for value in (message, {"role": "assistant", "content": [message]}):
        with pytest.raises(
            BadMessages, match=r"message 1, .* cannot be read as JSON .*: pass the JSON that its SDK sends"
        ):
            refold.check([{"role": "user", "content": "hi"}, value], window=1_000)


def test_a_content_of_google_genai_keeps_the_role_that_its_class_gives_it():
    messages = [genai.UserContent("Read all files."), genai.ModelContent("I read them."), genai.UserContent("Go on.")]
    assert [as_json(message)["role"] for message in messages] == ["user", "model", "user"]
    assert as_json(genai.Part(text="hi", thought=None)) == {"text": "hi"}
