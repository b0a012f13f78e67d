"""What a gateway holds of conversations that it has forgotten, and of messages that it has answered: nothing."""

import gc
import json
import sys
import time
from collections import Counter

import pytest
from websockets.sync.client import connect

from refold._gateway.conversations.conversation import Conversation
from refold.core.budget import Share
from refold.core.messages import Message
from refold.testing.provider import ScriptedProvider
from tests.gateway.scripted_upstream import call, chat
from tests.gateway.serving_process import serving

SIZE = 1_000_003


@pytest.fixture
def held():
    """A count of what is held that was not there before, by type, without searches for garbage.

    A gateway makes those seldom, since they hold up its requests.
    """
    gc.collect()
    before = {id(each): each for each in found()}
    gc.disable()
    yield lambda: Counter(type(each) for each in found() if id(each) not in before)
    gc.enable()


def found():
    return [each for each in gc.get_objects() if isinstance(each, Conversation | Message)]


def fail():
    raise RuntimeError("no plan")


@pytest.mark.parametrize("done", ["compacted", "forwarded"])
def test_a_conversation_that_is_forgotten_is_free_without_a_search_for_garbage(gateway, controlled, held, done):
    controlled.actions += [fail] if done == "forwarded" else []
    early = Share(0.2, inclusive=True)
    serving, _ = gateway(window=64_000, background=False, memory=1, policy=controlled.path, trigger=early)

    def ask(name):
        body = chat(10)
        body["messages"][1]["content"] = f"Read all files of {name}."
        return call(serving.url, body=body)[1]["x-refold-done"]

    for name in ("one", "two", "three", "four"):
        assert ask(name) == done
    end = time.monotonic() + 5
    while held()[Conversation] > 1 and time.monotonic() < end:
        time.sleep(0.05)
    left = held()
    gc.collect()
    assert held() == left
    assert left[Conversation] == 1


def test_a_message_that_was_answered_is_held_by_no_connection(gateway):
    serving, _ = gateway()
    with connect(f"{serving.url.replace('http', 'ws')}/v1/responses") as one:
        one.send("x" * SIZE)
        assert json.loads(one.recv(20))["type"] == "error"
        texts = [part for each in gc.get_objects() for part in gc.get_referents(each) if isinstance(part, str | bytes)]
        assert not [text for text in texts if len(text) == SIZE]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_that_one_request_has_given_back_is_there_for_the_next_one():
    def faults(process):
        with open(f"/proc/{process.pid}/stat") as stat:
            return int(stat.read().rpartition(")")[2].split()[7])

    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 80_000}]}).encode()
    with (
        ScriptedProvider() as provider,
        serving(provider.openai_url, "--window", "10M") as (process, url),
    ):
        for count in (20, 60):
            before = faults(process)
            for _ in range(count):
                assert call(url, body=body)[0] == 200
            taken = faults(process) - before
    assert taken / 60 < 50
