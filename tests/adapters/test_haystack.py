"""Haystack, as a user writes it, under the laws of adapters."""

import asyncio
import base64
import json

import pytest
from haystack import component
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.core.serialization import allow_deserialization_module
from haystack.dataclasses import ChatMessage, ImageContent, ToolCall
from haystack.tools import tool
from haystack.utils import Secret

from refold.adapt.haystack import CompactionChatGenerator, rewind
from refold.testing.adapters import LAWS, AdapterHarness, turn_costs_what_is_new


class Haystack(AdapterHarness):
    format = "openai-chat"

    def __init__(self, setup):
        @tool
        def read(path: str) -> str:
            """Read a part of a program."""
            return setup.read(path)

        generator = OpenAIChatGenerator(Secret.from_token("any"), setup.model, api_base_url=setup.url, max_retries=0)
        self.agent = Agent(
            chat_generator=CompactionChatGenerator(generator, **setup.options),
            tools=[read],
            system_prompt=setup.system,
            max_agent_steps=200,
        )
        self.setup = setup

    def file(self, conversation):
        return self.setup.folder / f"{conversation}.json"

    def history(self, conversation):
        file = self.file(conversation)
        return [ChatMessage.from_dict(each) for each in json.loads(file.read_text())] if file.exists() else []

    def store(self, conversation, messages):
        self.file(conversation).write_text(json.dumps([message.to_dict() for message in messages]))

    def run(self, conversation, text, *, image=None, stream=False):
        pictures = [ImageContent(base64.b64encode(image).decode(), "image/png")] if image else []
        message = ChatMessage.from_user(content_parts=[text, *pictures])
        chunks = []
        result = self.agent.run(
            [*self.history(conversation), message], **({"streaming_callback": chunks.append} if stream else {})
        )
        self.store(conversation, [each for each in result["messages"] if not each.is_from("system")])
        return result["last_message"].text

    def undo(self, conversation):
        self.store(conversation, rewind(self.history(conversation), 0))

    def close(self):
        self.agent.close()


@pytest.mark.parametrize("law", LAWS)
def test_the_adapter_keeps_the_law(law):
    LAWS[law](Haystack)


def test_a_turn_costs_what_is_new():
    turn_costs_what_is_new(Haystack)


@component
class Recorder:
    """A generator that keeps what it is sent."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], generation_kwargs: dict | None = None, tools: list | None = None):
        self.sent = messages
        return {"replies": [ChatMessage.from_assistant("Done.")]}


def turn(number):
    """An answer with a call and the result, with what only the framework knows of them."""
    call = ToolCall("read", {"path": f"part_{number}.py"}, id=f"call_{number}", extra={"index": number})
    output = "\n".join(f"{line}: limit_{line} = {line * number % 89}" for line in range(200))
    yield ChatMessage.from_assistant(f"I read part {number}.", tool_calls=[call], meta={"usage": {"n": number}})
    yield ChatMessage.from_tool(output, call, meta={"at": number})


def history():
    return [ChatMessage.from_user("Read all parts."), *(each for number in range(12) for each in turn(number))]


def test_what_only_the_framework_knows_survives_in_an_edited_message():
    messages = history()
    generator = CompactionChatGenerator(Recorder(), window=24_000)
    [reply] = generator.run(messages)["replies"]
    assert messages == history()
    sent = generator.chat_generator.sent
    originals = {message.meta["at"]: message for message in messages if "at" in message.meta}
    results = [message for message in sent if "at" in message.meta]
    edited = [message for message in results if message is not originals[message.meta["at"]]]
    assert edited
    for message in edited:
        original = originals[message.meta["at"]]
        assert len(message.tool_call_result.result) < len(original.tool_call_result.result)
        assert message.tool_call_result.origin == original.tool_call_result.origin
        assert message.meta == original.meta
    assert len(edited) < len(results)
    assert rewind([*messages, reply], 0)[-1].meta["refold"] == ""


def test_an_agent_with_a_compaction_is_stored_and_read_back():
    generator = OpenAIChatGenerator(Secret.from_env_var("OPENAI_API_KEY", strict=False), "gpt-5")
    allow_deserialization_module("refold.adapt.haystack")
    stored = Agent(chat_generator=CompactionChatGenerator(generator, window=24_000)).to_dict()
    agent = Agent.from_dict(json.loads(json.dumps(stored)))
    assert isinstance(agent.chat_generator, CompactionChatGenerator)
    assert agent.to_dict() == stored


def test_awaiting_it_gives_the_same_as_running_it():
    generator = CompactionChatGenerator(Recorder(), window=24_000)
    generator.run(history())
    sent = generator.chat_generator.sent
    again = CompactionChatGenerator(Recorder(), window=24_000)
    asyncio.run(again.run_async(history()))
    assert again.chat_generator.sent == sent
