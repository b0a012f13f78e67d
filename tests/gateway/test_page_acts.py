"""Acts of the page on conversations of a gateway: what the next request is, and that another process knows it."""

import http.client
import re
import threading
import time
from types import SimpleNamespace
from urllib.parse import unquote, urlencode

import pytest

from refold._gateway.server.tokens import TokenFile
from refold.core.budget import Share
from tests.gateway.scripted_upstream import ADMIN, call, chat
from tests.stores.conftest import postgres_server, postgres_url  # noqa: F401 # fixtures


class Agent:
    """A client with one growing conversation, and the page of its gateway."""

    def __init__(self, serving, provider, token, other):
        self.url, self.provider, self.token, self.other = serving.url, provider, token, other
        self.id = ""

    def say(self, count):
        """Send a request with so many exchanges; return the messages that the provider gets."""
        headers = {"x-refold-token": self.token}
        self.id = call(self.url, body=chat(count), headers=headers)[1]["x-refold-conversation"]
        return self.provider.received[-1].body["messages"]

    def page(self, path="", token=None, **query):
        address = f"/page/c/{self.id}{path}" + (f"?{urlencode(query)}" if query else "")
        status, _, body = call(self.url, "GET", address, None, {"x-refold-token": token or self.token})
        return SimpleNamespace(status=status, text=body.decode())

    def post(self, path, data, token):
        headers = {"x-refold-token": token, "origin": self.url, "content-type": "application/x-www-form-urlencoded"}
        return call(self.url, "POST", f"/page/c/{self.id}{path}", urlencode(data).encode(), headers)

    def do(self, path, status=303, **query):
        asked = self.page(path, **query)
        assert asked.status == 200, asked.text
        form = dict(
            re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', asked.text.rpartition("<form")[2])
        )
        answered, _, body = self.post(path, form, self.token)
        assert answered == status, body.decode()

    def first(self, pattern, **query):
        return unquote(re.search(pattern, self.page(**query).text)[1])


@pytest.fixture
def agent(gateway, tmp_path):
    def make(**settings):
        file = TokenFile(tmp_path / "tokens.jsonl")
        (_, ours), (_, theirs) = (file.create(f"team:{name}") for name in ("red", "blue"))
        settings = {"window": 32_000, "background": False, "store": str(tmp_path / "g.db")} | settings
        serving, provider = gateway(tokens=str(tmp_path / "tokens.jsonl"), **settings)
        return Agent(serving, provider, ours, theirs)

    return make


def test_a_compaction_is_in_the_next_request_and_a_rewind_brings_the_originals_back(agent):
    agent = agent()
    assert agent.say(5) == chat(5)["messages"]
    agent.do("/compact", preview="1", goal="6000")
    assert len(str(agent.say(6))) < len(str(chat(6)["messages"]))
    assert "team:red/" in agent.page().text
    agent.do("/rewind", plan=agent.first(r"/rewind\?plan=(plan%3A\w+)"))
    assert agent.say(6) == chat(6)["messages"]
    agent.do("/undo", step=agent.first(r"/undo\?step=(\d+)"))
    assert len(str(agent.say(7))) < len(str(chat(7)["messages"]))


def test_what_was_rewound_above_the_trigger_is_not_compacted_again_at_once(agent):
    agent = agent(window=16_000, trigger=Share(0.4))
    assert agent.say(5) != chat(5)["messages"]
    agent.do("/rewind", plan=agent.first(r"/rewind\?plan=(plan%3A\w+)"))
    assert agent.say(5) == chat(5)["messages"]
    assert agent.say(7) != chat(7)["messages"]


def test_a_rewind_that_took_place_is_told_although_the_conversation_is_deleted_then(agent, deleted_while_rewound):
    agent = agent(window=16_000)
    agent.say(8)
    deleted_while_rewound(agent.url)
    agent.do("/rewind", plan=agent.first(r"/rewind\?plan=(plan%3A\w+)"))
    assert agent.page().status == 404


