import asyncio
import json

import anthropic
import httpx2
import openai
import pytest

import refold
from refold.errors import UsageError
from refold.testing.provider import Fault, ScriptedProvider, ScriptedReply

SAY = [{"role": "user", "content": "Say hello."}]
WORDS = "Some words that are told in more than one piece, so that a stream has a middle."


def ask(wire, provider, *, stream=False, **options):
    """Speak to a provider over one wire and return the words of the answer; errors are the SDK's own."""
    options = {"max_retries": 0, "api_key": "k", **options}
    if wire == "anthropic":
        with anthropic.Anthropic(base_url=provider.url, **options) as client:
            if not stream:
                return "".join(
                    block.text for block in client.messages.create(model="m", max_tokens=99, messages=SAY).content
                )
            with client.messages.stream(model="m", max_tokens=99, messages=SAY) as events:
                return "".join(events.text_stream)
    with openai.OpenAI(base_url=provider.openai_url, **options) as client:
        if wire == "openai-responses":
            if not stream:
                return client.responses.create(model="m", input=SAY).output_text
            events = list(client.responses.create(model="m", input=SAY, stream=True))
            return "".join(event.delta for event in events if event.type == "response.output_text.delta")
        made = client.chat.completions.create(model="m", messages=SAY, stream=stream)
        if not stream:
            return made.choices[0].message.content
        return "".join(chunk.choices[0].delta.content or "" for chunk in made)


async def ask_async(wire, provider, *, stream=False, **options):
    options = {"max_retries": 0, "api_key": "k", **options}
    if wire == "anthropic":
        async with anthropic.AsyncAnthropic(base_url=provider.url, **options) as client:
            if not stream:
                made = await client.messages.create(model="m", max_tokens=99, messages=SAY)
                return "".join(block.text for block in made.content)
            async with client.messages.stream(model="m", max_tokens=99, messages=SAY) as events:
                return "".join([text async for text in events.text_stream])
    async with openai.AsyncOpenAI(base_url=provider.openai_url, **options) as client:
        if wire == "openai-responses":
            if not stream:
                return (await client.responses.create(model="m", input=SAY)).output_text
            made = await client.responses.create(model="m", input=SAY, stream=True)
            return "".join([event.delta async for event in made if event.type == "response.output_text.delta"])
        made = await client.chat.completions.create(model="m", messages=SAY, stream=stream)
        if not stream:
            return made.choices[0].message.content
        return "".join([chunk.choices[0].delta.content or "" async for chunk in made])


WIRES = pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic"])
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def sdk(wire):
    return anthropic if wire == "anthropic" else openai


@WIRES
@STREAM
def test_an_answer_arrives_whole_over_every_wire(wire, stream):
    with ScriptedProvider([WORDS]) as provider:
        assert ask(wire, provider, stream=stream) == WORDS
        assert asyncio.run(ask_async(wire, provider, stream=stream)) == WORDS
    assert [each.wire for each in provider.received] == [wire, wire]
    assert [each.streaming for each in provider.received] == [stream, stream]


@WIRES
@STREAM
@pytest.mark.parametrize(
    ("kind", "error", "told"),
    [
        ("rate_limit", "RateLimitError", "rate_limit"),
        ("server_error", "InternalServerError", "other"),
        ("overloaded", "InternalServerError", "rate_limit"),
    ],
)
def test_a_provider_that_refuses_raises_the_error_of_the_sdk(wire, stream, kind, error, told):
    with ScriptedProvider([WORDS], faults={1: kind}) as provider:
        with pytest.raises(sdk(wire).APIStatusError) as caught:
            ask(wire, provider, stream=stream)
        assert isinstance(caught.value, getattr(sdk(wire), error))
        assert refold.classify_error(caught.value).kind == told
        assert ask(wire, provider, stream=stream) == WORDS
    assert [each.status for each in provider.received] == [caught.value.status_code, 200]


