import json
import socket

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold._gateway.wire import body as bodies
from refold.errors import UsageError
from tests.gateway.scripted_upstream import call, chat, upstream, whole

BODIES = {
    "broken JSON": b'{"model": "gpt-4o", "messages": [',
    "no JSON": b"\x00\xff not json",
    "empty": b"",
    "a list": b"[1, 2]",
    "no messages": b'{"model": "gpt-4o"}',
    "messages of another kind": b'{"model": "gpt-4o", "messages": "hello"}',
    "messages that are no objects": b'{"model": "gpt-4o", "messages": [1, null, "x"]}',
    "no model": b'{"messages": [{"role": "user", "content": "x"}]}',
    "another dialect": b'{"model": "gpt-4o", "contents": [{"role": "user", "parts": [{"text": "x"}]}]}',
    "an open call": json.dumps({**chat(1), "messages": chat(1)["messages"][:-1]}).encode(),
    "deep": b'{"model": "gpt-4o", "messages": [' + b"[" * 3_000 + b"]" * 3_000 + b"]}",
}


@pytest.mark.parametrize("name", BODIES)
def test_what_the_provider_must_judge_reaches_it_as_it_is(name):
    with (
        upstream(lambda head, body: whole(b'{"error":"theirs"}', b"400 Bad Request")) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, window=4_000)) as serving,
    ):
        status, _, data = call(serving.url, body=BODIES[name])
    assert (status, data) == (400, b'{"error":"theirs"}')
    assert seen[0][1] == BODIES[name]


def test_an_invalid_conversation_near_the_window_passes_too(gateway):
    serving, provider = gateway(window=100_000)
    body = chat(4)
    del body["messages"][3]
    through, direct = call(serving.url, body=body), call(provider.url, body=body)
    assert (through[0], through[2]) == (direct[0], direct[2])
    assert through[0] == 400


def test_an_invalid_conversation_is_mended_where_that_is_asked_for(gateway):
    serving, provider = gateway(repair=True, window=100_000)
    body = chat(4)
    del body["messages"][3]
    status, headers, _ = call(serving.url, body=body)
    assert (status, headers["x-refold-reason"]) == (200, "repair")
    assert "reason" not in str(call(serving.url, body=chat(2))[1])
    assert not [each for each in provider.received if each.violations]


def test_a_call_with_two_faults_is_mended_as_well_as_one_with_one(gateway):
    serving, provider = gateway(repair=True, window=100_000)
    call_ = {"id": "same", "type": "function", "function": {"name": "read", "arguments": "{"}}
    said = [{"role": "user", "content": "Read."}, {"role": "assistant", "content": None, "tool_calls": [call_, call_]}]
    said += [{"role": "tool", "tool_call_id": "same", "content": text} for text in ("one", "two")]
    body = {"model": "gpt-4o", "messages": said}
    status, headers, data = call(serving.url, body=body)
    assert (status, headers["x-refold-reason"]) == (200, "repair"), data
    assert not provider.received[0].violations
    assert len({each["id"] for each in provider.received[0].body["messages"][1]["tool_calls"]}) == 2


def test_calls_at_the_end_that_nobody_answered_are_closed_until_their_results_come(gateway):
    serving, provider = gateway(repair=True, window=100_000)
    whole_ = chat(3, 20)
    status, headers, _ = call(serving.url, body={**whole_, "messages": whole_["messages"][:-1]})
    assert (status, headers["x-refold-reason"]) == (200, "repair")
    assert "unavailable" in provider.received[0].body["messages"][-1]["content"]
    assert call(serving.url, body=whole_)[0] == 200
    assert provider.received[1].body == whole_


def test_a_repair_is_told_although_the_request_is_looked_at_for_its_size_too(gateway):
    serving, _ = gateway(repair=True, window=100_000)
    body = chat(30)
    del body["messages"][3]
    call(serving.url, body=body, headers={"x-refold-trigger": "never"})
    body = {
        "model": "gpt-4o",
        "messages": [*body["messages"], {"role": "tool", "tool_call_id": "none", "content": "x"}],
    }
    assert call(serving.url, body=body, headers={"x-refold-trigger": "never"})[1]["x-refold-reason"] == "repair"


def test_a_wrong_content_type_and_an_unknown_model_are_the_providers_business(gateway):
    serving, provider = gateway()
    assert call(serving.url, body=chat(1), headers={"content-type": "text/plain"})[0] == 200
    assert call(serving.url, body=chat(1, model="nobody/knows-it"))[0] == 200
    assert provider.received[1].model == "nobody/knows-it"