def test_a_pin_is_kept_by_the_next_compaction_and_survives_a_restart(agent, tmp_path):
    first = agent()
    first.say(2)
    first.do(
        "/pin",
        message=first.first(r"/pin\?message=([^\"&]+)\"[^>]*>Pin<span class=\"sr\"> message 4<"),
    )
    assert "pinned</span>" in first.page().text
    second = agent(window=16_000)  # another process, which knows the conversation from the store alone
    sent = second.say(8)
    assert sent != chat(8)["messages"]
    assert chat(8)["messages"][3] in sent


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
def test_what_one_replica_was_told_holds_for_the_next_request_at_another(agent, place, request, tmp_path):
    store = str(tmp_path / "shared.db") if place == "sqlite" else request.getfixturevalue("postgres_url")
    one, two = (agent(store=store, window=24_000, trigger=Share(0.6)) for _ in range(2))

    def sent(count):
        return two.say(count) != chat(count)["messages"]

    assert two.say(3) == one.say(3)
    one.do("/compact", preview="1", goal="4000")
    time.sleep(1)  # nothing was stored of it at the other one, which looks for that once a second
    assert sent(3)
    one.do("/rewind", plan=one.first(r"/rewind\?plan=(plan%3A\w+)"))
    assert not sent(3)
    one.do("/undo", step=one.first(r"/undo\?step=(\d+)"))
    assert sent(3)
    one.do("/rewind", plan=one.first(r"/rewind\?plan=(plan%3A\w+)"))
    one.do("/pin", message=one.first(r"/pin\?message=([^\"&]+)\"[^>]*>Pin<span class=\"sr\"> message 4<"))
    one.do("/policy", policy="opal")
    assert not sent(4)
    assert sent(8)
    assert chat(8)["messages"][3] in two.provider.received[-1].body["messages"]
    assert "compacted by opal" in one.page().text
    two.do("/rewind", plan=two.first(r"/rewind\?plan=(plan%3A\w+)"))
    assert one.say(8) == chat(8)["messages"], "what was taken back is not compacted again at once, by whichever"


def test_the_policy_of_one_conversation_is_changed_and_changed_back(agent):
    agent = agent(window=16_000)
    agent.say(2)
    agent.do("/policy", policy="opal")
    agent.say(8)
    assert "compacted by opal" in agent.page().text
    agent.do("/policy", policy="")
    assert "took the policy back" in agent.page().text


def test_acts_on_what_belongs_to_another_owner_are_answered_like_those_on_nothing(agent):
    agent = agent()
    agent.say(3)
    for path in ("/compact", "/rewind", "/pin", "/policy", "/undo"):
        assert agent.page(path, token=agent.other).status == 404
        assert agent.post(path, {"policy": "opal"}, agent.other)[0] == 404
    assert agent.page("/compact", token=ADMIN).status == 200


def test_a_card_is_sent_while_a_compaction_runs_and_when_it_is_done(gateway, controlled, tmp_path):
    serving, _ = gateway(window=16_000, background=False, policy=controlled.path, store=str(tmp_path / "g.db"))
    begun, goes_on = threading.Event(), threading.Event()
    controlled.actions += [begun.set, lambda: goes_on.wait(20)]
    id = call(serving.url, body=chat(2))[1]["x-refold-conversation"]
    headers = {"x-refold-token": ADMIN}
    working = threading.Thread(target=call, args=(serving.url,), kwargs={"body": chat(8)})
    connection = http.client.HTTPConnection(serving.url.partition("//")[2], timeout=20)
    connection.request("GET", f"/page/c/{id}/events?known=nothing", headers=headers)
    events = connection.getresponse()
    working.start()
    try:
        assert begun.wait(20)
        running = next(line for line in events if b"<strong>Compacting" in line)
        assert b"18 messages</strong>, 8 tool results" in running
        assert "Compacting 18 messages" in call(serving.url, "GET", f"/page/c/{id}", None, headers)[2].decode()
    finally:
        goes_on.set()
        working.join()
    assert b"card done" in next(line for line in events if b"<article" in line)
    connection.close()
    text = call(serving.url, "GET", f"/page/c/{id}", None, headers)[2].decode()
    assert re.search(r"Compacted</strong>.* in \d+\.\d s", text)
