import base64
import struct
import zlib

import anthropic
import httpx2
import openai
import pytest

import refold
from refold.core.counting import CharCounter
from refold.testing.provider import ScriptedProvider, ScriptedReply

TASK = {"role": "user", "content": "Read the file."}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
USE = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
GOT = {"type": "tool_result", "tool_use_id": "t1", "content": "text"}
LONG = "word " * 3_000


@pytest.fixture(scope="module")
def provider():
    with ScriptedProvider() as provider:
        yield provider


def refused(provider, path, body, **headers):
    """Post a body without any SDK, which would refuse some of them itself; return status, error and its words."""
    made = httpx2.post(provider.url + path, json=body, headers=headers)
    error = made.json()["error"]
    return made.status_code, error, error["message"]


def chat(provider, messages, **more):
    return refused(provider, "/v1/chat/completions", {"model": "gpt-5", "messages": messages, **more})


def responses(provider, items, **more):
    return refused(provider, "/v1/responses", {"model": "gpt-5", "input": items, **more})


def claude(provider, messages, **more):
    return refused(
        provider, "/v1/messages", {"model": "claude-opus-4-8", "max_tokens": 9, "messages": messages, **more}
    )


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([TASK, ASKED], "tool_call_ids did not have response messages: c1"),
        ([TASK, ASKED, TASK], "tool_call_ids did not have response messages: c1"),
        (
            [TASK, {"role": "tool", "tool_call_id": "c9", "content": "x"}],
            "messages with role 'tool' must be a response",
        ),
        ([{"role": "robot", "content": "x"}], "Invalid value: 'robot'. Supported values are: 'developer'"),
        ([], "empty array"),
        ("x", "Missing required parameter: 'messages'"),
        ([{"role": "user", "content": None}], "expected one of a string or an array, but got null instead"),
    ],
)
def test_openai_chat_refuses_what_breaks_its_rules(provider, messages, words):
    status, error, said = chat(provider, messages)
    assert (status, error["type"], error["code"]) == (400, "invalid_request_error", None)
    assert words in said
    assert refold.classify_error({"error": error, "status": 400}).kind == "invalid_request"


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([TASK, {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}], "No tool output found for function call c1"),
        ([{"type": "function_call_output", "call_id": "c1", "output": "x"}], "No tool call found for function call output with call_id c1"),
        ([{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}, TASK], "without its required following item"),
        ([{"role": "robot", "content": "x"}], "Invalid value: 'robot'"),
        ([], "Missing required parameter: 'input'"),
    ],
)  # fmt: skip
def test_openai_responses_refuses_what_breaks_its_rules(provider, items, words):
    status, error, said = responses(provider, items)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert words in said


def test_openai_responses_keeps_nothing_between_calls(provider):
    assert "'resp_1' not found" in responses(provider, [TASK], previous_response_id="resp_1")[2]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([TASK, {"role": "assistant", "content": [USE]}, TASK], "`tool_use` ids were found without `tool_result` blocks immediately after: t1"),
        ([TASK, {"role": "user", "content": [GOT]}], "unexpected `tool_use_id` found in `tool_result` blocks: t1"),
        ([TASK, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [GOT, GOT]}], "each tool_use must have a single result"),
        ([{"role": "system", "content": "x"}, TASK], "top-level `system` parameter"),
        ([{"role": "assistant", "content": "x"}, TASK], 'must use the "user" role'),
        ([TASK, {"role": "assistant", "content": "x"}], "must end with a user message"),
        ([{"role": "user", "content": ""}], "non-empty content"),
        ([TASK, {"role": "assistant", "content": [USE, USE]}, {"role": "user", "content": [GOT]}], "messages.1"),
        ([], "at least one message is required"),
        (None, "messages: Field required"),
    ],
)  # fmt: skip
def test_anthropic_refuses_what_breaks_its_rules(provider, messages, words):
    status, error, said = claude(provider, messages)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert words in said


def test_anthropic_demands_the_length_of_the_answer(provider):
    body = {"model": "claude", "messages": [TASK]}
    assert refused(provider, "/v1/messages", body)[2] == "max_tokens: Field required"
    assert claude(provider, [TASK], max_tokens=None)[2] == "max_tokens: Input should be a valid integer"
    assert "greater than or equal to 1" in claude(provider, [TASK], max_tokens=0)[2]


def test_a_refused_request_is_kept_with_its_violations_and_problems(provider):
    chat(provider, [TASK, ASKED])
    kept = provider.received[-1]
    assert [each.rule for each in kept.violations] == [each.rule for each in kept.problems] == ["pairing"]
    assert (kept.status, kept.wire, kept.body["messages"][0]) == (400, "openai-chat", TASK)


