"""Google ADK, as a user writes it, under the laws of adapters."""

import asyncio
from types import SimpleNamespace

import pytest
from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models import BaseLlm, Gemini, LlmResponse
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types
from google.genai.errors import ClientError

from refold.adapt.google_adk import CompactionPlugin
from refold.testing.adapters import LAWS, AdapterHarness, turn_costs_what_is_new
from tests.compaction.test_meter import Counting


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


class Refusing(BaseLlm):
    """A model that refuses each request for its size, at once or in the middle of its answer."""

    begun: bool
    calls: int = 0

    async def generate_content_async(self, llm_request, stream=False):
        self.calls += 1
        if self.begun:
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="I read")]), partial=True)
        message = "The input token count (90000) exceeds the maximum number of tokens allowed (16000)."
        raise ClientError(400, {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})


@pytest.mark.parametrize(("begun", "calls"), [(False, range(2, 9)), (True, range(1, 2))])
def test_an_answer_that_has_begun_is_not_asked_for_again(begun, calls):
    model = Refusing(model="gemini-2.5-pro", begun=begun)
    agent = Agent(name="reader", model=model)
    runner = InMemoryRunner(app=App(name="reading", root_agent=agent, plugins=[CompactionPlugin(window=100_000)]))

    async def run():
        session = await runner.session_service.create_session(app_name="reading", user_id="user")
        for number in range(40):
            part = types.Part(text=f"Part {number}: " + " ".join(f"limit_{number}_{word}" for word in range(200)))
            content = types.Content(role="user" if number % 2 == 0 else "model", parts=[part])
            event = Event(author="user" if number % 2 == 0 else "reader", content=content)
            await runner.session_service.append_event(session, event)
        question = types.Content(role="user", parts=[types.Part(text="Where is the limit set?")])
        async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=question):
            pass

    with pytest.raises(ClientError, match="exceeds the maximum"):
        asyncio.run(run())
    assert model.calls in calls


def test_copies_of_contents_are_known_and_one_whose_call_was_changed_is_read_again():
    counter = Counting()
    plugin = CompactionPlugin(window=1_000_000, counter=counter)
    session = SimpleNamespace(events=[])
    context = SimpleNamespace(invocation_id="1", agent_name="reader", state={}, session=session)
    call = types.FunctionCall(id="call_1", name="read", args={"path": "part_1.py"})
    answer = types.FunctionResponse(id="call_1", name="read", response={"result": "limit = 3"})
    contents = [
        types.Content(role="user", parts=[types.Part(text="Hello.")]),
        types.Content(role="model", parts=[types.Part(text="What shall I do?")]),
        types.Content(role="user", parts=[types.Part(text="Tell me where the limit is set.")]),
        types.Content(role="model", parts=[types.Part(function_call=call)]),
        types.Content(role="user", parts=[types.Part(function_response=answer)]),
    ]

    def counted():
        config = types.GenerateContentConfig()
        copies = [content.model_copy(deep=True) for content in contents]
        request = SimpleNamespace(previous_interaction_id=None, contents=copies, config=config, model="gemini-2.5-pro")
        asyncio.run(plugin.before_model_callback(callback_context=context, llm_request=request))
        return counter.counted

    assert [counted(), counted()] == [5, 5]
    call.args["path"] = "part_2.py"
    assert counted() == 7


def test_a_turn_costs_what_is_new():
    turn_costs_what_is_new(GoogleADK)
