"""A scripted model that asks for what was left out, and clients that talk to it."""

import itertools
import json
import random
import re

from refold._gateway.recall.tool import NAME
from refold.core.messages import ToolCall
from refold.testing.provider import ScriptedReply
from tests.gateway.talking import output

WINDOW = 9_000
MARKS = re.compile(r"\[output (?:cleared|outdated)|\[parts of the output|left out")
SECRET = "the launch code of part {} is {:06}"


def offered(received):
    return f'"{NAME}"' in json.dumps(received.body.get("tools"))


def shortened(received):
    """Whether the words of a plan stand in a request."""
    key = next(key for key in ("messages", "input", "contents") if key in received.body)
    return MARKS.search(json.dumps(received.body[key])) is not None


def asked_back(received):
    """The calls of the tool that stand in a request."""
    parts = [part for message in received.messages for part in message.parts]
    return [part for part in parts if isinstance(part, ToolCall) and part.name == NAME]


class Model:
    """Reads a file a turn, talks in every fourth; asks for originals before that, once the tool is offered.

    It asks up to `often` times in one answer, with calls of the client's tools before or after where `beside` names
    them. `then` is what it answers in place of going on when it has what it asked for.
    """

    def __init__(self, *, text="", query="read_file src/m1.py", before=(), after=(), often=1, then=None):
        self.text, self.query, self.before, self.after = text, query, list(before), list(after)
        self.often, self.then = often, then
        self.turns = 0
        self.asked = 0
        self.results = []

    def __call__(self, received):
        mine = asked_back(received)
        if mine:
            self.results.append(received)
        if offered(received) and shortened(received) and len(mine) < self.often and self.turns % 4 == 3:
            self.asked += 1
            if self.before or self.after:
                self.turns += 1
            return ScriptedReply(self.text, [*self.before, (NAME, {"query": self.query}), *self.after])
        if mine and self.then is not None:
            return self.then
        self.turns += 1
        if self.turns % 4 == 0:
            return ScriptedReply(f"This is clear now, {self.turns}.")
        return ScriptedReply(f"Looking at {self.turns}.", [("read_file", {"path": f"src/m{self.turns}.py"})])


def talk(talker, turns, seed=3):
    """Talk for so many answers; the first output holds what will be asked for. Returns the headers of each."""
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


def brought(received):
    """The results of the tool that stand among those at the end of a request."""
    ids = {call.call_id for call in asked_back(received)}
    ending = itertools.takewhile(lambda message: message.results, reversed(received.messages))
    return [part for message in ending for part in message.results if part.call_id in ids]


def tells(received, secret):
    """Whether a request tells what was asked for: it came back, unless it stands in the conversation still."""
    key = next(key for key in ("messages", "input", "contents") if key in received.body)
    return bool(brought(received)) and secret in json.dumps(received.body[key])


class Beside:
    """Reads a file a turn, talks in every fifth; once the tool is offered it asks before that, beside other calls."""

    def __init__(self, *, before=(), after=(), query="read_file src/m1.py", text=""):
        self.before, self.after, self.query, self.text = list(before), list(after), query, text
        self.turns = 0
        self.asked = []
        self.brought = []

    def __call__(self, received):
        if brought(received):
            self.brought.append(received)
        self.turns += 1
        if self.turns % 5 == 0:
            return ScriptedReply(f"This is clear now, {self.turns}.")
        if offered(received) and shortened(received) and self.turns % 5 == 4:
            self.asked.append(received)
            return ScriptedReply(self.text, [*self.before, (NAME, {"query": self.query}), *self.after])
        return ScriptedReply(f"Looking at {self.turns}.", [("read_file", {"path": f"src/m{self.turns}.py"})])
