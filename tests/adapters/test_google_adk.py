"""Google ADK, as a user writes it, under the laws of adapters."""

import asyncio

import pytest
from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models import Gemini
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from refold.adapt.google_adk import CompactionPlugin
from refold.testing.adapters import LAWS, AdapterHarness, turn_costs_what_is_new


class GoogleADK(AdapterHarness):
    format = "gemini"
    model = "gemini-2.5-pro"

    def __init__(self, setup):
        def read(path: str) -> str:
            """Read a part of a program."""
            return setup.read(path)

        def failed(tool, args, tool_context, error):  # without it an exception of a tool ends the run
            return {"error": str(error)}

        self.gemini = Gemini(model=setup.model, base_url=setup.root_url, client_kwargs={"api_key": "any"})
        agent = Agent(
            name="reader", model=self.gemini, instruction=setup.system, tools=[read], on_tool_error_callback=failed
        )
        self.plugin = CompactionPlugin(**setup.options)
        self.file = str(setup.folder / "sessions.db")
        self.app = App(name="reading", root_agent=agent, plugins=[self.plugin])

    def run(self, conversation, text, *, image=None, stream=False):
        parts = [types.Part(text=text)]
        if image is not None:
            parts.append(types.Part.from_bytes(data=image, mime_type="image/png"))
        return asyncio.run(self.turn(conversation, types.Content(role="user", parts=parts), stream))

    async def turn(self, conversation, message, stream):
        sessions = SqliteSessionService(self.file)  # a service is for one event loop
        runner = Runner(app=self.app, session_service=sessions)
        config = RunConfig(max_llm_calls=200, streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
        session = await opened(sessions, conversation)
        answer = ""
        async for event in runner.run_async(
            user_id="user", session_id=session.id, new_message=message, run_config=config
        ):
            if event.is_final_response() and event.content:
                answer = event.content.parts[0].text
        await self.gemini.api_client.aio.aclose()  # it is for one event loop as well
        return answer

    def history(self, conversation):
        return asyncio.run(opened(SqliteSessionService(self.file), conversation)).events

    def undo(self, conversation):
        asyncio.run(self.rewound(SqliteSessionService(self.file), conversation))

    async def rewound(self, sessions, conversation):
        await self.plugin.rewind(sessions, await opened(sessions, conversation), 0)


async def opened(sessions, conversation):
    names = {"app_name": "reading", "user_id": "user", "session_id": conversation}
    return await sessions.get_session(**names) or await sessions.create_session(**names)


@pytest.mark.parametrize("law", LAWS)
def test_the_adapter_keeps_the_law(law):
    LAWS[law](GoogleADK)


def test_a_turn_costs_what_is_new():
    turn_costs_what_is_new(GoogleADK)