@WIRES
def test_a_client_that_tries_again_succeeds_after_the_fault(wire):
    with ScriptedProvider([WORDS], faults=[Fault("rate_limit", retry_after=0.01)]) as provider:
        assert ask(wire, provider, max_retries=1) == WORDS
    assert [each.status for each in provider.received] == [429, 200]


@WIRES
def test_the_time_to_wait_is_told_in_the_header(wire):
    refused = pytest.raises(sdk(wire).RateLimitError)
    with ScriptedProvider(faults=[Fault("rate_limit", retry_after=7)]) as provider, refused as caught:
        ask(wire, provider)
    assert caught.value.response.headers["retry-after"] == "7"


@WIRES
@STREAM
def test_a_provider_that_never_answers_times_out_and_ends_at_once(wire, stream):
    with ScriptedProvider([WORDS], faults=["timeout"]) as provider:
        with pytest.raises(sdk(wire).APITimeoutError):
            ask(wire, provider, stream=stream, timeout=0.2)
        assert ask(wire, provider) == WORDS
    assert [each.status for each in provider.received] == [0, 200]


@WIRES
@STREAM
def test_a_cut_connection_is_an_error_and_not_a_short_answer(wire, stream):
    lost = (sdk(wire).APIConnectionError, httpx2.RemoteProtocolError)  # streams of the Anthropic SDK raise the second
    with ScriptedProvider([WORDS], faults=["cut_stream", "cut_stream"]) as provider:
        with pytest.raises(lost):
            ask(wire, provider, stream=stream)
        with pytest.raises(lost):
            asyncio.run(ask_async(wire, provider, stream=stream))
        assert ask(wire, provider, stream=stream) == WORDS


@WIRES
@STREAM
def test_an_empty_answer_has_no_words(wire, stream):
    with ScriptedProvider([WORDS], faults=["empty"]) as provider:
        assert ask(wire, provider, stream=stream) == ""
        assert ask(wire, provider, stream=stream) == WORDS


@WIRES
@STREAM
def test_a_malformed_answer_is_no_json(wire, stream):
    unreadable = pytest.raises((json.JSONDecodeError, sdk(wire).APIError))
    with ScriptedProvider([WORDS], faults=["malformed"]) as provider, unreadable:
        ask(wire, provider, stream=stream)


def test_answers_may_be_faults_and_do_not_count_the_failures_of_others():
    with ScriptedProvider(["one", Fault("server_error"), ScriptedReply("two")], faults={2: "rate_limit"}) as provider:
        said = []
        for _ in range(5):
            try:
                said.append(ask("openai-chat", provider))
            except openai.APIStatusError as error:
                said.append(error.status_code)
    assert said == ["one", 429, 500, "two", "two"]


def test_a_behavior_that_raises_is_told_at_the_end():
    def behave(received):
        raise ValueError("no idea")

    refused = pytest.raises(openai.InternalServerError)
    with pytest.raises(ValueError, match="no idea"), ScriptedProvider(behave=behave) as provider, refused:
        ask("openai-chat", provider)


def test_an_unknown_fault_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match="call 2: there is no fault 'boom'; faults are rate_limit"):
        ScriptedProvider(faults={2: "boom"})


def test_answers_and_a_behavior_exclude_each_other_and_answers_are_a_list():
    with pytest.raises(UsageError, match="answers or behave"):
        ScriptedProvider(["a"], behave=lambda received: "b")
    with pytest.raises(UsageError, match="list"):
        ScriptedProvider("a")
    with pytest.raises(UsageError, match="list"):
        ScriptedProvider([])


def test_without_the_extra_the_error_names_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "refold.testing.provider._http", raising=False)
    with pytest.raises(UsageError, match=r"refold\[testing\]"):
        ScriptedProvider().start()


def test_a_stopped_provider_is_gone_and_frees_its_port():
    with ScriptedProvider() as provider:
        assert ask("openai-chat", provider) == "OK."
    with pytest.raises(openai.APIConnectionError):
        ask("openai-chat", provider)
    provider.stop()
