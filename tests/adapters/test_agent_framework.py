"""Microsoft Agent Framework, as a user writes it, under the laws of adapters."""

import asyncio
import json
from typing import ClassVar

import pytest
from agent_framework import Agent, AgentSession, ChatContext, ChatResponse, Content, Message, tool
from agent_framework_openai import OpenAIChatClient, OpenAIChatCompletionClient
from httpx2 import AsyncClient, AsyncHTTPTransport, Request
from openai import AsyncOpenAI

from refold.adapt import rewind_state
from refold.adapt.agent_framework import CompactionChatMiddleware
from refold.testing.adapters import LAWS, AdapterHarness, turn_costs_what_is_new


class SameIds(AsyncHTTPTransport):
    """Writes the id of a call as the framework does once it has loaded the call from a session, and only then."""

    async def handle_async_request(self, request):
        body = json.loads(request.content)
        for item in body.get("input", ()):
            if item.get("type") == "function_call":
                item["id"] = f"fc_{item['call_id']}"
        del request.headers["content-length"]
        return await super().handle_async_request(Request("POST", request.url, headers=request.headers, json=body))


class Conversation:
    """A session, which a file keeps, and an event loop, to which clients are bound."""

    def __init__(self, setup, name, read, client, options):
        self.loop = asyncio.Runner()
        self.client = AsyncOpenAI(
            base_url=setup.url, api_key="any", max_retries=0, http_client=AsyncClient(transport=SameIds())
        )
        self.file = setup.folder / f"{name}.json"
        stored = self.file.exists()
        self.session = AgentSession.from_dict(json.loads(self.file.read_text())) if stored else AgentSession()
        chat = client(
            model=setup.model,
            async_client=self.client,
            function_invocation_configuration={"max_iterations": 200},
            **options,
        )
        self.agent = Agent(
            chat,
            setup.system,
            tools=[read],
            default_options={"store": False},
            middleware=[CompactionChatMiddleware(**setup.options)],
        )

    def save(self):
        self.file.write_text(json.dumps(self.session.to_dict()))

    def close(self):
        self.loop.run(self.client.close())
        self.loop.close()


def nameless(message, prepared):
    """Leave the agent's name out, which the framework sends with messages that it has loaded, and only with those."""
    return [{key: value for key, value in each.items() if key != "name"} for each in prepared]


class AgentFramework(AdapterHarness):
    format = "openai-chat"
    client = OpenAIChatCompletionClient
    options: ClassVar = {"message_preparer": nameless}

    def __init__(self, setup):
        @tool
        def read(path: str) -> str:
            """Read a part of a program."""
            return setup.read(path)

        self.setup, self.read, self.conversations = setup, read, {}

    def conversation(self, name):
        if name not in self.conversations:
            self.conversations[name] = Conversation(self.setup, name, self.read, self.client, self.options)
        return self.conversations[name]

    def run(self, conversation, text, *, image=None, stream=False):
        talk = self.conversation(conversation)
        pictures = [Content.from_data(image, "image/png")] if image else []
        answer = talk.loop.run(self.turn(talk, Message("user", [text, *pictures]), stream))
        talk.save()
        return answer.text

    async def turn(self, talk, message, stream):
        if not stream:
            return await talk.agent.run(message, session=talk.session)
        answer = talk.agent.run(message, session=talk.session, stream=True)
        async for _ in answer:
            pass
        return await answer.get_final_response()

    def history(self, conversation):
        return self.conversation(conversation).session.state["in_memory"]["messages"]

    def undo(self, conversation):
        state = self.conversation(conversation).session.state
        state["refold"] = rewind_state(state["refold"], 0)

    def close(self):
        for talk in self.conversations.values():
            talk.close()


class ResponsesAPI(AgentFramework):
    """Another API, where reasoning goes back to the provider."""

    format = "openai-responses"
    client = OpenAIChatClient
    options: ClassVar = {}


@pytest.mark.parametrize("law", LAWS)
def test_the_adapter_keeps_the_law(law):
    LAWS[law](AgentFramework)


@pytest.mark.parametrize("law", LAWS)
def test_the_adapter_keeps_the_law_over_the_responses_api(law):
    LAWS[law](ResponsesAPI)


def test_a_turn_costs_what_is_new():
    turn_costs_what_is_new(AgentFramework)


def turn(number):
    """An answer with a call and the result, with what only the framework knows of them."""
    call = Content.from_function_call(f"call_{number}", "read", arguments={"path": f"part_{number}.py"})
    output = "\n".join(f"{line}: limit_{line} = {line * number % 89}" for line in range(200))
    result = Content.from_function_result(f"call_{number}", result=output, additional_properties={"took": number})
    yield Message("assistant", [f"I read part {number}.", call], message_id=f"a{number}", author_name="Reader")
    yield Message("tool", [result], message_id=f"t{number}", additional_properties={"at": number})


def sent(history, **options):
    """What the next in line is given for a history."""
    context = ChatContext(None, history, {})

    async def answer():
        context.result = ChatResponse(messages=[Message("assistant", ["Done."])])

    asyncio.run(CompactionChatMiddleware(**options).process(context, answer))
    return context.messages


def test_what_only_the_framework_knows_survives_in_an_edited_message():
    history = [Message("user", ["Read all parts."]), *(each for number in range(12) for each in turn(number))]
    before = [message.to_dict() for message in history]
    messages = sent(history, window=24_000)
    assert [message.to_dict() for message in history] == before
    originals = {message.message_id: message for message in history if message.message_id}
    results = [(message, originals[message.message_id]) for message in messages if message.role == "tool"]
    edited = [(message, original) for message, original in results if message is not original]
    assert 0 < len(edited) < len(results)
    for message, original in edited:
        (result,), (whole,) = message.contents, original.contents
        assert len(result.result) < len(whole.result)
        assert (result.call_id, result.additional_properties) == (whole.call_id, whole.additional_properties)
        assert message.additional_properties == original.additional_properties


def test_contents_of_the_provider_come_back_as_they_are():
    hosted = [
        Content("mcp_server_tool_call", call_id="m1", tool_name="find", server_name="docs", arguments="{}"),
        Content("mcp_server_tool_result", call_id="m1", output="found"),
        Content.from_hosted_file("file_1"),
    ]
    history = [Message("user", ["Find it."]), Message("assistant", hosted), Message("user", ["Go on."])]
    assert all(map(lambda one, other: one is other, sent(history, window=100_000), history))
