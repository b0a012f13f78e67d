"""The laws of adapters over a plain agent loop: kept with a pool of tracks, and broken by what only looks like one."""

import base64
import json

import openai
import pytest

from refold.adapt import TrackPool, rewind_state
from refold.testing.adapters import LAWS, AdapterHarness, LawBroken, turn_costs_what_is_new


class PlainLoop(AdapterHarness):
    """A loop over the OpenAI SDK that stores its messages and the plans in a file."""

    format = "openai-chat"

    def __init__(self, setup):
        self.setup = setup
        self.client = openai.OpenAI(base_url=setup.url, api_key="any", max_retries=0)
        self.pool = TrackPool(**setup.options)
        function = {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
        self.tools = [{"type": "function", "function": function}]

    def file(self, conversation):
        return self.setup.folder / f"{conversation}.json"

    def load(self, conversation):
        file = self.file(conversation)
        start = [{"role": "system", "content": self.setup.system}], ""
        return json.loads(file.read_text()) if file.exists() else start

    def run(self, conversation, text, *, image=None, stream=False):
        messages, state = self.load(conversation)
        picture = [{"type": "image_url", "image_url": {"url": data_url(image)}}] if image else []
        messages.append({"role": "user", "content": [{"type": "text", "text": text}, *picture]})
        while True:
            message, state = self.answer(messages, state, stream)
            messages.append(message)
            messages += [self.result(call) for call in message.get("tool_calls", ())]
            if "tool_calls" not in message:
                self.file(conversation).write_text(json.dumps([messages, state]))
                return message["content"]

    def answer(self, messages, state, stream):
        with self.pool.track(messages, state=state) as track:
            view = track.fold(messages, tools=self.tools)
            while True:
                try:
                    return self.call(view.messages, stream), track.dump()
                except openai.BadRequestError as error:
                    view = track.recover(error)

    def call(self, messages, stream):
        request = {"model": self.setup.model, "messages": messages, "tools": self.tools}
        if stream:
            with self.client.chat.completions.stream(**request) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = self.client.chat.completions.create(**request).choices[0].message
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls or ()
        ]
        return {"role": "assistant", "content": message.content} | ({"tool_calls": calls} if calls else {})

    def result(self, call):
        try:
            output = self.setup.read(**json.loads(call["function"]["arguments"]))
        except OSError as error:
            output = f"Error: {error}"
        return {"role": "tool", "tool_call_id": call["id"], "content": output}

    def history(self, conversation):
        return self.load(conversation)[0]

    def undo(self, conversation):
        messages, state = self.load(conversation)
        self.file(conversation).write_text(json.dumps([messages, rewind_state(state, 0)]))

    def close(self):
        self.client.close()


def data_url(image):
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


@pytest.mark.parametrize("law", LAWS)
def test_a_loop_with_a_pool_of_tracks_keeps_the_law(law):
    LAWS[law](PlainLoop)


def test_in_a_loop_with_a_pool_of_tracks_a_turn_costs_what_is_new():
    turn_costs_what_is_new(PlainLoop)


class Uncompacted(PlainLoop):
    """It sends everything."""

    def answer(self, messages, state, stream):
        return self.call(messages, stream), state


class Trimming(Uncompacted):
    """It sends, and stores, the newest messages alone."""

    def answer(self, messages, state, stream):
        start = max(len(messages) - 8, 2)
        while messages[start:] and messages[start]["role"] != "assistant":
            start += 1
        messages[2:start] = []
        return super().answer(messages, state, stream)


class Forgetful(PlainLoop):
    """It plans anew before each call, and has no state."""

    def answer(self, messages, state, stream):
        self.pool = TrackPool(**self.setup.options)
        return super().answer(messages, "", stream)[0], ""


class Torn(PlainLoop):
    """It leaves a result out."""

    def call(self, messages, stream):
        results = [message for message in messages if message["role"] == "tool"]
        return super().call([message for message in messages if message not in results[:-6][-1:]], stream)


class Shared(PlainLoop):
    """All its conversations are one."""

    def file(self, conversation):
        return super().file("all")


@pytest.mark.parametrize(
    ("harness", "law"),
    [
        (Uncompacted, "running turn bounded"),
        (Uncompacted, "retry after overflow"),
        (Trimming, "originals kept"),
        (Forgetful, "prefix stable"),
        (Forgetful, "undo after a restart"),
        (Torn, "valid requests"),
        (Torn, "parallel calls"),
        (Shared, "two threads"),
    ],
)
def test_what_is_no_adapter_breaks_the_law(harness, law):
    with pytest.raises((LawBroken, openai.BadRequestError, openai.InternalServerError)):
        LAWS[law](harness)


def test_work_that_grows_with_the_history_breaks_the_law_of_what_a_turn_costs():
    with pytest.raises(LawBroken, match="a turn counts"):
        turn_costs_what_is_new(Forgetful)
