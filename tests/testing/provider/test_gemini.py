import pytest
from google import genai
from google.genai import errors

from refold.testing.provider import Fault, ScriptedProvider, ScriptedReply

TOOL = {"name": "read", "parameters_json_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


CLIENTS = []  # a client that nobody holds closes itself


def client(provider, key="k"):
    CLIENTS.append(genai.Client(api_key=key, http_options={"base_url": provider.url}))
    return CLIENTS[-1]


def test_words_calls_and_usage_come_whole_and_streamed():
    answer = ScriptedReply(
        "I will look at the file now, slowly.", [("read", {"path": "a.py"}), ("read", {"path": "b.py"})]
    )
    with ScriptedProvider([answer]) as provider:
        models = client(provider).models
        asked = {
            "model": "gemini-2.5-pro",
            "contents": "look",
            "config": {"tools": [{"function_declarations": [TOOL]}]},
        }
        whole = models.generate_content(**asked)
        pieces = list(models.generate_content_stream(**asked))
    assert [call.args for call in whole.function_calls] == [{"path": "a.py"}, {"path": "b.py"}]
    assert whole.usage_metadata.prompt_token_count == provider.received[0].tokens
    assert len(pieces) > 2
    assert "".join(piece.text or "" for piece in pieces if not piece.function_calls) == answer.text
    assert [call.name for call in pieces[-1].function_calls] == ["read", "read"]
    assert [each.streaming for each in provider.received] == [False, True]
    assert provider.received[0].tools == ("read",)


def test_a_request_above_the_window_is_refused_with_both_numbers():
    with ScriptedProvider(window=100) as provider, pytest.raises(errors.ClientError, match=r"\d+\) exceeds .* \(100\)"):
        client(provider).models.generate_content(model="gemini-2.5-pro", contents="word " * 300)


def test_a_call_without_its_response_and_a_wrong_role_are_refused():
    call = {"function_call": {"id": "1", "name": "read", "args": {}}}
    open_call = [{"role": "user", "parts": [{"text": "x"}]}, {"role": "model", "parts": [call]}]
    with ScriptedProvider() as provider:
        for contents in (
            [*open_call, {"role": "user", "parts": [{"text": "and?"}]}],
            [{"role": "bot", "parts": [{"text": "x"}]}],
        ):
            with pytest.raises(errors.ClientError) as refused:
                client(provider).models.generate_content(model="gemini-2.5-pro", contents=contents)
            assert refused.value.code == 400


def test_faults_and_keys_are_told_in_its_words():
    with ScriptedProvider(faults=[Fault("rate_limit"), Fault("server_error")], key="right") as provider:
        for key, code in (("wrong", 400), ("right", 500)):
            with pytest.raises(errors.APIError) as refused:
                client(provider, key).models.generate_content(model="gemini-2.5-pro", contents="x")
            assert refused.value.code == code
        assert client(provider, "right").models.generate_content(model="gemini-2.5-pro", contents="x").text == "OK."
    assert "x-goog-api-key" not in provider.received[0].headers


def test_tokens_are_counted():
    with ScriptedProvider() as provider:
        counted = client(provider).models.count_tokens(model="gemini-2.5-pro", contents="one two three").total_tokens
        client(provider).models.generate_content(model="gemini-2.5-pro", contents="one two three")
    assert counted == provider.received[0].tokens
