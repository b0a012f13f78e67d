import json

from msgspec.structs import replace

import refold
from refold._rules.pairing import GroupPairing
from refold.core.messages import Message, MessageId, Text, ToolCall, memoized
from refold.core.view import Listing
from refold.testing import talk, view_of
from tests.test_api import HALF, MESSAGES

ASKED = []


@memoized
def length(message: Message) -> int:
    ASKED.append(message.id)
    return sum(len(part.text) for part in message.parts if isinstance(part, Text))


def test_a_value_is_asked_once_and_a_changed_one_anew():
    ASKED.clear()
    message = Message(MessageId("one"), "user", (Text("four"),))
    assert (length(message), length(message)) == (4, 4)
    assert length(replace(message, parts=(Text("changed"),))) == 7
    assert ASKED == ["one", "one"]


def test_what_was_found_is_no_part_of_the_value():
    asked, new = (ToolCall("c", "read", json.dumps({"path": "a.py"})) for _ in range(2))
    message = Message(MessageId("m"), "assistant", (asked,))
    assert message.calls == (asked,)
    assert message.results == ()
    assert message == Message(MessageId("m"), "assistant", (new,))
    assert hash(asked) == hash(new)


def test_a_view_finds_out_once_who_answers_whom():
    view = view_of(talk("u: go", "a: x | read(a.py) as c", "t: c = text"), rules=(GroupPairing(),))
    assert isinstance(view.messages, Listing)
    assert GroupPairing().index(view.messages) is GroupPairing().index(view.messages)
    assert GroupPairing().index(tuple(view.messages)) == GroupPairing().index(view.messages)
    assert view.broken == ()


def test_a_pass_gives_the_same_whatever_was_found_out_before():
    meter = refold.Meter(window=50_000, format="openai-chat")
    meter.check(MESSAGES)
    first = refold.compact(MESSAGES, budget=HALF, meter=meter)
    again = refold.compact(MESSAGES, budget=HALF, meter=meter)
    fresh = refold.compact(MESSAGES, budget=HALF)
    assert first.plan == again.plan == fresh.plan
    later = refold.compact(MESSAGES, budget=HALF - 40, meter=meter, plans=first.plans)
    assert later.plan == refold.compact(MESSAGES, budget=HALF - 40, plans=fresh.plans).plan
