"""A pass whose meter has seen the messages as they came plans exactly what a pass that sees them for the first time does.

What is found out of messages stays with them, and what is known of the first ones is taken further as more arrive. None
of that may show in a plan, whatever was planned before, and whatever of the conversation was taken back meanwhile.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import refold
from refold._counting.memo import forget
from tools.sample_sessions import examples
from tools.sample_sessions.shapes import SHAPES
from tools.sample_sessions.sized import sized

MADE = [
    *(pytest.param(sample.format, list(sample.messages), id=sample.name) for sample in examples.conversations()),
    pytest.param("openai-chat", sized(20_000), id="a session of calls"),
    *(pytest.param("openai-chat", shape(6_000, 1), id=name) for name, shape in SHAPES.items()),
]


@pytest.mark.parametrize(("format", "messages"), MADE)
def test_a_warm_pass_plans_what_a_cold_one_plans(format: str, messages: list[Any]) -> None:
    whole = refold.count(messages, format=format)
    meter = refold.Meter(budget=whole, format=format, policy="refold")

    def outcome(seen: list[Any], goal: int, meter: refold.Meter | None) -> bytes | str:
        try:
            result = refold.compact(seen, format=format, policy="refold", budget=goal, meter=meter)
        except refold.RefoldError as error:
            return str(error)
        return msgspec.json.encode([result.plan, result.messages])

    middle = len(messages) // 2
    rewound = [*messages[:1], *messages[middle:]]  # begins as before, and goes on in another way
    for seen, share in ((messages[:middle], 0.5), (rewound, 0.3), (messages, 0.2)):
        for end in range(1, len(seen) + 1):
            meter.check(seen[:end])
        goal = max(int(whole * share * len(seen) / len(messages)), 300)
        warm = outcome(seen, goal, meter)
        forget()
        assert warm == outcome(seen, goal, None)