def test_nothing_is_remembered_of_a_model_whose_name_is_none(gateway):
    serving, provider = gateway()
    body = chat(1, model="m" * 100_000)
    assert "x-refold-conversation" not in call(serving.url, body=body)[1]
    assert provider.received[0].body == body


PATHS = {
    "openai": ("/v1/chat/completions", lambda body: body["error"]["message"]),
    "anthropic": ("/v1/messages", lambda body: body["error"]["message"]),
    "gemini": ("/v1beta/models/gemini-2.5-pro:generateContent", lambda body: body["error"]["message"]),
}


@pytest.mark.parametrize("provider", PATHS)
def test_errors_of_the_gateway_are_in_the_clients_dialect(provider):
    path, said = PATHS[provider]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{free.getsockname()[1]}"
        with Serving(GatewaySettings(upstreams={provider: dead}, port=0, max_body=50_000)) as serving:
            status, _, data = call(serving.url, path=path, body=chat(1))
            assert status == 502
            assert "cannot be reached" in said(json.loads(data))
            status, _, data = call(serving.url, path=path, body=b" " * 60_000)
            assert status == 413
            assert "50,000" in said(json.loads(data))


def test_a_provider_that_is_not_configured_is_not_served(gateway):
    with Serving(GatewaySettings(upstreams={"openai": "http://127.0.0.1:9"}, port=0)) as serving:
        assert call(serving.url, path="/v1/messages", body=chat(1))[0] == 404


def test_other_paths_pass_in_both_directions():
    with (
        upstream(lambda head, body: whole(b"any\x00thing", b"201 Created", b"audio/x")) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": f"{url}/v1"}, port=0)) as serving,
    ):
        status, headers, data = call(serving.url, "PUT", "/v1/files/a%20b?x=1&y=%2F", b"\x01" * 300_000)
    assert (status, headers["content-type"], data) == (201, "audio/x", b"any\x00thing")
    assert seen[0][0].startswith(b"PUT /v1/files/a%20b?x=1&y=%2F HTTP/1.1")
    assert seen[0][1] == b"\x01" * 300_000


@pytest.mark.parametrize("settings", [
    {"host": "0.0.0.0"}, {"upstreams": {}}, {"upstreams": {"openai": "ftp://x"}}, {"upstreams": {"mistral": "http://x"}},
    {"policy": "none-such"},
])  # fmt: skip
def test_settings_that_cannot_be_are_refused_at_the_start(settings):
    with pytest.raises(UsageError):
        GatewaySettings(**settings)


def test_a_port_that_is_taken_is_named(gateway):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="--port"):
            Serving(GatewaySettings(port=taken.getsockname()[1]))


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("POST", "/v1/files")]
)
def test_a_name_and_password_in_the_address_go_before_the_clients_key(method, path):
    with upstream(lambda head, body: whole(b"{}")) as (url, seen):
        place = url.replace("http://", "http://me:hush@")
        with Serving(GatewaySettings(upstreams={"openai": place}, port=0)) as serving:
            body = chat(1) if method == "POST" else None
            assert call(serving.url, method, path, body=body, headers={"authorization": "Bearer k"})[0] == 200
    assert seen[0][0].lower().count(b"authorization:") == 1
    assert b"Basic bWU6aHVzaA==" in seen[0][0]


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/chat/completions"), ("GET", "/v1/models")])
def test_the_proxy_of_the_environment_is_asked_for_a_tunnel_and_sees_no_key(monkeypatch, method, path):
    refused = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
    with upstream(lambda head, body: refused) as (proxy, seen):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        with Serving(GatewaySettings(upstreams={"openai": "https://api.test/v1"}, port=0)) as serving:
            body = chat(1) if method == "POST" else None
            status, _, data = call(serving.url, method, path, body=body, headers={"authorization": "Bearer sk-1"})
    assert status == 502
    assert b"api.test" not in data
    assert [got.split(b"\r\n")[0] for got, _ in seen] == [b"CONNECT api.test:443 HTTP/1.1"]
    assert b"sk-1" not in seen[0][0]


@pytest.mark.parametrize("strict", [False, True])
def test_a_body_that_cannot_be_read_in_a_moment_goes_on_as_it_came(gateway, monkeypatch, strict):
    monkeypatch.setattr(bodies, "LONGEST_MESSAGE", 2_000)
    serving, provider = gateway(window=16_000, background=False, strict=strict)
    status, headers, _ = call(serving.url, body=chat(20))
    if strict:
        assert status == 503
        assert not provider.received
    else:
        assert (status, headers["x-refold-failed"]) == (200, "BadValue")
        assert provider.received[0].body == chat(20)
