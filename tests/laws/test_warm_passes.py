"""A pass whose meter has seen the messages as they came plans exactly what a pass that sees them for the first time does.

What is found out of messages stays with them, and what is known of the first ones is taken further as more arrive. None
of that may show in a plan, whatever was planned before, and whatever of the conversation was taken back meanwhile.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refold
from refold._counting.memo import forget
from refold._text.text_cache import forget_texts
from tools.sample_sessions import examples
from tools.sample_sessions.shapes import SHAPES
from tools.sample_sessions.sized import sized

MADE = [
    *(pytest.param(sample.format, list(sample.messages), id=sample.name) for sample in examples.conversations()),
    pytest.param("openai-chat", sized(20_000), id="a session of calls"),
    *(pytest.param("openai-chat", shape(6_000, 1), id=name) for name, shape in SHAPES.items()),
]


CHANGED = "a line that was written later, about parse_amount in src/parser.py"


def outcome(seen: list[Any], format: str, goal: int, meter: refold.Meter | None) -> bytes | str:
    """Return plan and messages of a pass, or its error."""
    try:
        result = refold.compact(seen, format=format, policy="refold", budget=goal, meter=meter)
    except refold.RefoldError as error:
        return str(error)
    return msgspec.json.encode([result.plan, result.messages])


@pytest.mark.parametrize(("format", "messages"), MADE)
def test_a_warm_pass_plans_what_a_cold_one_plans(format: str, messages: list[Any]) -> None:
    whole = refold.count(messages, format=format)
    meter = refold.Meter(budget=whole, format=format, policy="refold")
    middle = len(messages) // 2
    rewound = [*messages[:1], *messages[middle:]]  # begins as before, and goes on in another way
    for seen, share in ((messages[:middle], 0.5), (rewound, 0.3), (messages, 0.2)):
        for end in range(1, len(seen) + 1):
            meter.check(seen[:end])
        goal = max(int(whole * share * len(seen) / len(messages)), 300)
        warm = outcome(seen, format, goal, meter)
        forget()
        assert warm == outcome(seen, format, goal, None)


@given(
    st.sampled_from([each.id for each in MADE if each.values[0] == "openai-chat"]),
    st.lists(st.tuples(st.sampled_from(["remove", "edit", "move", "repeat", "forget"]), st.floats(0, 1)), max_size=4),
)
def test_a_pass_after_messages_were_removed_edited_or_moved_plans_what_a_cold_one_plans(
    name: str, changes: list[tuple[str, float]]
) -> None:
    messages = next(each.values[1] for each in MADE if each.id == name)
    goal = max(refold.count(messages, format="openai-chat") // 3, 300)
    meter = refold.Meter(budget=2 * goal, format="openai-chat", policy="refold")
    for end in range(0, len(messages), 7):
        meter.check(messages[:end])
    outcome(messages, "openai-chat", goal, meter)
    seen = list(messages)
    for change, share in changes:
        at = int(share * (len(seen) - 1))
        match change:
            case "remove":
                del seen[at]
            case "edit":
                seen[at] = seen[at] | {"content": CHANGED}
            case "move":
                seen.insert(len(seen) // 2, seen.pop(at))
            case "repeat":
                seen.insert(at, seen[at])
            case _:
                forget()
                forget_texts()
        warm = outcome(seen, "openai-chat", goal, meter)
        assert warm == outcome(seen, "openai-chat", goal, None)
