import itertools
import json

import pytest

from refold._gateway.recall.tool import NAME
from tests.depth import combined
from tests.gateway.conftest import standing
from tests.gateway.recall.models import WINDOW, Model, asked_back, offered, talk
from tests.gateway.talking import TALKERS

STREAMING = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
WAYS = list(itertools.product((False, True), ("", "I look it up.")))  # streamed or not, silent or with words
DIALECTS = pytest.mark.parametrize("talker", TALKERS, ids=lambda talker: talker.wire)


@pytest.mark.parametrize(("talker", "way"), combined(TALKERS, WAYS))
def test_what_was_left_out_is_brought_back_without_the_client_knowing(serving, talker, way):
    streaming, text = way
    model = Model(text=text)
    url, provider = serving(model)
    client = talker(url, streaming)
    talk(client, 26)
    assert {each.status for each in provider.received} == {200}
    assert not [each for each in provider.received if each.violations]
    assert model.asked > 1
    assert len(model.results) == model.asked
    for received in model.results:
        assert client.secret in json.dumps(received.body, ensure_ascii=False)
    history = json.dumps(client.messages, default=str)
    assert f'"{NAME}"' not in history
    if text:
        assert history.count(text) == model.asked
        if talker.wire == "openai-chat":  # in the others words before and after are blocks, items or parts of their own
            assert history.count(f"{text}\\n\\nThis is clear") == model.asked


@DIALECTS
def test_the_prompt_stays_the_same_from_request_to_request(serving, talker):
    url, provider = serving(Model(), limit=14_000, window=14_000)
    seen = talk(talker(url, True), 40)
    requests = [each for each in provider.received if not asked_back(each)]
    assert len(requests) == len(seen)
    key = next(key for key in ("messages", "input", "contents") if key in requests[0].body)
    read = total = 0
    for before, after, old, new in zip(requests, requests[1:], seen, seen[1:], strict=False):
        assert offered(before)
        assert offered(after)
        if old.get("x-refold-plan") == new.get("x-refold-plan"):
            assert after.body["tools"] == before.body["tools"]
            shared = unmarked(before.body[key])
            assert unmarked(after.body[key])[: len(shared)] == shared
            read, total = read + after.cached, total + after.tokens
    assert read / total > 0.8


def unmarked(messages):
    return json.loads(json.dumps(messages).replace(', "cache_control": {"type": "ephemeral"}', ""))


@STREAMING
@DIALECTS
def test_a_model_that_never_stops_asking_is_stopped(serving, talker, streaming):
    model = Model(often=100)
    url, provider = serving(model, recall_rounds=2)
    client = talker(url, streaming)
    for turn in range(40):
        talk(client, 1, seed=turn)
        if model.asked:
            break
    assert model.asked == 3
    assert len(model.results) == 2
    assert "was the last time" in json.dumps(model.results[-1].body)
    assert "was the last time" not in json.dumps(model.results[0].body)
    assert "asked for what was left out more often" in json.dumps(client.messages, default=str)
    assert f'"{NAME}"' not in json.dumps(client.messages, default=str)
    model.often = 1
    talk(client, 6)
    assert not [each for each in provider.received if each.violations]


@DIALECTS
def test_without_being_asked_for_no_tool_is_offered(serving, talker):
    model = Model()
    url, provider = serving(model, recall_tool=False)
    seen = talk(talker(url, False), 22)
    assert any("x-refold-plan" in headers for headers in seen)
    assert not any(map(offered, provider.received))


@pytest.mark.parametrize("talker", [TALKERS[0], TALKERS[2]], ids=lambda talker: talker.wire)
def test_a_client_asks_for_the_tool_or_against_it_with_a_header(serving, talker):
    for setting, header in ((False, "1"), (True, "0")):
        model = Model()
        url, provider = serving(model, recall_tool=setting)
        client = talker(url, False)
        client.client = client.client.with_options(default_headers={"x-refold-recall": header})
        talk(client, 22)
        assert any(map(offered, provider.received)) == (header == "1")
        assert bool(model.results) == (header == "1")


