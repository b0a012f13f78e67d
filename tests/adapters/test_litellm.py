"""LiteLLM's callback, as a user registers it, under the laws of adapters; the agent is a loop around its SDK."""

import asyncio
import base64
import json
import shelve

import litellm
import pytest

from refold.adapt.litellm import CompactionCallback
from refold.testing.adapters import LAWS, AdapterHarness, turn_costs_what_is_new

TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Read a part of a program.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
litellm.suppress_debug_info = True
pytestmark = pytest.mark.filterwarnings("default")  # its own, of pydantic and of sockets, are not for us to mend


class Loop(AdapterHarness):
    """A loop that stores its messages as JSON; `again` is the second name of the model, for a refused request."""

    format = "openai-chat"

    def __init__(self, setup):
        self.setup = setup
        self.states = shelve.open(str(setup.folder / "plans"))  # noqa: SIM115
        self.compaction = CompactionCallback(states=self.states, **setup.options)
        litellm.callbacks = [self.compaction]
        deployment = {"model": f"openai/{setup.model}", "api_base": setup.url, "api_key": "any", "max_retries": 0}
        self.router = litellm.Router(
            model_list=[{"model_name": name, "litellm_params": deployment} for name in ("model", "again")],
            context_window_fallbacks=[{"model": ["again"]}],
            num_retries=0,
        )

    def run(self, conversation, text, *, image=None, stream=False):
        return asyncio.run(self.turn(conversation, text, image, stream))

    async def turn(self, conversation, text, image, stream):
        messages = self.history(conversation) or [{"role": "system", "content": self.setup.system}]
        messages.append({"role": "user", "content": content(text, image)})
        while True:
            answer = await self.call(messages, stream)
            messages.append(answer)
            results = [self.result(call) for call in answer.get("tool_calls") or ()]
            messages += results
            self.path(conversation).write_text(json.dumps(messages))
            if not results:
                return answer["content"]

    async def call(self, messages, stream):
        response = await self.router.acompletion("model", messages, tools=[TOOL], stream=stream)
        if stream:
            response = litellm.stream_chunk_builder([chunk async for chunk in response])
        return response.choices[0].message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})

    def result(self, call):
        try:
            output = self.setup.read(**json.loads(call["function"]["arguments"]))
        except OSError as error:
            output = f"error: {error}"
        return {"role": "tool", "tool_call_id": call["id"], "content": output}

    def path(self, conversation):
        return self.setup.folder / f"{conversation}.json"

    def history(self, conversation):
        path = self.path(conversation)
        return json.loads(path.read_text()) if path.exists() else []

    def undo(self, conversation):
        self.compaction.rewind(self.history(conversation), 0)

    def close(self):
        self.states.close()


def content(text, image):
    if image is None:
        return text
    url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]


@pytest.mark.parametrize("law", LAWS)
def test_the_adapter_keeps_the_law(law):
    LAWS[law](Loop)


def test_a_turn_costs_what_is_new():
    turn_costs_what_is_new(Loop)


def test_a_message_of_an_answer_may_be_appended_as_it_is():
    messages = [{"role": "user", "content": "Hello."}, litellm.Message(role="assistant", content="What can I do?")]
    call = {"messages": messages, "model": "gpt-4o"}
    changed = asyncio.run(CompactionCallback().async_pre_call_deployment_hook(call, "acompletion"))
    assert changed["messages"][1] is messages[1]


def test_an_answer_to_a_call_that_is_not_logged_is_passed_over():
    callback = CompactionCallback()
    for end in (
        callback.async_post_call_success_deployment_hook({}, object(), "acompletion"),
        callback.async_post_call_failure_deployment_hook({}, ValueError(), "acompletion"),
    ):
        assert asyncio.run(end) is None
