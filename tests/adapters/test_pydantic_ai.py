"""Pydantic AI, as a user writes it, under the laws of adapters."""

import asyncio
from dataclasses import replace

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent, BinaryContent, ModelMessagesTypeAdapter, ToolFailed
from pydantic_ai import messages as ai
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from refold.adapt.pydantic_ai import CompactionCapability, rewind
from refold.testing.adapters import LAWS, AdapterHarness, turn_costs_what_is_new


class PydanticAI(AdapterHarness):
    format = "openai-responses"

    def __init__(self, setup):
        self.setup = setup
        self.compaction = CompactionCapability(**setup.options)

    def agent(self, client):
        model = OpenAIResponsesModel(self.setup.model, provider=OpenAIProvider(openai_client=client))
        thinking = {"openai_reasoning_effort": "low", "openai_reasoning_summary": "auto"}
        agent = Agent(model, instructions=self.setup.system, capabilities=[self.compaction], model_settings=thinking)

        @agent.tool_plain
        def read(path: str) -> str:
            """Read a part of a program."""
            try:
                return self.setup.read(path)
            except OSError as error:
                raise ToolFailed(str(error)) from error  # any other exception ends the run

        return agent

    def run(self, conversation, text, *, image=None, stream=False):
        prompt = text if image is None else [text, BinaryContent(image, media_type="image/png")]
        return asyncio.run(self.turn(conversation, prompt, stream))

    async def turn(self, conversation, prompt, stream):
        options = {"message_history": self.history(conversation), "usage_limits": UsageLimits(request_limit=200)}
        async with AsyncOpenAI(base_url=self.setup.url, api_key="any", max_retries=0) as client:
            handler = drain if stream else None
            result = await self.agent(client).run(prompt, event_stream_handler=handler, **options)
        self.store(conversation, result.all_messages())
        return result.output

    def history(self, conversation):
        file = self.file(conversation)
        return ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else []

    def store(self, conversation, messages):
        self.file(conversation).write_bytes(ModelMessagesTypeAdapter.dump_json(messages))

    def file(self, conversation):
        return self.setup.folder / f"{conversation}.json"

    def undo(self, conversation):
        self.store(conversation, rewind(self.history(conversation), 0))


async def drain(context, events):
    async for _ in events:
        pass


@pytest.mark.parametrize("law", LAWS)
def test_the_adapter_keeps_the_law(law):
    LAWS[law](PydanticAI)


def test_a_turn_costs_what_is_new():
    turn_costs_what_is_new(PydanticAI)


def test_what_a_plan_does_not_shorten_goes_to_the_model_as_it_was():
    history = [ai.ModelRequest([ai.UserPromptPart("Where is the limit set?")])]
    for number in range(12):
        output = "\n".join(f"{number}: limit_{line} = {line}" for line in range(200))
        history += [
            ai.ModelResponse(
                [
                    ai.ThinkingPart(f"Part {number} comes next.", signature="seal", provider_name="function"),
                    ai.NativeToolCallPart("web_search", {"query": number}, tool_call_id=f"native_{number}"),
                    ai.NativeToolReturnPart("web_search", {"found": number}, tool_call_id=f"native_{number}"),
                    ai.ToolCallPart("read", {"part": number}, tool_call_id=f"call_{number}"),
                ],
                provider_response_id=f"response_{number}",
            ),
            ai.ModelRequest(
                [ai.ToolReturnPart("read", output, tool_call_id=f"call_{number}", metadata={"artifact": number})]
            ),
        ]
    sent = []

    def answer(messages, info):
        sent.extend(messages)
        return ai.ModelResponse([ai.TextPart("In part 3.")])

    agent = Agent(FunctionModel(answer), capabilities=[CompactionCapability(window=16_000)])
    agent.run_sync("Tell me.", message_history=history)
    parts = [part for message in history for part in message.parts]
    returns = {part.tool_call_id: part for part in parts if isinstance(part, ai.ToolReturnPart)}
    shortened = 0
    for part in [part for message in sent for part in message.parts]:
        if isinstance(part, ai.ToolReturnPart):
            original = returns[part.tool_call_id]
            shortened += part != original
            assert replace(part, content=original.content) == original
        elif isinstance(part, ai.ThinkingPart | ai.NativeToolCallPart | ai.NativeToolReturnPart):
            assert part in parts
    assert shortened
    ids = [message.provider_response_id for message in sent if isinstance(message, ai.ModelResponse)]
    assert ids == sorted(ids, key=lambda id: int(id.rpartition("_")[2]))
