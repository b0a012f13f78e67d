"""What is forwarded, what is kept and what is emulated, by upstream, route and model."""

import json

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold.core.budget import Share
from refold.errors import UsageError
from tests.gateway.conftest import standing
from tests.gateway.native.upstream import ignorant, responses_turns
from tests.gateway.scripted_upstream import call, upstream, whole

GO = {"role": "user", "content": "Go through the modules. Never touch setup.py."}
ON = {"role": "user", "content": "Which module was first?"}
TOOLS = [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": False}]
AT = Share(0.4, inclusive=True)
OPAQUE = {"type": "compaction", "id": "cmp_1", "encrypted_content": "only the provider can read this"}
MANAGED = {"context_management": [{"type": "compaction", "compact_threshold": 20_000}]}


def serving(url, **settings):
    return Serving(GatewaySettings(upstreams={"openai": f"{url}/v1"}, port=0, **settings))


def request(items, model="gpt-5", **more):
    return {"model": model, "input": items, "tools": TOOLS, "store": False, **more}


def provider_that_compacts(head, body):
    """Answer with an item of its own where it is asked to compact, and refuse one when told so."""
    asked = json.loads(body)
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    message["content"] = [{"type": "output_text", "text": "Native.", "annotations": []}]
    items = [OPAQUE, message] if "context_management" in asked else [message]
    answer = {"id": "resp_1", "object": "response", "status": "completed", "model": asked["model"], "output": items}
    if b"text/event-stream" not in head:
        return whole(json.dumps(answer).encode())
    events = [{"type": "response.created", "response": {**answer, "output": []}}]
    events += [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(items)]
    events.append({"type": "response.completed", "response": answer})
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
    return whole(body, kind=b"text/event-stream")


@pytest.mark.parametrize("mode", ["pass", "shadow"])
def test_what_is_asked_of_the_provider_reaches_it_as_it_is(mode):
    with upstream(provider_that_compacts) as (url, seen), serving(url, native_compaction=mode) as gateway:
        body = json.dumps(request([GO, *responses_turns(0, 3)], **MANAGED)).encode()
        status, _, answer = call(gateway.url, path="/v1/responses", body=body)
        assert (status, seen[-1][1]) == (200, body)
        assert json.loads(answer)["output"][0] == OPAQUE
        followed = json.dumps(request([OPAQUE, ON], **MANAGED)).encode()
        call(gateway.url, path="/v1/responses", body=followed)
        assert seen[-1][1] == followed


@pytest.mark.parametrize("headers", [{}, {"accept": "text/event-stream"}], ids=["whole", "streamed"])
@pytest.mark.parametrize("restarted", [False, True], ids=["same-process", "restarted"])
def test_an_opaque_item_becomes_its_originals_for_an_upstream_that_cannot_read_it(
    gateway, tmp_path, headers, restarted
):
    store = {"store": str(tmp_path / "g.db")}
    other, provider = gateway(behave=ignorant, window=200_000, limit=200_000, **store)
    with upstream(provider_that_compacts) as (url, _), serving(url, native_compaction="shadow", **store) as first:
        status, _, answer = call(
            first.url, path="/v1/responses", body=request([GO, *responses_turns(0, 9)], **MANAGED), headers=headers
        )
        assert status == 200
        assert b"only the provider" in answer
    if restarted:
        with standing(provider, window=200_000, **store) as again:
            status = call(again.url, path="/v1/responses", body=request([OPAQUE, ON], model="llama-4"))[0]
    else:
        status = call(other.url, path="/v1/responses", body=request([OPAQUE, ON], model="llama-4"))[0]
    assert status == 200
    sent = provider.received[-1].body["input"]
    assert sent == [GO, *responses_turns(0, 9), ON]


def provider_that_compacts_again(head, body):
    """Answer a request for a compaction with an item that tells how long its input was."""
    length = len(json.loads(body)["input"])
    item = {"type": "compaction", "id": f"cmp_{length}", "encrypted_content": f"sealed: {length} items"}
    return whole(json.dumps({"id": "resp_1", "object": "response", "status": "completed", "output": [item]}).encode())


@pytest.mark.parametrize("restarted", [False, True], ids=["same-process", "restarted"])
def test_after_several_compactions_by_its_provider_a_conversation_moves_with_all_its_originals(
    gateway, tmp_path, restarted
):
    store, turns = {"store": str(tmp_path / "g.db")}, list(responses_turns(0, 9))
    other, provider = gateway(behave=ignorant, window=200_000, limit=200_000, **store)
    with upstream(provider_that_compacts_again) as (url, _), serving(url, native_compaction="shadow", **store) as first:
        sent = [GO, *turns[:6]]
        for after in (turns[6:12], turns[12:]):
            answer = call(first.url, path="/v1/responses", body=request([*sent, {"type": "compaction_trigger"}]))[2]
            sent = [GO, *json.loads(answer)["output"], *after]
    moved = request([*sent, ON], model="llama-4")
    if restarted:
        with standing(provider, window=200_000, **store) as again:
            status = call(again.url, path="/v1/responses", body=moved)[0]
    else:
        status = call(other.url, path="/v1/responses", body=moved)[0]
    assert status == 200
    assert provider.received[-1].body["input"] == [GO, *turns, ON]


def test_a_model_may_have_a_mode_of_its_own(tmp_path):
    settings = {"native_compaction": "shadow", "model_native_compaction": {"llama-4": "emulate"}}
    with upstream(provider_that_compacts) as (url, seen), serving(url, **settings) as gateway:
        call(gateway.url, path="/v1/responses", body=request([GO, *responses_turns(0, 9)], **MANAGED))
        assert b"context_management" in seen[-1][1]
        call(gateway.url, path="/v1/responses", body=request([GO], model="llama-4", **MANAGED))
        assert b"context_management" not in seen[-1][1]


@pytest.mark.parametrize(("asked", "done"), [(MANAGED, "forwarded"), ({}, "compacted")])
def test_below_the_hard_limit_the_providers_own_threshold_comes_first(asked, done):
    settings = {"native_compaction": "pass", "window": 60_000, "trigger": AT, "background": False}
    with upstream(provider_that_compacts) as (url, _), serving(url, **settings) as gateway:
        body = request([GO, *responses_turns(0, 24)], **asked)
        assert call(gateway.url, path="/v1/responses", body=body)[1]["x-refold-done"] == done


def test_the_address_of_a_provider_decides_where_nothing_is_set():
    settings = GatewaySettings(upstreams={"anthropic": "https://api.anthropic.com", "openai": "http://127.0.0.1:1/v1"})
    assert settings.is_vendor("anthropic")
    assert not settings.is_vendor("openai")


@pytest.mark.parametrize("settings", [
    {"native_compaction": "emulat"}, {"route_native_compaction": {"/v1/x": "pass"}},
    {"model_native_compaction": {"gpt-4o": ""}, "route_native_compaction": {"/v1/messages": "off"}},
])  # fmt: skip
def test_a_mode_that_there_is_none_of_is_refused(settings):
    with pytest.raises(UsageError, match="use one of"):
        GatewaySettings(**settings)
