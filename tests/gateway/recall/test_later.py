import json
import random
from copy import deepcopy

import pytest

from refold.gateway import planning
from refold.gateway.recall.later import BringBack
from refold.gateway.recall.tool import NAME
from refold.testing.provider import ScriptedProvider
from tests.gateway.conftest import standing
from tests.gateway.recall.models import SECRET, WINDOW, Beside, brought, talk
from tests.gateway.recall.test_recall import DIALECTS, STREAMING, unmarked
from tests.gateway.talking import TALKERS, Chat, output
from tests.gateway.test_replicas import postgres_server, postgres_url, store  # noqa: F401 # fixtures
from tests.gateway.wire import call

ROOMY = {"limit": 16_000, "window": 16_000}
GREP = [("grep", {"path": "x.py"}), ("grep", {"path": "y.py"})]


def key_of(received):
    return next(key for key in ("messages", "input", "contents") if key in received.body)


def said(received):
    return unmarked(received.body[key_of(received)])


def asking(client, model, most=60, seed=3):
    """Talk until the model has asked beside the client's tools, and give their results; the request is yet to come.

    Returns the messages of the request in which it was asked.
    """
    talk(client, 1, seed)
    for turn in range(most):
        before = deepcopy(client.messages)
        talk_on(client, turn)
        if model.asked:
            return before
    raise AssertionError("it never asked")


def talk_on(client, turn):
    secret = client.secret
    seen = talk(client, 1, seed=turn + 100)
    client.secret = secret
    return seen


@STREAMING
@pytest.mark.parametrize("first", [True, False], ids=["recall-first", "recall-last"])
@DIALECTS
def test_what_is_asked_for_beside_the_clients_tools_comes_with_its_next_request(serving, talker, first, streaming):
    model = Beside(after=GREP) if first else Beside(before=GREP[:1], after=GREP[1:], text="I look.")
    url, provider = serving(model)
    client = talker(url, streaming)
    talk(client, 40)
    assert {each.status for each in provider.received} == {200}
    assert not [each for each in provider.received if each.violations]
    assert max(each.tokens for each in provider.received) <= WINDOW
    assert len(model.asked) > 2
    assert len(model.brought) == len(model.asked)
    history = json.dumps(client.messages, default=str)
    assert f'"{NAME}"' not in history
    assert history.count("y.py") == len(model.asked) == history.count("x.py")
    for received in model.brought:
        (result,) = brought(received)
        assert result.text.count(client.secret) == 1
    page = call(url, "GET", "/metrics")[2].decode()
    assert f'refold_recalls_total{{outcome="later"}} {float(len(model.asked))}' in page
    assert 'outcome="dropped"' not in page


@DIALECTS
def test_the_requests_before_and_after_begin_with_the_same_bytes(serving, talker):
    model = Beside(after=GREP)
    url, provider = serving(model, **ROOMY)
    client = talker(url, True)
    seen = talk(client, 70)
    requests = provider.received
    assert len(requests) == len(seen)
    followed = 0
    for before, after, headers in zip(requests, requests[1:], seen[1:], strict=False):
        if headers.get("x-refold-reason", "recall") == "recall":  # nothing but that was planned
            assert json.dumps(said(after)).startswith(json.dumps(said(before))[:-1])
            followed += bool(brought(before))
    assert len(model.brought) > 2
    assert followed > 1


@STREAMING
@DIALECTS
def test_the_same_request_again_is_the_same_bytes(serving, talker, streaming):
    model = Beside(after=GREP)
    url, provider = serving(model, **ROOMY)
    client = talker(url, streaming)
    asking(client, model)
    before = deepcopy(client.messages)
    for _ in range(3):
        client.messages = deepcopy(before)
        client.ask()
    first, *again = provider.received[-3:]
    assert client.secret in brought(first)[0].text
    assert [json.dumps(each.body) for each in again] == [json.dumps(first.body)] * 2


@DIALECTS
def test_a_branch_does_not_get_what_was_asked_for_beside_it(serving, talker):
    model = Beside(after=GREP)
    url, provider = serving(model)
    client = talker(url, False)
    before = asking(client, model)
    own, client.messages = client.messages, before
    client.say("Never mind: go on with something else.", "iVBORw0KGgo=")
    client.ask()
    assert not brought(provider.received[-1])
    assert f'"name": "{NAME}"' not in json.dumps(said(provider.received[-1]))
    client.messages = own
    client.ask()
    assert client.secret in brought(provider.received[-1])[0].text
    assert not [each for each in provider.received if each.violations]


@DIALECTS
def test_the_request_that_was_answered_may_come_again_first(serving, talker):
    model = Beside(after=GREP)
    url, provider = serving(model)
    client = talker(url, False)
    before = asking(client, model)
    own, client.messages = client.messages, before
    model.turns = 1
    client.ask()
    assert said(provider.received[-1]) == said(model.asked[0])
    client.messages = own
    client.ask()
    assert client.secret in brought(provider.received[-1])[0].text


@DIALECTS
def test_two_replicas_bring_what_either_was_asked_for(store, talker):  # noqa: F811 # the fixture
    model = Beside(after=GREP)
    given = {"store": store, "window": 16_000, "background": False, "recall_tool": True}
    with (
        ScriptedProvider(behave=model, window=16_000) as provider,
        standing(provider, **given) as one,
        standing(provider, **given) as two,
    ):
        client = talker(one.url, False)
        there, here = talker(two.url, False).client, client.client
        seen = talk(client, 1)
        for turn in range(60):
            client.client = (here, there)[turn % 2]
            seen += talk_on(client, turn)
        pages = [call(each.url, "GET", "/metrics")[2].decode() for each in (one, two)]
    assert {each.status for each in provider.received} == {200}
    assert not [each for each in provider.received if each.violations]
    assert len(model.asked) > 2
    assert len(model.brought) == len(model.asked)
    assert all(client.secret in brought(each)[0].text for each in model.brought)
    assert "dropped" not in "".join(pages)
    followed = 0
    for before, after, old, new in zip(provider.received, provider.received[1:], seen, seen[1:], strict=False):
        if old.get("x-refold-plan") == new.get("x-refold-plan"):
            assert json.dumps(said(after)).startswith(json.dumps(said(before))[:-1])
            followed += bool(brought(before))
    assert followed
