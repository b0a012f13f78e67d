"""Reasoning that a provider refuses leaves the conversation once; the next calls go without it."""

import json

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors

from refold.testing.provider import ScriptedReply
from tests.gateway.scripted_upstream import call
from tests.gateway.talking import opened


class Claude:
    """An agent on the Messages API that thinks before each call."""

    mark = "sig000"
    wire = "anthropic"

    def __init__(self, url):
        self.client = opened(anthropic.Anthropic(base_url=url, api_key="k", max_retries=0))
        self.messages = [{"role": "user", "content": "Read all files."}]
        self.turn()

    def turn(self):
        number = len(self.messages)
        thought = {"type": "thinking", "thinking": "Next.", "signature": f"sig{number:060}"}
        made = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "words"}
        self.messages += [{"role": "assistant", "content": [thought, made]}, {"role": "user", "content": [result]}]

    def ask(self):
        create = self.client.messages.with_raw_response.create
        return create(model="claude-opus-4-6", max_tokens=99, messages=self.messages).headers


class Chat:
    """An agent on chat completions behind a router that hands Claude's sealed thinking through."""

    mark = "sealed-by-"
    wire = "openai-chat"

    def __init__(self, url):
        self.client = opened(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
        self.messages = [{"role": "user", "content": "Hello"}]
        self.turn()

    def turn(self):
        details = [{"type": "reasoning.encrypted", "data": f"sealed-by-{len(self.messages)}"}]
        self.messages += [
            {"role": "assistant", "content": "Hi.", "reasoning_details": details},
            {"role": "user", "content": "Go on."},
        ]

    def ask(self):
        return self.client.chat.completions.with_raw_response.create(model="gpt-4o", messages=self.messages).headers


class Responses:
    """An agent on the Responses API, stateless, with encrypted reasoning."""

    mark = "gAAAx"
    wire = "openai-responses"

    def __init__(self, url):
        self.client = opened(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
        self.messages = [{"role": "user", "content": "Read all files."}]
        self.turn()

    def turn(self):
        number = len(self.messages)
        sealed = f"gAAAx{number:060}"
        self.messages += [
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": sealed},
            {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{number}", "output": "words"},
        ]

    def ask(self):
        create = self.client.responses.with_raw_response.create
        return create(model="gpt-5", input=self.messages, store=False).headers


CURABLE = pytest.mark.parametrize("talker", [Claude, Chat, Responses], ids=lambda talker: talker.wire)


def told(headers):
    return {name.lower().removeprefix("x-refold-"): value for name, value in headers.items()}


def marked(received, mark):
    return json.dumps(received.body).count(mark)


@CURABLE
def test_refused_reasoning_leaves_and_the_next_call_goes_without_it(gateway, talker):
    serving, provider = gateway(faults=["reasoning_invalid"])
    agent = talker(serving.url)
    headers = told(agent.ask())
    assert [each.status for each in provider.received] == [400, 200]
    assert [marked(each, agent.mark) for each in provider.received] == [1, 0]
    assert (headers["done"], headers["reason"]) == ("reasoning-removed", "reasoning")
    agent.turn()
    assert told(agent.ask())["done"] == "compacted"
    assert [each.status for each in provider.received] == [400, 200, 200]
    assert marked(provider.received[-1], agent.mark) == 1, "what the model thought since stays"
    page = call(serving.url, "GET", "/metrics")[2].decode()
    assert "refold_reasoning_retries_total 1.0" in page


@CURABLE
def test_reasoning_that_is_refused_again_reaches_the_client_as_the_provider_says_it(gateway, talker):
    serving, provider = gateway(faults=["reasoning_invalid", "reasoning_invalid"])
    agent = talker(serving.url)
    with pytest.raises((anthropic.BadRequestError, openai.BadRequestError)) as refused:
        agent.ask()
    assert [each.status for each in provider.received] == [400, 400]
    assert told(refused.value.response.headers)["done"] == "reasoning-removed"


@CURABLE
def test_reasoning_that_is_missing_reaches_the_client_at_once(gateway, talker):
    serving, provider = gateway(faults=["reasoning_missing"])
    with pytest.raises((anthropic.BadRequestError, openai.BadRequestError)) as refused:
        talker(serving.url).ask()
    assert len(provider.received) == 1
    assert told(refused.value.response.headers)["done"] == "forwarded"


def test_a_conversation_without_reasoning_gets_the_refusal_as_it_is(gateway):
    serving, provider = gateway(faults=["reasoning_invalid"])
    agent = Claude(serving.url)
    agent.messages = agent.messages[:1]
    with pytest.raises(anthropic.BadRequestError) as refused:
        agent.ask()
    assert (len(provider.received), "failed" in told(refused.value.response.headers)) == (1, True)


def test_a_shadow_changes_nothing(gateway):
    serving, provider = gateway(faults=["reasoning_invalid"], shadow=True)
    with pytest.raises(anthropic.BadRequestError):
        Claude(serving.url).ask()
    assert len(provider.received) == 1


def gemini_talk():
    contents = []
    for turn in range(2):
        made = {"function_call": {"name": "read", "args": {}}, "thought_signature": b"signed" * 4}
        answer = {"function_response": {"name": "read", "response": {"output": "words"}}}
        contents += [
            {"role": "user", "parts": [{"text": f"Part {turn}?"}]},
            {"role": "model", "parts": [made]},
            {"role": "user", "parts": [answer]},
            {"role": "model", "parts": [{"text": "Done."}]},
        ]
    return contents[:-1]


@pytest.mark.parametrize(("faults", "signed", "done"), [(1, 2, "resent"), (2, 1, "reasoning-removed"), (3, 1, None)])
def test_gemini_is_asked_once_more_and_then_without_the_signatures_of_older_turns(gateway, faults, signed, done):
    serving, provider = gateway(faults=["reasoning_invalid"] * faults)
    client = opened(genai.Client(api_key="k", http_options={"base_url": serving.url}))
    ask = client.models.generate_content
    if done is None:
        with pytest.raises(errors.ClientError, match="Corrupted"):
            ask(model="gemini-3-pro", contents=gemini_talk())
    else:
        headers = ask(model="gemini-3-pro", contents=gemini_talk()).sdk_http_response.headers
        assert told(headers)["done"] == done
    assert [each.status for each in provider.received] == ([400] * faults + [200])[:3]
    assert marked(provider.received[-1], "ignature") == signed


def test_an_overflow_and_a_refusal_of_reasoning_in_one_request_are_both_answered(gateway):
    serving, provider = gateway(limit=4_000, window=100_000, faults={2: "reasoning_invalid"})
    agent = Claude(serving.url)
    for number in range(12):
        agent.turn()
        agent.messages[-1]["content"][0]["content"] = f"line {number} " * 400
    headers = told(agent.ask())
    assert [each.status for each in provider.received] == [400, 400, 200]
    assert headers["done"] == "reasoning-removed"
    assert marked(provider.received[-1], agent.mark) == 0


class Preserving(Claude):
    """An agent on a model that binds its thinking, with a system prompt that changes once."""

    def __init__(self, url):
        self.client = opened(anthropic.Anthropic(base_url=url, api_key="k", max_retries=0))
        self.messages = [{"role": "user", "content": "Read all files."}]
        self.system = "It is nine o'clock."

    def ask(self):
        create = self.client.messages.with_raw_response.create
        made = create(model="claude-opus-5-5", max_tokens=999, system=self.system, messages=self.messages)
        content = [block.model_dump(exclude_none=True) for block in made.parse().content]
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "words"}
            for block in content
            if block["type"] == "tool_use"
        ]
        said = {"role": "user", "content": results or "Go on."}
        self.messages += [{"role": "assistant", "content": content}, said]
        return made.headers


def test_a_session_of_claude_survives_a_change_before_its_thinking(gateway):
    serving, provider = gateway([ScriptedReply("", [("read", {"path": "a.py"})], thinking="Next.")])
    agent = Preserving(serving.url)
    for _ in range(3):
        assert told(agent.ask())["done"] == "forwarded"
    agent.system = "It is ten o'clock."
    assert told(agent.ask())["done"] == "reasoning-removed"
    for _ in range(3):
        assert told(agent.ask())["done"] == "compacted"
    assert [each.status for each in provider.received] == [200, 200, 200, 400, 200, 200, 200, 200]
    assert marked(provider.received[-1], '"thinking"') == 2 * 3, "what was thought since the change stays"
