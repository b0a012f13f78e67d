import anthropic
import openai
import pytest

import refold
from refold.testing.provider import ScriptedProvider, ScriptedReply

TOOL = {"name": "read", "description": "Read a file.", "parameters": {"type": "object", "properties": {}}}
SAY = [{"role": "user", "content": "Say hello."}]
CALLS = ScriptedReply("Reading both.", [("read", {"path": "a.py"}), ("read", {"path": "b c.py"})])


def chat(provider, **options):
    return openai.OpenAI(base_url=provider.openai_url, api_key="k", max_retries=0, **options)


def claude(provider, **options):
    return anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=0, **options)


def test_openai_chat_answers_in_one_body():
    with ScriptedProvider(["Hello you."]) as provider, chat(provider) as client:
        got = client.chat.completions.create(model="gpt-5", messages=SAY)
    assert got.choices[0].message.content == "Hello you."
    assert got.choices[0].finish_reason == "stop"
    assert got.usage.prompt_tokens == refold.count(SAY, model="gpt-5") == provider.received[0].tokens
    assert got.usage.total_tokens == got.usage.prompt_tokens + got.usage.completion_tokens


def test_openai_chat_streams_words_and_usage():
    with ScriptedProvider(["Hello you, who read every word of this."]) as provider, chat(provider) as client:
        stream = client.chat.completions.create(
            model="gpt-5", messages=SAY, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
    said = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert "".join(filter(None, said)) == "Hello you, who read every word of this."
    assert len(list(filter(None, said))) > 1
    assert chunks[-1].usage.prompt_tokens == provider.received[0].tokens
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert provider.received[0].streaming


def test_openai_chat_calls_tools_side_by_side_streaming_or_not():
    with ScriptedProvider([CALLS]) as provider, chat(provider) as client:
        tools = [{"type": "function", "function": TOOL}]
        whole = client.chat.completions.create(model="gpt-5", messages=SAY, tools=tools)
        with client.chat.completions.stream(model="gpt-5", messages=SAY, tools=tools) as stream:
            streamed = stream.get_final_completion()
    for got in (whole, streamed):
        calls = got.choices[0].message.tool_calls
        assert [call.function.arguments for call in calls] == ['{"path":"a.py"}', '{"path":"b c.py"}']
        assert len({call.id for call in calls}) == 2
        assert got.choices[0].finish_reason == "tool_calls"
    assert provider.received[0].tools == ("read",)


def test_anthropic_answers_in_one_body():
    with ScriptedProvider(["Hello you."]) as provider, claude(provider) as client:
        got = client.messages.create(model="claude-sonnet-4-6", max_tokens=50, messages=SAY, system="Be brief.")
    assert got.content[0].text == "Hello you."
    assert got.stop_reason == "end_turn"
    counted = refold.count(SAY, model="claude-sonnet-4-6", format="anthropic", system="Be brief.")
    assert got.usage.input_tokens == counted == provider.received[0].tokens
    assert provider.received[0].system == "Be brief."


def test_anthropic_streams_words_and_calls_with_usage():
    with ScriptedProvider([CALLS]) as provider, claude(provider) as client:
        tools = [{"name": "read", "input_schema": {"type": "object"}}]
        whole = client.messages.create(model="claude-sonnet-4-6", max_tokens=500, messages=SAY, tools=tools)
        with client.messages.stream(model="claude-sonnet-4-6", max_tokens=500, messages=SAY, tools=tools) as stream:
            words = "".join(stream.text_stream)
            streamed = stream.get_final_message()
    assert words == "Reading both."
    for got in (whole, streamed):
        assert [block.type for block in got.content] == ["text", "tool_use", "tool_use"]
        assert [block.input for block in got.content[1:]] == [{"path": "a.py"}, {"path": "b c.py"}]
        assert got.stop_reason == "tool_use"
        assert got.usage.input_tokens == provider.received[0].tokens
        assert got.usage.output_tokens == whole.usage.output_tokens


def test_openai_chat_refuses_above_the_window_with_its_numbers():
    long = [{"role": "user", "content": "word " * 3_000}]
    with ScriptedProvider(window=2_000) as provider, chat(provider) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(model="gpt-5", messages=long)
        assert client.chat.completions.create(model="gpt-5", messages=SAY).choices
    assert caught.value.code == "context_length_exceeded"
    told = refold.classify_error(caught.value)
    assert (told.kind, told.limit, told.requested) == ("context_overflow", 2_000, provider.received[0].tokens)
    assert [each.status for each in provider.received] == [400, 200]


def test_anthropic_refuses_above_the_window_with_its_numbers():
    long = [{"role": "user", "content": "word " * 3_000}]
    with (
        ScriptedProvider(window=2_000) as provider,
        claude(provider) as client,
        pytest.raises(anthropic.BadRequestError) as caught,
    ):
        client.messages.create(model="claude-sonnet-4-6", max_tokens=10, messages=long)
    told = refold.classify_error(caught.value)
    assert (told.kind, told.limit, told.requested) == ("context_overflow", 2_000, provider.received[0].tokens)


def test_openai_responses_return_thinking_as_a_reasoning_item_streaming_or_not():
    reply = ScriptedReply("Hello.", [("read", {})], thinking="They want a greeting.")
    options = {"model": "gpt-5", "input": SAY, "include": ["reasoning.encrypted_content"], "store": False}
    with ScriptedProvider([reply]) as provider, chat(provider) as client:
        whole = client.responses.create(**options)
        with client.responses.stream(**options) as stream:
            events = list(stream)
            streamed = stream.get_final_response()
        items = [item.model_dump(exclude_none=True) for item in whole.output]
        results = [{"type": "function_call_output", "call_id": items[-1]["call_id"], "output": "a"}]
        client.responses.create(**{**options, "input": [*SAY, *items, *results]})
    for response in (whole, streamed):
        assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
        assert response.output[0].summary[0].text == "They want a greeting."
        assert response.output[0].encrypted_content
    deltas = [event.delta for event in events if event.type == "response.reasoning_summary_text.delta"]
    assert "".join(deltas) == "They want a greeting."
    assert provider.received[-1].problems == ()


def test_openai_responses_call_a_custom_tool_of_the_input_as_one_and_in_its_namespace():
    tools = [{"type": "custom", "name": "exec", "description": "Runs."}, {"type": "function", "name": "wait"}]
    added = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [{"type": "namespace", "name": "own", "description": "Own tools.", "tools": tools}],
    }
    options = {"model": "gpt-5", "input": [added, *SAY], "store": False}
    with (
        ScriptedProvider([ScriptedReply("", [("exec", "text(1);"), ("wait", {})])]) as provider,
        chat(provider) as client,
    ):
        whole = client.responses.create(**options)
        with client.responses.stream(**options) as stream:
            events = list(stream)
            streamed = stream.get_final_response()
        items = [item.model_dump(exclude_none=True) for item in whole.output]
        results = [{"type": f"{item['type']}_output", "call_id": item["call_id"], "output": "1"} for item in items]
        client.responses.create(**{**options, "input": [added, *SAY, *items, *results]})
    assert provider.received[0].tools == ("exec", "wait")
    for response in (whole, streamed):
        assert [item.type for item in response.output] == ["custom_tool_call", "function_call"]
        assert [item.namespace for item in response.output] == ["own", "own"]
        assert response.output[0].input == "text(1);"
    assert (
        "".join(event.delta for event in events if event.type == "response.custom_tool_call_input.delta") == "text(1);"
    )
    assert provider.received[-1].problems == ()
