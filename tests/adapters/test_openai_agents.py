"""The OpenAI Agents SDK, as a user writes it, under the laws of adapters."""

import asyncio
import base64

import pytest
from agents import Agent, OpenAIProvider, RunConfig, Runner, function_tool
from openai import AsyncOpenAI

from refold.adapt.openai_agents import Compaction, CompactionSession
from refold.testing.adapters import LAWS, AdapterHarness, turn_costs_what_is_new


class Conversation:
    """A session of the SDK with the compaction of its runs, and an event loop, to which clients are bound."""

    def __init__(self, setup, name):
        self.loop = asyncio.Runner()
        self.client = AsyncOpenAI(base_url=setup.url, api_key="any", max_retries=0)
        self.session = CompactionSession(name, setup.folder / "sessions.db")
        models = OpenAIProvider(openai_client=self.client)
        self.config = self.run_config(Compaction(models, session=self.session, **setup.options))

    def run_config(self, compaction):
        return RunConfig(model_provider=compaction, tracing_disabled=True)

    def close(self):
        self.loop.run(self.client.close())
        self.loop.close()
        self.session.session.store.close()


class OpenAIAgents(AdapterHarness):
    format = "openai-responses"

    def __init__(self, setup):
        @function_tool
        def read(path: str) -> str:
            """Read a part of a program."""
            return setup.read(path)

        self.agent = Agent(name="Reader", instructions=setup.system, tools=[read], model=setup.model)
        self.setup, self.conversations = setup, {}

    def conversation(self, name):
        if name not in self.conversations:
            self.conversations[name] = Conversation(self.setup, name)
        return self.conversations[name]

    def run(self, conversation, text, *, image=None, stream=False):
        talk = self.conversation(conversation)
        return talk.loop.run(self.turn(talk, message(text, image), stream))

    async def turn(self, talk, items, stream):
        options = {"session": talk.session, "run_config": talk.config, "max_turns": 200}
        if not stream:
            return (await Runner.run(self.agent, items, **options)).final_output
        result = Runner.run_streamed(self.agent, items, **options)
        async for _ in result.stream_events():
            pass
        return result.final_output

    def history(self, conversation):
        talk = self.conversation(conversation)
        return talk.loop.run(talk.session.get_items())

    def undo(self, conversation):
        self.conversation(conversation).session.session.rewind(0)

    def close(self):
        for talk in self.conversations.values():
            talk.close()


def message(text, image):
    if image is None:
        return text
    picture = {
        "type": "input_image",
        "image_url": f"data:image/png;base64,{base64.b64encode(image).decode()}",
        "detail": "auto",
    }
    return [{"role": "user", "content": [{"type": "input_text", "text": text}, picture]}]


@pytest.mark.parametrize("law", LAWS)
def test_the_adapter_keeps_the_law(law):
    LAWS[law](OpenAIAgents)


def test_a_turn_costs_what_is_new():
    turn_costs_what_is_new(OpenAIAgents)
