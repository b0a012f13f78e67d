"""What holds when policies follow one another over one conversation: the last request is always in the view."""

from __future__ import annotations

import json
import random
from itertools import count
from typing import Any

import pytest

from refold import compact, violations
from tests.conformance.chains import FORMATS, step, user

POLICIES = ("vibe", "opal", "vibe", "opal", "wolffish", "neurolink", "claude-code", "refold")
ENDS = ("", "\n\nLast request from user was: no", "\n\nThe last request of the user, word for word:\n\nno")


@pytest.mark.parametrize("seed", range(24))
def test_the_last_request_outlives_every_policy_with_and_without_plans(seed: int) -> None:
    dice, numbers = random.Random(seed), count(1)
    format, keeps_plans = FORMATS[seed % len(FORMATS)], seed % 8 < 4
    messages: list[Any] = []
    plans: tuple[Any, ...] = ()
    request = ""
    for cycle in range(4):
        if not cycle or dice.random() < 0.4:
            request = f"Request {seed}x{cycle}: do the thing"
            done = (
                {"role": "assistant", "content": "done"}
                if format != "gemini"
                else {"role": "model", "parts": [{"text": "done"}]}
            )
            messages = [*messages, *([done] if cycle else []), user(format, request + dice.choice(ENDS))]
        messages = [*messages, *(each for _ in range(dice.randint(1, 5)) for each in step(format, next(numbers)))]
        result = compact(
            messages, policy=dice.choice(POLICIES), format=format, force=True, window=dice.choice([4_000, 6_000, 12_000]),
            plans=plans, summarize=(lambda need: "sum") if dice.random() < 0.7 else None,
        )  # fmt: skip
        assert request in json.dumps(result.messages)
        assert violations(result.messages, format=format) == ()
        messages, plans = (messages, result.plans) if keeps_plans else (result.messages, ())