@pytest.mark.parametrize("raw", [b"{", b"[1]", b"\xff", b""])
def test_what_is_no_json_object_is_refused(provider, raw):
    made = httpx2.post(f"{provider.url}/v1/chat/completions", content=raw)
    assert (made.status_code, made.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_message_that_is_no_object_and_a_missing_model_are_refused(provider):
    assert responses(provider, [TASK, 3])[0] == 400
    assert "model" in refused(provider, "/v1/chat/completions", {"messages": [TASK]})[2]


def test_a_wrong_key_is_refused_by_every_wire_and_never_kept():
    with ScriptedProvider(key="right") as provider:
        with openai.OpenAI(base_url=provider.openai_url, api_key="wrong", max_retries=0) as client:
            with pytest.raises(openai.AuthenticationError) as first:
                client.chat.completions.create(model="m", messages=[TASK])
            with pytest.raises(openai.AuthenticationError):
                client.models.list()
        with anthropic.Anthropic(base_url=provider.url, api_key="wrong", max_retries=0) as client:
            with pytest.raises(anthropic.AuthenticationError) as second:
                client.messages.create(model="m", max_tokens=9, messages=[TASK])
            assert client.with_options(api_key="right").messages.create(model="m", max_tokens=9, messages=[TASK])
    assert [refold.classify_error(each.value).kind for each in (first, second)] == ["auth", "auth"]
    assert "wrong" not in str(provider.received)
    assert "right" not in str(provider.received)


def test_an_unknown_model_is_refused_and_the_known_ones_are_listed():
    with ScriptedProvider(models=["small", "large"]) as provider:
        with openai.OpenAI(base_url=provider.openai_url, api_key="k", max_retries=0) as client:
            with pytest.raises(openai.NotFoundError, match="The model `huge` does not exist"):
                client.chat.completions.create(model="huge", messages=[TASK])
            assert [model.id for model in client.models.list()] == ["small", "large"]
            assert client.models.retrieve("small").id == "small"
            assert client.chat.completions.create(model="small", messages=[TASK]).model == "small"
        with anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=0) as client:
            with pytest.raises(anthropic.NotFoundError, match="model: huge"):
                client.messages.create(model="huge", max_tokens=9, messages=[TASK])
            assert [model.id for model in client.models.list()] == ["small", "large"]


def test_a_path_there_is_none_of_is_refused_in_the_shape_of_who_asks(provider):
    nowhere = pytest.raises(openai.NotFoundError, match=r"Invalid URL \(POST /wrong/chat/completions\)")
    with openai.OpenAI(base_url=f"{provider.url}/wrong", api_key="k", max_retries=0) as client, nowhere:
        client.chat.completions.create(model="m", messages=[TASK])
    refused_too = pytest.raises(anthropic.NotFoundError)
    with anthropic.Anthropic(base_url=f"{provider.url}/wrong", api_key="k") as client, refused_too as caught:
        client.messages.create(model="m", max_tokens=9, messages=[TASK])
    assert caught.value.body["error"]["type"] == "not_found_error"
    assert httpx2.get(f"{provider.url}/v1/chat/completions").status_code == 404


def test_a_body_above_the_limit_of_bytes_is_refused():
    with ScriptedProvider(max_bytes=1_000) as provider:
        too_large = pytest.raises(anthropic.APIStatusError)
        with anthropic.Anthropic(base_url=provider.url, api_key="k") as client, too_large as caught:
            client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": LONG}])
        assert chat(provider, [{"role": "user", "content": LONG}])[0] == 413
    assert caught.value.status_code == 413
    assert refold.classify_error(caught.value).kind == "request_too_large"


@pytest.mark.parametrize("ask", [chat, responses, claude])
def test_a_request_above_the_window_is_recognised_as_such(ask):
    with ScriptedProvider(window=2_000) as provider:
        status, error, _ = ask(provider, [{"role": "user", "content": LONG}])
    told = refold.classify_error({"error": error, "status": status})
    assert (status, told.kind, told.remedy) == (400, "context_overflow", "compact")


def test_the_answer_asked_for_counts_against_the_window_unless_it_is_apart():
    with ScriptedProvider(window=2_000) as provider:
        said = [chat(provider, [TASK], max_completion_tokens=2_000), claude(provider, [TASK], max_tokens=2_000)]
    told = [refold.classify_error({"error": error, "status": 400}) for _, error, _ in said]
    assert [(each.kind, each.remedy, each.limit) for each in told] == [
        ("context_overflow", "reduce_max_tokens", 2_000)
    ] * 2
    with ScriptedProvider(window=2_000, output_apart=True) as provider:
        body = {"model": "claude", "max_tokens": 2_000, "messages": [TASK]}
        assert httpx2.post(f"{provider.url}/v1/messages", json=body).status_code == 200


def test_the_tokens_of_tools_are_told_apart_in_the_refusal():
    tools = [{"type": "function", "function": {"name": "read", "description": LONG}}]
    with ScriptedProvider(window=2_000) as provider:
        said = chat(provider, [TASK], tools=tools)[2]
        tokens = provider.received[0].tokens
    assert f"resulted in {tokens} tokens (" in said
    assert "in the functions" in said
    assert tokens == refold.count([TASK], model="gpt-5", tools=tools)


