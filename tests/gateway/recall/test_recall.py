import json
import random

import pytest

from refold.gateway.recall.tool import NAME
from refold.testing.provider import Answer
from tests.gateway.talking import TALKERS, TASK, output

WINDOW = 12_000
SECRET = "the launch code of part {} is {:06}"


def offered(received):
    return f'"{NAME}"' in json.dumps(received.body.get("tools"))


def asked_back(received):
    """The calls of the tool that stand in a request."""
    return [part for message in received.messages for part in message.parts if getattr(part, "name", "") == NAME]


class Model:
    """Reads two files a turn; whenever the tool is offered for the first time after `every` calls, it asks."""

    def __init__(self, *, text="", query="read_file src/m1.py", beside=(), often=1):
        self.text, self.query, self.beside, self.often = text, query, list(beside), often
        self.turns = 0
        self.asked = 0
        self.results = []

    def __call__(self, received):
        mine = asked_back(received)
        if mine:
            self.results.append(received)
        if offered(received) and len(mine) // 2 < self.often and self.turns % 4 == 3:
            self.asked += 1
            return Answer(self.text, [*self.beside[:1], (NAME, {"query": self.query}), *self.beside[1:]])
        self.turns += 1
        if self.turns % 4 == 0:
            return Answer(f"This is clear now, {self.turns}.")
        number = self.turns
        return Answer(f"Looking at {number}.", [("read_file", {"path": f"src/m{number}.py"})])


def talk(talker, turns, seed=3):
    """Talk for so many answers; the first output holds what will be asked for. Returns headers."""
    dice = random.Random(seed)
    seen = []
    for turn in range(turns):
        headers, calls = talker.ask()
        seen.append({name.lower(): value for name, value in headers.items()})
        if calls:
            texts = [output(dice) + "\n" + SECRET.format(turn, dice.randrange(10**6)) for _ in calls]
            if turn == 0:
                talker.secret = texts[0].split("\n")[-1]
            talker.results(calls, texts)
        else:
            talker.say("Go on.", "iVBORw0KGgo=")
    return seen


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("text", ["", "I look it up."], ids=["silent", "worded"])
@pytest.mark.parametrize("talker", TALKERS, ids=lambda talker: talker.wire)
def test_what_was_left_out_is_brought_back_without_the_client_knowing(gateway, talker, text, streaming):
    model = Model(text=text)
    serving, provider = gateway(behave=model, limit=WINDOW, window=WINDOW, recall_tool=True, background=False)
    client = talker(serving.url, streaming)
    talk(client, 26)
    assert {each.status for each in provider.received} == {200}
    assert not [each for each in provider.received if each.violations]
    assert model.asked > 2
    assert len(model.results) == model.asked
    for received in model.results:
        assert client.secret in json.dumps(received.body, ensure_ascii=False)
    history = json.dumps(client.messages, default=str)
    assert f'"{NAME}"' not in history
    if text:
        assert history.count(text) == model.asked


@pytest.mark.parametrize("talker", TALKERS, ids=lambda talker: talker.wire)
def test_the_prompt_stays_the_same_from_request_to_request(gateway, talker):
    model = Model()
    serving, provider = gateway(behave=model, limit=WINDOW, window=WINDOW, recall_tool=True, background=False)
    seen = talk(talker(serving.url, True), 30)
    requests = [each for each in provider.received if not asked_back(each)]
    assert len(requests) == len(seen)
    key = next(key for key in ("messages", "input", "contents") if key in requests[0].body)
    read = total = 0
    for before, after, old, new in zip(requests, requests[1:], seen, seen[1:], strict=False):
        assert offered(after) == ("x-refold-plan" in new)
        if old.get("x-refold-plan") == new.get("x-refold-plan"):
            assert after.body["tools"] == before.body["tools"]
            shared = strip(before.body[key])
            assert strip(after.body[key])[: len(shared)] == shared
            read, total = read + after.cached, total + after.tokens
    assert read / total > 0.8


def strip(messages):
    return json.loads(json.dumps(messages).replace(', "cache_control": {"type": "ephemeral"}', ""))