def test_a_client_with_a_tool_of_that_name_keeps_its_own(serving):
    model = Model()
    url, provider = serving(model)
    client = TALKERS[0](url, True)
    client.tools.append({"type": "function", "function": {"name": NAME, "parameters": {"type": "object"}}})
    client.tools[-1]["function"]["description"] = "mine"
    talk(client, 20)
    assert json.dumps(client.messages).count(f'"{NAME}"') == model.asked > 0
    for received in provider.received:
        assert received.body["tools"] == client.tools


@STREAMING
@DIALECTS
def test_usage_of_all_rounds_is_summed_in_the_answer(serving, talker, streaming, monkeypatch):
    from refold.testing.provider import ScriptedReply

    model = Model(then=ScriptedReply("That was it."))
    url, provider = serving(model)
    client = talker(url, streaming)
    usages = spied(client, monkeypatch)
    talk(client, 22)
    assert model.results
    rounds = []
    for received in provider.received:
        if asked_back(received):
            rounds[-1] += received.tokens
        else:
            rounds.append(received.tokens)
    assert usages == rounds


def spied(client, monkeypatch):
    """Record how many input tokens the SDK reads off each answer."""
    found = []
    if client.wire == "gemini":
        models = client.client.models
        whole, stream = models.generate_content, models.generate_content_stream

        def told(answer):
            found.append(answer.usage_metadata.prompt_token_count)
            return answer

        def streamed(**arguments):
            answers = list(stream(**arguments))
            told(answers[-1])
            return answers

        monkeypatch.setattr(models, "generate_content", lambda **arguments: told(whole(**arguments)))
        monkeypatch.setattr(models, "generate_content_stream", streamed)
        return found
    inner = client.client._client  # what the wire says is what the SDK reads

    def read(response):
        response.read()
        for line in (
            response.text.splitlines() if "event-stream" in response.headers["content-type"] else [response.text]
        ):
            line = line.removeprefix("data:").strip()
            if line.startswith("{"):
                held = json.loads(line)
                for place in (held, held.get("response"), held.get("message")):
                    if isinstance(place, dict) and place.get("usage"):
                        take(place["usage"], held.get("type"))

    last = {}

    def take(usage, kind):
        if (
            kind in ("message_start", None, "message_delta", "message", "response.completed")
            or "prompt_tokens" in usage
        ):
            keys = ("prompt_tokens", "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
            last.update({key: usage[key] for key in keys if usage.get(key) is not None})
            if kind != "message_start":
                found.append(sum(last.values()))
                last.clear()

    inner.event_hooks = {"response": [*inner.event_hooks["response"], read]}
    return found


@DIALECTS
def test_whether_the_tool_is_offered_is_decided_at_the_first_request(gateway, talker, tmp_path):
    given = {"window": WINDOW, "background": False, "store": str(tmp_path / "g.db")}
    for setting in (True, False):
        serving, provider = gateway(behave=Model(), limit=WINDOW, recall_tool=setting, **given)
        client = talker(serving.url, True)
        seen = talk(client, 20, seed=setting)
        assert "x-refold-plan" in seen[-1]
        with standing(provider, recall_tool=True, **given) as restarted:
            moved = talker(restarted.url, True)
            moved.messages = client.messages
            talk(moved, 2)
        assert set(map(offered, provider.received)) == {setting}


@pytest.mark.parametrize("setting", [True, False])
def test_a_later_header_does_not_change_what_is_offered(serving, setting):
    url, provider = serving(Model(), recall_tool=setting)
    client = TALKERS[0](url, False)
    talk(client, 2)
    client.client = client.client.with_options(default_headers={"x-refold-recall": "0" if setting else "1"})
    talk(client, 8)
    assert set(map(offered, provider.received)) == {setting}