def test_a_local_server_cuts_in_silence_and_reports_less():
    talk = [{"role": "system", "content": "Be brief."}] + [{"role": "user", "content": f"{n} {LONG}"} for n in range(5)]
    with (
        ScriptedProvider(window=7_000, silent_truncation=True) as provider,
        openai.OpenAI(base_url=provider.openai_url, api_key="k") as client,
    ):
        made = client.chat.completions.create(model="gpt-5", messages=talk)
    kept = provider.received[0]
    assert kept.dropped == 3
    assert [message.role for message in kept.messages] == ["system", "user", "user"]
    assert made.usage.prompt_tokens == kept.tokens < 7_000 < refold.count(talk, model="gpt-5")
    assert kept.body["messages"] == talk


def test_the_answer_is_cut_at_the_length_asked_for():
    answer = ScriptedReply(LONG, [("read", {})])
    with ScriptedProvider([answer]) as provider:
        with anthropic.Anthropic(base_url=provider.url, api_key="k") as client:
            first = client.messages.create(model="claude", max_tokens=20, messages=[TASK])
        with openai.OpenAI(base_url=provider.openai_url, api_key="k") as client:
            second = client.responses.create(model="gpt-5", max_output_tokens=20, input=[TASK])
            third = client.chat.completions.create(model="gpt-5", max_tokens=20, messages=[TASK])
    assert (first.stop_reason, second.status, third.choices[0].finish_reason) == ("max_tokens", "incomplete", "length")
    assert second.incomplete_details.reason == "max_output_tokens"
    assert 0 < third.usage.completion_tokens <= 20
    assert len(first.content) == len(second.output) == 1


def test_counting_says_what_the_call_would_report_and_is_no_call():
    with ScriptedProvider() as provider, anthropic.Anthropic(base_url=provider.url, api_key="k") as client:
        tools = [{"name": "read", "input_schema": {"type": "object"}}]
        counted = client.messages.count_tokens(model="claude", messages=[TASK], tools=tools, system="Be brief.")
        assert provider.received == []
        made = client.messages.create(model="claude", max_tokens=9, messages=[TASK], tools=tools, system="Be brief.")
        with pytest.raises(anthropic.BadRequestError):
            client.messages.count_tokens(model="claude", messages=[])
    assert counted.input_tokens == made.usage.input_tokens


def test_a_counter_of_ones_own_counts():
    with (
        ScriptedProvider(counter=CharCounter(1)) as provider,
        openai.OpenAI(base_url=provider.openai_url, api_key="k") as client,
    ):
        made = client.chat.completions.create(model="gpt-5", messages=[TASK])
    assert made.usage.prompt_tokens == len(TASK["content"])


def test_pictures_are_counted_by_their_size():
    row = b"\x00" + b"\xff\x00\x00" * 600
    data = struct.pack(">IIBBBBB", 600, 600, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", data), (b"IDAT", zlib.compress(row * 600)), (b"IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )
    text = base64.b64encode(png).decode()
    openais = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{text}"}}
    source = {"type": "base64", "media_type": "image/png", "data": text}
    with ScriptedProvider() as provider:
        with openai.OpenAI(base_url=provider.openai_url, api_key="k") as client:
            first = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": [openais]}])
        with anthropic.Anthropic(base_url=provider.url, api_key="k") as client:
            seen = [{"role": "user", "content": [{"type": "image", "source": source}]}]
            second = client.messages.create(model="claude-sonnet-4-6", max_tokens=9, messages=seen)
    assert first.usage.prompt_tokens == refold.count([{"role": "user", "content": [openais]}], model="gpt-4o") > 100
    assert second.usage.input_tokens == refold.count(seen, model="claude-sonnet-4-6", format="anthropic") > 100


@pytest.fixture(scope="module")
def simple():
    """A provider that knows nothing of its vendor's compaction."""
    with ScriptedProvider(native_compaction=False) as provider:
        yield provider


@pytest.mark.parametrize(("ask", "words"), [
    (lambda at: claude(at, [TASK], context_management={"edits": []}), "context_management: Extra inputs"),
    (lambda at: responses(at, [TASK], compaction={"type": "summarize"}), "compaction: Extra inputs"),
    (lambda at: responses(at, [TASK, {"type": "compaction_trigger"}]), "input.1: Input tag 'compaction_trigger'"),
    (
        lambda at: claude(at, [TASK, {"role": "assistant", "content": [{"type": "compaction", "content": "All."}]}, TASK]),
        "messages.1.content.0: Input tag 'compaction'",
    ),
    (
        lambda at: refused(
            at, "/v1/messages/count_tokens", {"model": "claude-opus-4-8", "messages": [TASK]},
            **{"anthropic-beta": "effort-2025-11-24,context-management-2025-06-27"},
        ),
        "Unexpected value(s) `context-management-2025-06-27`",
    ),
])  # fmt: skip
def test_a_provider_without_compaction_rejects_what_asks_for_it(simple, ask, words):
    status, _, text = ask(simple)
    assert status == 400
    assert words in text


def test_a_provider_without_compaction_answers_everything_else(simple):
    body = {"model": "claude-opus-4-8", "max_tokens": 9, "messages": [TASK]}
    made = httpx2.post(f"{simple.url}/v1/messages", json=body, headers={"anthropic-beta": "effort-2025-11-24"})
    assert made.status_code == 200
