import asyncio
import sys
import threading

import pytest

import refold
from refold.clients._factory import TIMEOUT, async_client, client, recounting
from refold.clients._openai import ChatSpeech
from refold.clients._protocol import BadReply
from refold.clients._sdk import CONNECTIONS, KEPT_ALIVE
from refold.core.messages import ToolCall, text_of
from refold.errors import UsageError
from refold.handlers import Handlers
from refold.models._usage_report import reported
from refold.recovery._run import arecovering
from refold.summaries.summarizers import model_summarizer, retrying
from refold.testing.provider import Fault, ScriptedProvider

ASK = [{"role": "user", "content": "Hello"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
SAID = "Everything so far was about words and their numbers, and it goes on. " * 9
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}


def chat(message, stop="stop", **rest):
    return {
        "id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE,
        "choices": [{"index": 0, "message": message, "finish_reason": stop}], **rest,
    }  # fmt: skip


def piece(delta, stop=None, **rest):
    return {
        "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": stop}], **rest,
    }  # fmt: skip


def claude(*blocks, stop="end_turn", usage=None):
    return {
        "id": "m", "type": "message", "role": "assistant", "model": "claude", "content": list(blocks),
        "stop_reason": stop, "stop_sequence": None, "usage": usage or {"input_tokens": 9, "output_tokens": 4},
    }  # fmt: skip


class Awaited:
    """An asynchronous client in a loop of its own, so that one test holds for both kinds."""

    def __init__(self, *args, **named):
        self.loop = asyncio.Runner()
        self.client = async_client(*args, **named)

    def complete(self, *args, **named):
        return self.loop.run(self.client.complete(*args, **named))

    def count(self, *args, **named):
        return self.loop.run(self.client.count(*args, **named))

    def close(self):
        self.loop.run(self.client.close())
        self.loop.close()


@pytest.fixture(params=[client, Awaited])
def openai(server, request):
    found = request.param("gpt-x", f"{server.url}/v1")
    yield found
    found.close()


@pytest.fixture(params=[client, Awaited])
def anthropic(server, request):
    found = request.param("claude-x", server.url, wire="anthropic")
    yield found
    found.close()


