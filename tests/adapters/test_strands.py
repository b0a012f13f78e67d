"""Strands Agents, as a user writes it, under the laws of adapters."""

import asyncio

import pytest
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.session.file_session_manager import FileSessionManager

from refold.adapt.strands import CompactionManager
from refold.testing.adapters import LAWS, AdapterHarness, turn_costs_what_is_new


class Strands(AdapterHarness):
    format = "anthropic"
    model = "claude-opus-5-5"

    def __init__(self, setup):
        self.setup, self.agents, self.loops = setup, {}, {}

    def agent(self, conversation):
        if conversation not in self.agents:
            self.loops[conversation] = asyncio.Runner()  # the client of the model is bound to one

            @tool
            def read(path: str) -> str:
                """Read a part of a program."""
                return self.setup.read(path)

            self.agents[conversation] = Agent(
                AnthropicModel(
                    client_args={"base_url": self.setup.root_url, "api_key": "any", "max_retries": 0},
                    model_id=self.setup.model,
                    max_tokens=4_096,
                ),
                system_prompt=self.setup.system,
                tools=[read],
                conversation_manager=CompactionManager(**self.setup.options),
                session_manager=FileSessionManager(conversation, storage_dir=str(self.setup.folder)),
                agent_id="reader",
                callback_handler=None,
            )
        return self.agents[conversation]

    def run(self, conversation, text, *, image=None, stream=False):
        prompt = [{"text": text}]
        if image is not None:
            prompt.append({"image": {"format": "png", "source": {"bytes": image}}})
        agent = self.agent(conversation)
        return self.loops[conversation].run(streamed(agent, prompt) if stream else answered(agent, prompt))

    def history(self, conversation):
        return self.agent(conversation).messages

    def undo(self, conversation):
        self.agent(conversation).conversation_manager.rewind(0)

    def close(self):
        for conversation, loop in self.loops.items():
            loop.run(self.agents[conversation].model.client.close())
            loop.close()


async def answered(agent, prompt):
    return str(await agent.invoke_async(prompt))


async def streamed(agent, prompt):
    async for event in agent.stream_async(prompt):
        if "result" in event:
            answer = str(event["result"])
    return answer


@pytest.mark.parametrize("law", LAWS)
def test_the_adapter_keeps_the_law(law):
    LAWS[law](Strands)


def test_a_turn_costs_what_is_new():
    turn_costs_what_is_new(Strands)
