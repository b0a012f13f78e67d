import json

import anthropic
import openai
import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold._gateway.wire.routes import route
from tests.gateway.scripted_upstream import ADMIN, call, chat, upstream, whole
from tests.gateway.talking import opened

OK = b'{"object":"list","data":[],"has_more":false}'


@pytest.mark.parametrize(
    ("path", "format", "kind"),
    [
        ("/v1/chat/completions", "openai-chat", "chat"),
        ("/chat/completions", "openai-chat", "chat"),
        ("/api/v1/chat/completions", "openai-chat", "chat"),
        ("/openai/deployments/gpt-4o/chat/completions", "openai-chat", "chat"),
        ("/openai/responses", "openai-responses", "chat"),
        ("/openai/v1/responses/compact", "openai-responses", "compact"),
        ("/v1/responses/input_tokens", "openai-responses", "count"),
        ("/v1/chat/completions/c1", "", "other"),
        ("/v1/responses/r1/cancel", "", "other"),
        ("/v1/threads/t1/messages", "", "other"),
    ],
)
def test_a_conversation_is_known_by_the_end_of_its_path(path, format, kind):
    found = route("POST", path, {b"authorization": b"Bearer sk-1"})
    assert (found.dialect.provider, found.dialect.format, found.kind) == ("openai", format, kind)
    assert route("GET", path, {}).kind == "other"


@pytest.mark.parametrize(
    ("path", "model", "kind"),
    [
        ("/v1beta/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro", "chat"),
        ("/v1alpha/models/gemini-2.5-pro:countTokens", "gemini-2.5-pro", "count"),
        ("/v1beta1/publishers/google/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro", "chat"),
        ("/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:streamGenerateContent",
         "gemini-2.5-pro", "chat"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict", "", "other"),
        ("/v1beta/models/e:batchEmbedContents", "", "other"),
        ("/v1beta/openai/chat/completions", "", "other"),
    ],
)  # fmt: skip
def test_gemini_is_spoken_under_the_paths_of_vertex_too(path, model, kind):
    found = route("POST", path, {b"authorization": b"Bearer ya29"})
    assert (found.dialect.provider, found.model, found.kind) == ("gemini", model, kind)


@pytest.mark.parametrize(
    ("headers", "provider"),
    [
        ({b"anthropic-beta": b"oauth"}, "anthropic"),
        ({b"authorization": b"Bearer sk-ant-oat01"}, "anthropic"),
        ({b"x-goog-api-key": b"k"}, "gemini"),
        ({b"authorization": b"Bearer sk-1"}, "openai"),
    ],
)
def test_a_key_goes_to_whom_it_belongs(headers, provider):
    assert route("GET", "/v1/models", headers).dialect.provider == provider
    assert route("POST", "/api/event_logging/batch", headers).dialect.provider == provider


@pytest.mark.parametrize(
    ("base", "sent"),
    [
        ("", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/api/v1/", "/api/v1/chat/completions"),
        ("/api/paas/v4", "/api/paas/v4/chat/completions"),
        ("/v1beta/openai/", "/v1beta/openai/chat/completions"),
        ("/openai/deployments/gpt", "/openai/deployments/gpt/chat/completions"),
    ],
)
def test_an_upstream_is_the_base_that_its_clients_take(base, sent):
    with upstream(lambda head, body: whole(OK)) as (url, seen):
        upstreams = {"openai": url + base, "anthropic": f"{url}/anthropic"}
        with Serving(GatewaySettings(upstreams=upstreams, port=0)) as serving:
            call(serving.url, body=chat(1))
            call(serving.url, path="/v1/messages?beta=true", body=chat(1))
    lines = [head.split(b"\r\n")[0].decode() for head, _ in seen]
    assert lines == [f"POST {sent} HTTP/1.1", "POST /anthropic/v1/messages?beta=true HTTP/1.1"]


@pytest.mark.parametrize("base", ["", "/v1"])
def test_a_client_whose_base_url_ends_with_the_version_reaches_anthropic_without_it(base):
    with (
        upstream(lambda head, body: whole(OK)) as (url, seen),
        Serving(GatewaySettings(upstreams={"anthropic": url + base}, port=0)) as serving,
    ):
        for path in ("/messages", "/messages/count_tokens", "/messages/batches"):
            headers = call(serving.url, path=path, body=chat(1), headers={"anthropic-version": "2023-06-01"})[1]
            assert ("x-refold-done" in headers) == (path != "/messages/batches")
    paths = [head.split(b" ")[1].decode() for head, _ in seen]
    assert paths == ["/v1/messages", "/v1/messages/count_tokens", f"{base}/messages/batches"]


def test_azures_client_is_kept_inside_the_window(gateway):
    answer = b'{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop","index":0}]}'
    with (
        upstream(lambda head, body: whole(answer)) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, window=16_000, background=False)) as serving,
    ):
        client = openai.AzureOpenAI(azure_endpoint=serving.url, api_key="k", api_version="2024-10-21", max_retries=0)
        raw = opened(client).chat.completions.with_raw_response.create(**chat(10))
    assert raw.headers["x-refold-done"] == "compacted"
    assert seen[0][0].startswith(b"POST /openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21 ")
    assert len(seen[0][1]) < len(json.dumps(chat(10))) / 2


def test_anthropics_own_sessions_are_not_taken_for_the_gateways():
    with (
        upstream(lambda head, body: whole(OK)) as (url, seen),
        Serving(GatewaySettings(upstreams={"anthropic": url}, port=0, admin_token=ADMIN)) as serving,
    ):
        client = opened(anthropic.Anthropic(base_url=serving.url, api_key="k", max_retries=0))
        assert client.beta.sessions.list().data == []
        assert json.loads(call(serving.url, "GET", "/v1/sessions")[2]) == {"sessions": []}
    assert len(seen) == 1