def test_the_wire_is_told_from_the_model_and_the_address(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert client("claude-sonnet-4-5").format == "anthropic"
    assert client("gpt-4o").format == "openai-chat"
    assert client("claude-sonnet-4-5", "http://127.0.0.1:1/v1").format == "openai-chat"
    assert client("any", "https://api.anthropic.com").format == "anthropic"
    assert client("any", "http://127.0.0.1:1/v1", wire="anthropic").format == "anthropic"


def test_a_client_that_cannot_be_says_what_to_give(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UsageError, match="set OPENAI_API_KEY"):
        client("gpt-4o")
    with pytest.raises(UsageError, match="set ANTHROPIC_API_KEY"):
        client("claude-x")
    with pytest.raises(UsageError, match="is no base URL"):
        client("gpt-4o", "localhost:8000")
    with pytest.raises(UsageError, match="no wire is called"):
        client("gpt-4o", wire="smoke")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no model was named"):
        client(" ")


@pytest.mark.parametrize(("package", "wire"), [("openai", "openai-chat"), ("anthropic", "anthropic")])
def test_an_sdk_that_is_not_installed_is_named_with_its_extra(package, wire, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=rf"pip install 'refold\[{package}\]'"):
        client("m", "http://127.0.0.1:1", wire=wire)


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("make", [client, async_client])
def test_timeout_and_pool_are_set_and_the_sdk_does_not_retry(wire, make):
    sdk = make("m", "http://127.0.0.1:1", wire=wire).sdk
    pool = sdk._client._transport._pool
    assert (sdk.timeout, sdk.max_retries) == (TIMEOUT, 0) == (720, 0)
    assert (pool._max_connections, pool._max_keepalive_connections) == (CONNECTIONS, KEPT_ALIVE) == (10, 5)


def test_arguments_that_a_server_sends_as_an_object_are_read_as_json(server, openai):
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": {"path": "a.py"}}}
    server.says(chat({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"))
    assert openai.complete(ASK).calls == (ToolCall("c1", "read", '{"path":"a.py"}'),)


def test_a_failure_of_the_function_that_gets_the_text_is_not_tried_again(server, openai):
    def broken(text):
        raise BrokenPipeError("nobody reads any more")

    server.streams(piece({"content": "Hi"}), piece({}, "stop")).streams(piece({"content": "Hi"}), piece({}, "stop"))
    with pytest.raises(BrokenPipeError):
        retrying(openai.complete, waits=(0.0,), sleep=lambda seconds: None)(ASK, on_text=broken)
    assert len(server.requests) == 1


def test_half_an_emoji_in_a_request_is_sent_as_a_replacement_sign(server, openai, anthropic):
    half = [{"role": "user", "content": "cut \ud83d"}]
    server.says(chat({"role": "assistant", "content": "Yes"})).says(claude({"type": "text", "text": "Yes"}))
    for model in (openai, anthropic):
        assert model.complete(half, system="too \ud83d", max_tokens=9).text == "Yes"
    assert [sent["messages"][-1]["content"] for _, sent in server.requests] == ["cut \ufffd"] * 2
    assert half == [{"role": "user", "content": "cut \ud83d"}]


def test_a_chat_answer_comes_back_as_the_provider_gave_it(server, openai):
    message = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [CALL], "refusal": None}
    server.says(chat(message, "tool_calls"))
    reply = openai.complete(
        ASK, system="Be brief", tools=[{"type": "function", "function": {"name": "read"}}], max_tokens=7
    )
    assert reply.message == {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [CALL]}
    assert reply.calls == (ToolCall("c1", "read", '{"path": "a.py"}'),)
    assert (reply.text, reply.stop, reply.usage, reply.cut) == ("", "tool_calls", USAGE, False)
    path, sent = server.requests[0]
    assert path == "/v1/chat/completions"
    assert sent["messages"] == [{"role": "system", "content": "Be brief"}, *ASK]
    assert (sent["max_tokens"], sent["tools"][0]["function"]["name"]) == (7, "read")
    assert refold.violations([*ASK, reply.message, {"role": "tool", "tool_call_id": "c1", "content": "x"}]) == ()


def test_a_streamed_chat_answer_is_the_same_message(server, openai):
    message = {"role": "assistant", "content": "I look", "reasoning_content": "hm so", "tool_calls": [CALL]}
    server.says(chat(message, "tool_calls"))
    start, end = {**CALL, "index": 0, "function": {"name": "read", "arguments": ""}}, '{"path": "a.py"}'
    server.streams(
        piece({"role": "assistant", "content": "", "reasoning_content": "hm"}),
        piece({"reasoning_content": " so"}),
        piece({"content": "I "}),
        piece({"content": "look"}),
        piece({"tool_calls": [start]}),
        piece({"tool_calls": [{"index": 0, "function": {"arguments": end[:5]}}]}),
        piece({"tool_calls": [{"index": 0, "function": {"arguments": end[5:]}}]}, "tool_calls"),
        {**piece({}), "choices": [], "usage": USAGE},
    )
    told = []
    whole, streamed = openai.complete(ASK), openai.complete(ASK, on_text=told.append)
    assert streamed == whole
    assert streamed.message == message
    assert told == ["I ", "look"]
    assert server.requests[1][1]["stream_options"] == {"include_usage": True}


def test_two_streamed_calls_do_not_run_into_each_other(server, openai):
    parts = [
        {
            "index": number,
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "read", "arguments": f"[{number}"},
        }
        for number in (0, 1)
    ]
    rest = [{"index": number, "function": {"arguments": "]"}} for number in (1, 0)]
    server.streams(*(piece({"tool_calls": [part]}) for part in (*parts, *rest)), piece({}, "tool_calls"))
    reply = openai.complete(ASK, on_text=str)
    assert [(call.call_id, call.arguments) for call in reply.calls] == [("c0", "[0]"), ("c1", "[1]")]


def test_choices_that_were_asked_for_do_not_run_into_the_first(server, openai):
    second = {"index": 1, "delta": {"content": "Ho"}, "finish_reason": None}
    server.streams(
        piece({"content": "He"}), {**piece({}), "choices": [second]}, piece({"content": "llo"}),
        {**piece({}), "choices": [{**second, "finish_reason": "stop"}]}, piece({}, "length"),
    )  # fmt: skip
    told = []
    reply = openai.complete(ASK, on_text=told.append)
    assert (reply.message, reply.stop, told) == ({"role": "assistant", "content": "Hello"}, "length", ["He", "llo"])


@pytest.mark.parametrize("index", [0, None])
def test_calls_that_a_server_does_not_number_are_calls_of_their_own(server, openai, index):
    calls = [{**CALL, "id": id, **({} if index is None else {"index": index})} for id in ("c1", "c2")]
    server.streams(*(piece({"tool_calls": [call]}) for call in calls), piece({}, "tool_calls"))
    reply = openai.complete(ASK, on_text=str)
    assert reply.message["tool_calls"] == [{**CALL, "id": "c1"}, {**CALL, "id": "c2"}]
    assert [call.arguments for call in reply.calls] == ['{"path": "a.py"}'] * 2


def test_a_stream_that_ends_early_is_no_answer(server, openai):
    server.streams(piece({"content": "half"}))
    with pytest.raises(BadReply, match="ended before the answer was complete"):
        openai.complete(ASK, on_text=str)


def test_an_answer_that_is_no_completion_says_so(server, openai):
    server.says("<html>hello</html>", kind="text/html")
    with pytest.raises(BadReply, match="check the base URL"):
        openai.complete(ASK)


def test_an_error_inside_a_success_is_recognized(server, openai):
    error = {"code": 400, "message": "This model's maximum context length is 8192 tokens. However, you requested 9000"}
    server.says({"id": "x", "object": "chat.completion", "choices": None, "error": error})
    with pytest.raises(BadReply) as caught:
        openai.complete(ASK)
    assert refold.classify_error(caught.value).kind == "context_overflow"


def test_a_refusal_of_the_provider_is_raised_as_the_sdk_raises_it(server, openai, anthropic):
    import anthropic as anthropic_sdk
    import openai as openai_sdk

    words = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    server.says({"error": {"message": words, "code": "context_length_exceeded"}}, 400)
    with pytest.raises(openai_sdk.BadRequestError) as caught:
        openai.complete(ASK)
    assert refold.classify_error(caught.value).limit == 8192
    error = {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}
    server.says({"type": "error", "error": error}, 400)
    with pytest.raises(anthropic_sdk.BadRequestError) as other:
        anthropic.complete(ASK)
    assert refold.classify_error(other.value).kind == "context_overflow"


def test_openai_counts_by_a_call_of_16_tokens(server, openai):  # V08
    server.says(chat({"role": "assistant", "content": "x"}, "length"))
    assert openai.count(ASK) == 9
    assert server.requests[0][1]["max_tokens"] == 16


def test_openai_and_azure_are_told_the_most_in_the_word_their_newer_models_take(monkeypatch):
    def word(base_url):
        return list(ChatSpeech("m", base_url, {}).body(ASK, None, None, 7))[-1]

    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert word("https://me.openai.azure.com/openai/v1/") == "max_completion_tokens"
    assert word(None) == "max_completion_tokens"
    assert word("http://127.0.0.1:1/v1") == "max_tokens"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert word(None) == "max_tokens"


THINKING = {"type": "thinking", "thinking": "hm", "signature": "s1"}
USE = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}}


