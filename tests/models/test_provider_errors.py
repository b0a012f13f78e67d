import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.errors import ContextOverflow
from refold.models.provider_errors import (
    ErrorPattern,
    classify_error,
    classify_response,
    is_overflow,
    rows,
)

ROWS = rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_sample_of_every_row_is_recognized(row: ErrorPattern) -> None:
    found = classify_error(row.sample)
    assert re.search(row.pattern, row.sample, re.I)
    assert (found.kind, found.provider, found.limit, found.requested) == (
        row.kind,
        row.provider,
        row.limit,
        row.requested,
    )
    assert row.remedy in {None, found.remedy}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_near_miss_of_every_row_is_not(row: ErrorPattern) -> None:
    assert not re.search(row.pattern, row.miss, re.I)
    assert classify_error(row.miss).kind not in {row.kind, "context_overflow"}


def body(http: int, message: str, **more: object) -> dict[str, object]:
    return {"status": http, "body": {"error": {"message": message, **more}}}


REFUSALS = [
    (body(400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.", code="context_length_exceeded"), "context_overflow", "compact"),
    (body(400, "input length and `max_tokens` exceed context limit: 197202 + 21333 > 200000"), "context_overflow", "reduce_max_tokens"),
    (body(400, "input length and `max_tokens` exceed context limit: 201000 + 8000 > 200000"), "context_overflow", "compact"),
    (body(413, "Request exceeds the maximum size", type="request_too_large"), "request_too_large", "strip_media"),
    (body(429, "Rate limit reached on tokens per min (TPM): Limit 30000, Used 25000, Requested 9000."), "rate_limit", "wait"),
    (body(429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40124."), "rate_limit", "compact"),
    (body(429, "Resource has been exhausted (e.g. check quota).", status="RESOURCE_EXHAUSTED"), "rate_limit", "wait"),
    (body(429, "too many tokens, please wait"), "rate_limit", "wait"),
    ({"message": "token limit per minute reached"}, "rate_limit", "wait"),
    (body(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."), "invalid_request", "none"),
    (body(400, "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens"), "invalid_max_tokens", "reduce_max_tokens"),
    (body(422, "invalid value for field 'context window strategy': expected one of auto, off", type="validation_error"), "other", "none"),
    ({"status": 403, "type": "UnrecognizedClientException", "body": {"message": "ValidationException: The security token included in the request is invalid."}}, "auth", "none"),
    (body(401, "prompt is fine, key is not"), "auth", "none"),
    (body(529, "Overloaded", type="overloaded_error"), "rate_limit", "wait"),
    (body(413, ""), "request_too_large", "strip_media"),
    (body(500, "internal error"), "other", "none"),
    (body(400, "messages.1: tool_use ids were found without tool_result blocks", type="invalid_request_error"), "invalid_request", "none"),
    (body(400, "context_overflow", type="context_overflow"), "context_overflow", "compact"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "remedy"), REFUSALS, ids=lambda value: json.dumps(value)[:60])
def test_a_refusal_has_its_kind_and_remedy(error: object, kind: str, remedy: str) -> None:
    found = classify_error(error)
    assert (found.kind, found.remedy) == (kind, remedy)
    assert is_overflow(error) == (kind in {"context_overflow", "request_too_large"})


def test_separators_in_numbers_are_read() -> None:
    found = classify_error("prompt is too long: 1,208,310 tokens > 1_000_000 maximum")
    assert (found.requested, found.limit) == (1_208_310, 1_000_000)


def test_figures_given_as_fields_win() -> None:
    found = classify_error(
        body(400, "the request exceeds the available context size", n_prompt_tokens=9071, n_ctx=8192)
    )
    assert (found.requested, found.limit) == (9071, 8192)


class Refused(Exception):
    def __init__(self, message: str, status: int, body: object) -> None:
        super().__init__(message)
        self.status_code = status
        self.body = body


def test_an_exception_is_read_with_its_body_and_causes() -> None:
    inner = Refused("bad request", 400, {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}})
    outer = RuntimeError("the call failed")
    outer.__cause__ = ValueError("again")
    outer.__cause__.__context__ = inner
    found = classify_error(outer)
    assert (found.kind, found.provider, found.limit, found.status) == ("context_overflow", "anthropic", 200_000, 400)


def test_an_error_group_is_read_too() -> None:
    assert is_overflow(ExceptionGroup("two", [ValueError("x"), ContextOverflow("y")]))


def test_a_body_in_text_in_bytes_or_in_a_message_is_read() -> None:
    inner = {"error": {"message": "prompt is too long: 5 tokens > 4 maximum", "type": "invalid_request_error"}}
    for error in (
        json.dumps(inner),
        json.dumps(inner).encode(),
        f"Error code: 400 - {json.dumps(inner)}",
        f"400: {inner}",
    ):
        assert classify_error(error).kind == "context_overflow"


def test_nothing_to_read_is_other() -> None:
    class Hostile:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(name)

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    loop: dict[str, object] = {}
    loop["error"] = loop
    for error in (None, 5, b"\xff", [], {}, "", Hostile(), Mute(), loop, object()):
        assert classify_error(error).kind == "other"


def test_what_was_classified_stays_as_it_is() -> None:
    found = classify_error("prompt is too long")
    assert classify_error(found) is found


@pytest.mark.parametrize("text", ["9 " * 1_000_000, "context " * 300_000, "1," * 1_000_000, "max_tokens " * 200_000, "[" * 100_000 + "]", "{" * 500_000])  # fmt: skip
def test_a_long_text_takes_no_time(text: str) -> None:
    start = time.process_time()
    classify_error(text)
    assert time.process_time() - start < 1


@given(st.recursive(st.none() | st.integers() | st.text(max_size=40), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["error", "message", "code", "status", "body"]), inner, max_size=3), max_leaves=12))  # fmt: skip
def test_nothing_makes_it_raise(error: object) -> None:
    classify_error(error)
    classify_response(error)


@pytest.mark.parametrize(
    ("text", "provider"),
    [
        ("This model's maximum context length is 8192 tokens", "openai"),
        ("please reduce the length of the messages", "openai"),
        ("content_length_exceeded", "azure"),
        ("RESOURCE_EXHAUSTED: the request exceeds the maximum number of tokens", "google"),
        ("the prompt exceeds the maximum number of tokens", "google"),
        ("the content is too long", "google"),
        ("ValidationException: 5 tokens", "bedrock"),
        ("Input is too long", "bedrock"),
        ("the request exceeds the model's maximum", "bedrock"),
        ("context length exceeded", "mistral"),
        ("maximum number of tokens", "mistral"),
        ("context_length_exceeded", "openrouter"),
        ("prompt is too long", "anthropic"),
        ("too many tokens", "anthropic"),
    ],
)
def test_n11_names_one_of_seven_providers(text: str, provider: str) -> None:
    nested = RuntimeError("outer")
    nested.__cause__ = ValueError(text)
    for error in (text, ValueError(text), nested, {"error": {"message": text}}, body(400, text)):
        found = classify_error(error)
        assert (found.kind, found.provider) == ("context_overflow", provider)


@pytest.mark.parametrize(
    "error",
    [
        "connection reset",
        "rate limit: too many tokens",
        body(429, "RESOURCE_EXHAUSTED"),
        body(429, "Quota exceeded: maximum number of tokens per day", status="RESOURCE_EXHAUSTED"),
        body(429, "too many tokens"),
        body(400, "give the maximum number of tokens to generate"),
        body(400, "ValidationException: The security token included in the request is invalid."),
        body(400, "ValidationException: The nextToken of the request is malformed."),
        body(503, "too many tokens"),
    ],
    ids=str,
)
def test_n11_what_only_sounds_like_an_overflow_is_none(error: object) -> None:
    assert classify_error(error).kind != "context_overflow"


OPAL = [
    "context_length_exceeded",
    "maximum context length",
    "max_tokens",
    "max_prompt_tokens",
    "too many tokens",
    "prompt is too long",
    "prompt_tokens_exceeded",
    "request too large",
    "context window",
    "token limit",
    "exceeds the limit",
    "input too long",
    "exceeds the model's maximum",
    "reduce the length",
    "maximum number of tokens",
    "content_too_large",
    "string_above_max_length",
]


@pytest.mark.parametrize("text", OPAL)
def test_o12_knows_seventeen_texts(text: str) -> None:
    assert len(OPAL) == 17
    for error in (f"HTTP 400: {text.upper()} (request 5)", body(400, text), body(422, f"Error: {text}.")):
        assert classify_error(error).kind == "context_overflow"
    assert not is_overflow({"status": 429, "message": text})
    assert not is_overflow({"status": 401, "message": text})


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("max_tokens must be an integer", ""),
        ("Unsupported parameter: 'max_tokens' is not supported with this model.", ""),
        ("the context window strategy is one of auto, off", ""),
        ("token limit is no known field", ""),
        ("Request payload size exceeds the limit: 20971520 bytes.", ""),
        ("the request exceeds the limit of 20 images", ""),
        ("the tool messages exceeds the limit of 128 tools", ""),
        ("Invalid 'tools[3].function.name': string too long. Expected a string with maximum length 64.", OPAL[-1]),
        ("The value of 'metadata.id' is longer than 512 characters.", OPAL[-1]),
        ("reduce the length of the stop sequences", ""),
    ],
)
def test_o12_a_text_about_another_thing_is_no_overflow(message: str, code: str) -> None:
    error = body(400, message, code=code) if code else body(400, message)
    assert classify_error(error).kind != "context_overflow"


def test_a_reply_from_a_full_window_is_told() -> None:
    def reply(reason: str, prompt: int) -> dict[str, object]:
        words = {"role": "assistant", "content": "the maximum context length is 5 tokens"}
        return {
            "choices": [{"finish_reason": reason, "message": words}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": 10},
        }

    assert classify_response(reply("stop", 900), 1_000).kind == "other"
    assert classify_response(reply("length", 500), 1_000).kind == "other"
    assert classify_response(reply("length", 990), 1_000).kind == "context_overflow"
    assert classify_response(reply("stop", 1_000), 1_000).kind == "other"
    assert classify_response(reply("stop", 1_001), 1_000).kind == "context_overflow"
    assert classify_response({"stop_reason": "model_context_window_exceeded"}).kind == "context_overflow"
    assert classify_response({"error": {"code": 400, "message": "prompt is too long"}}).kind == "context_overflow"
    assert classify_response({"incomplete_details": {"reason": "max_output_tokens"}}).kind == "other"
