import json

import pytest

from refold._gateway.conversations.budgets import Budgets
from refold._gateway.conversations.triggers import trigger
from refold._gateway.settings import GatewaySettings
from refold.core.budget import Exactly, Never, Share
from refold.errors import UsageError
from tests.gateway.scripted_upstream import call, chat


@pytest.mark.parametrize(("text", "limit"), [
    ("0.7", Share(0.7, inclusive=True)), ("70%", Share(0.7, inclusive=True)), (".5", Share(0.5, inclusive=True)),
    ("1.0", Share(1.0, inclusive=True)), ("60k", Exactly(60_000, inclusive=True)), ("1m", Exactly(10**6, inclusive=True)),
    ("60,000", Exactly(60_000, inclusive=True)), ("101", Exactly(101, inclusive=True)), ("0", Never()), (" Never ", Never()),
])  # fmt: skip
def test_a_trigger_is_a_share_or_tokens_or_never(text, limit):
    assert trigger(text) == limit


@pytest.mark.parametrize("text", ["", "x", "1.5", "0.0", "-1", "101%", "0%", "1e3", "999999999999", "60kk", "٣"])
def test_what_is_no_trigger_is_said_with_examples(text):
    with pytest.raises(UsageError, match="70%"):
        trigger(text)


def test_a_share_without_its_sign_is_no_trigger_of_so_few_tokens():
    with pytest.raises(UsageError, match="'80' means 80 tokens: for a share of the input budget give 80%"):
        trigger("80")


def bound(settings, model="m", **asked):
    return Budgets(GatewaySettings(window=100_000, **settings)).bound(model, 1_000, **asked)


ALL = {
    "trigger": Exactly(50_000, inclusive=True),
    "route_triggers": {"/v1/messages": Exactly(40_000, inclusive=True)},
    "triggers": {"small": Exactly(30_000, inclusive=True)},
}


@pytest.mark.parametrize(("model", "format", "asked", "tokens"), [
    ("m", "openai-chat", None, 50_000), ("m", "anthropic", None, 40_000), ("small", "anthropic", None, 30_000),
    ("small", "anthropic", Exactly(20_000, inclusive=True), 20_000),
])  # fmt: skip
def test_the_nearest_word_on_when_compaction_is_due_counts(model, format, asked, tokens):
    found = bound(ALL, model, format=format, trigger=asked)
    assert found.trigger == tokens
    assert found.due(tokens)
    assert not found.due(tokens - 1)
    goal = found.policy.goal.tokens(found.budget)
    assert goal < tokens, "else the next request would be due at once"


@pytest.mark.parametrize(("model", "format", "asked", "policy"), [
    ("m", "openai-chat", "", "refold"), ("m", "anthropic", "", "opal"), ("small", "anthropic", "", "vibe"),
    ("small", "anthropic", "wolffish", "wolffish"), ("m", "gemini", "", "refold"),
])  # fmt: skip
def test_the_nearest_word_on_the_policy_counts(model, format, asked, policy):
    settings = {"route_policies": {"/v1/messages": "opal"}, "policies": {"small": "vibe"}}
    assert bound(settings, model, format=format, policy=asked).policy.name == policy


def test_never_is_never():
    assert not bound({"trigger": Never()}).due(99_000)


@pytest.mark.parametrize("settings", [{"route_triggers": {"/v1/x": Never()}}, {"route_policies": {"messages": "opal"}}])
def test_a_route_that_there_is_none_of_is_named_with_those_there_are(settings):
    with pytest.raises(UsageError, match="/v1beta/models"):
        GatewaySettings(**settings)


def test_one_request_can_ask_for_its_own_trigger(gateway):
    serving, provider = gateway(window=100_000, background=False)
    body = chat(6)
    assert call(serving.url, body=body)[1]["x-refold-done"] == "forwarded"
    headers = call(serving.url, body=body, headers={"x-refold-trigger": "5k"})[1]
    assert headers["x-refold-reason"] == "threshold"
    assert int(headers["x-refold-tokens-after"]) < 5_000
    assert "x-refold-trigger" not in provider.received[-1].headers
    status, headers, data = call(serving.url, body=body, headers={"x-refold-trigger": "lots"})
    assert (status, headers["x-refold-done"]) == (400, "rejected")
    assert "60k" in json.loads(data)["error"]["message"]


def test_a_route_has_its_own_trigger_and_policy(gateway):
    own = {"route_triggers": {"/v1/messages": trigger("3k")}, "route_policies": {"/v1/messages": "neurolink"}}
    serving, _ = gateway(window=100_000, background=False, **own)
    assert call(serving.url, body=chat(6))[1]["x-refold-done"] == "forwarded"
    words = [" ".join(f"w{number}x{place}" for place in range(400)) for number in range(6)]
    said = [
        {"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate([*words, "Go on."])
    ]
    headers = call(
        serving.url, path="/v1/messages", body={"model": "claude-opus-4-6", "max_tokens": 9, "messages": said}
    )[1]
    assert (headers["x-refold-done"], headers["x-refold-policy"]) == ("compacted", "neurolink")