def test_a_claude_answer_comes_back_with_its_signed_thinking(server, anthropic):
    server.says(claude(THINKING, {"type": "text", "text": "I look"}, USE, stop="tool_use"))
    reply = anthropic.complete(ASK, system=[{"type": "text", "text": "Be brief"}], max_tokens=7)
    assert reply.message == {"role": "assistant", "content": [THINKING, {"type": "text", "text": "I look"}, USE]}
    assert reply.calls == (ToolCall("t1", "read", '{"path": "a.py"}'),)
    assert (reply.text, reply.stop) == ("I look", "tool_use")
    assert server.requests[0][1]["system"] == [{"type": "text", "text": "Be brief"}]
    assert server.requests[0][1]["max_tokens"] == 7
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}
    assert refold.violations([*ASK, reply.message, result], format="anthropic") == ()


def test_a_streamed_claude_answer_is_the_same_message(server, anthropic):
    server.says(claude(THINKING, {"type": "text", "text": "I look"}, USE, stop="tool_use"))
    deltas = [
        (0, {**THINKING, "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "hm"}),
        (0, None, {"type": "signature_delta", "signature": "s1"}),
        (1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I "}),
        (1, None, {"type": "text_delta", "text": "look"}),
        (2, {**USE, "input": {}}, {"type": "input_json_delta", "partial_json": '{"path": "a.py"}'}),
    ]
    events = [{"type": "message_start", "message": claude(stop=None, usage={"input_tokens": 9, "output_tokens": 1})}]
    for index, block, delta in deltas:
        if block:
            events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
    events += [{"type": "content_block_stop", "index": index} for index in range(3)]
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    events += [{"type": "message_delta", "delta": end, "usage": {"output_tokens": 4}}, {"type": "message_stop"}]
    server.streams(*events, named=True)
    told = []
    whole, streamed = anthropic.complete(ASK), anthropic.complete(ASK, on_text=told.append)
    assert streamed.message == whole.message
    assert (streamed.text, streamed.stop, streamed.calls) == (whole.text, whole.stop, whole.calls)
    assert reported(streamed.usage) == reported(whole.usage)
    assert told == ["I ", "look"]


def block(index, start, *deltas):
    yield {"type": "content_block_start", "index": index, "content_block": start}
    yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop", "index": index}


def message(*blocks, stop):
    start = {"type": "message_start", "message": claude(stop=None)}
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 4}}
    return [start, *(event for events in blocks for event in events), end, {"type": "message_stop"}]


def test_blocks_of_claude_that_the_sdk_does_not_add_up_are_whole(server, anthropic):
    asked = {"type": "mcp_tool_use", "id": "m1", "name": "query", "server_name": "db", "input": {}}
    odd = {"type": "odd", "odd": ""}
    events = message(
        block(0, asked, *({"type": "input_json_delta", "partial_json": text} for text in ('{"sql":', ' "x"}'))),
        block(1, odd, {"type": "odd_delta", "odd": "a"}, {"type": "odd_delta", "odd": "b"}),
        stop="end_turn",
    )
    server.streams(*events, named=True)
    reply = anthropic.complete(ASK, on_text=str)
    assert reply.message["content"] == [{**asked, "input": {"sql": "x"}}, {"type": "odd", "odd": "ab"}]
    assert reply.calls == ()


def test_arguments_of_claude_that_were_cut_are_kept_as_they_came(server, anthropic):
    cut = {"type": "input_json_delta", "partial_json": '{"path": "a.p'}
    server.streams(*message(block(0, {**USE, "input": {}}, cut), stop="max_tokens"), named=True)
    reply = anthropic.complete(ASK, on_text=str)
    assert reply.cut
    assert reply.message["content"] == [{**USE, "input": {"": '{"path": "a.p'}}]


def test_a_message_of_claude_that_breaks_off_is_no_answer(server, anthropic):
    server.streams(*message(block(0, {"type": "text", "text": "half"}), stop="end_turn")[:-2], named=True)
    with pytest.raises(BadReply, match="ended before the answer was complete") as caught:
        anthropic.complete(ASK, on_text=str)
    assert caught.value.body["content"] == [{"type": "text", "text": "half"}]


def test_claude_counts_by_its_endpoint_and_by_a_small_call_where_there_is_none(server, anthropic):  # V08
    server.says({"input_tokens": 12})
    assert anthropic.count(ASK, "Be brief") == 12
    assert server.requests[0][0] == "/v1/messages/count_tokens"
    server.says({"type": "error", "error": {"type": "not_found_error", "message": "no"}}, 404)
    server.says(
        claude(
            {"type": "text", "text": "x"}, usage={"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 5}
        )
    )
    assert anthropic.count(ASK) == 14
    assert server.requests[2][1]["max_tokens"] == 16


def test_claude_is_given_a_number_of_tokens_although_nobody_named_one(server, anthropic):
    server.says(claude({"type": "text", "text": "x"}))
    anthropic.complete(ASK)
    assert server.requests[0][1]["max_tokens"] == 16_384


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_a_policy_that_counts_again_gets_the_provider_s_own_count(wire):  # V08
    talk = [{"role": role, "content": "word " * 300} for _ in range(20) for role in ("user", "assistant")]
    with ScriptedProvider(["x"]) as provider:
        ours = client("m", provider.url if wire == "anthropic" else provider.openai_url, wire=wire)
        handlers = Handlers(summarize=lambda need: "All was said. " * 9, count=recounting(ours, system="Be brief."))
        result = refold.compact(talk, format=wire, policy="vibe", window=8_000, force=True, handlers=handlers)
        ours.close()
    assert not [step.refused for step in result.plan.steps if step.refused]
    if wire == "openai-chat":
        assert provider.received[0].tokens < 500
        assert provider.received[0].max_output == 16


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_words_can_be_awaited_as_they_come(wire):
    told = []

    async def on_text(text):
        await asyncio.sleep(0)
        told.append(text)

    async def ask(url):
        ours = async_client("m", url, wire=wire)
        reply = await ours.complete(ASK, on_text=on_text)
        await ours.close()
        return reply

    with ScriptedProvider(["Hello, how are you?"]) as provider:
        reply = asyncio.run(ask(provider.url if wire == "anthropic" else provider.openai_url))
    assert "".join(told) == reply.text == "Hello, how are you?"


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_calls_of_one_asynchronous_client_run_side_by_side(wire):
    async def ask(url):
        ours = async_client("m", url, wire=wire, timeout=5)
        slow = asyncio.create_task(ours.complete([{"role": "user", "content": "Wait"}]))  # never answered
        replies = await asyncio.gather(*(ours.complete(ASK) for _ in range(3)))
        slow.cancel()
        await asyncio.wait([slow])
        await ours.close()
        return [reply.text for reply in replies]

    def behave(received):
        return Fault("timeout") if text_of(received.messages[0]) == "Wait" else "Hello"

    with ScriptedProvider(behave=behave) as provider:
        assert asyncio.run(ask(provider.url if wire == "anthropic" else provider.openai_url)) == ["Hello"] * 3


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_an_asyncio_agent_compacts_and_recovers_without_a_thread(wire):
    talk = [{"role": role, "content": f"word {n} " * 300} for n in range(20) for role in ("user", "assistant")]
    talk.append({"role": "user", "content": "Go on."})
    threads = []

    def behave(received):
        threads.append(threading.active_count())
        asked = received.system or received.messages[0].role == "system"
        return SAID if asked else "Done."

    async def ask(url):
        ours = async_client("m", url, wire=wire)
        summarize = retrying(model_summarizer(ours, window=100_000), waits=())
        handlers = Handlers(summarize=summarize, count=recounting(ours))
        result = await refold.acompact(
            talk, format=wire, policy="vibe", window=8_000, counter="exact", force=True, handlers=handlers
        )
        made = await arecovering(ours.complete, talk, format=wire, policy="opal", window=60_000, handlers=handlers)
        await ours.close()
        return result, made

    with ScriptedProvider(behave=behave, window=16_000) as provider:
        result, made = asyncio.run(ask(provider.url if wire == "anthropic" else provider.openai_url))
    assert not [step.refused for step in result.plan.steps if step.refused]
    assert "words and their numbers" in str(result.messages)
    assert made.reply.text == "Done."
    assert made.passes == 1
    assert len(set(threads)) == 1  # the server's alone


def test_an_empty_stream_of_claude_is_no_answer(server, anthropic):
    server.says("", kind="text/event-stream")
    with pytest.raises(BadReply, match="ended before the answer was complete"):
        anthropic.complete(ASK, on_text=str)


def test_a_server_that_reports_no_usage_cannot_count(server, openai):
    body = chat({"role": "assistant", "content": "x"}, "length")
    del body["usage"]
    server.says(body)
    with pytest.raises(BadReply, match="reports no usage"):
        openai.count(ASK)
