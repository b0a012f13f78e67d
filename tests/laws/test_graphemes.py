"""No compaction tears what a reader sees as one character, whatever the policy cuts."""

import json
import random

import pytest
import regex

import refold
from refold import policies
from refold.errors import CannotFit

CHARACTERS = [
    "e\u0301", "👨‍👩‍👧", "👩🏽‍🚀", "🇩🇪", "❤️", "각", "\u1100\u1161\u11a8", "नि", "क्ष", "त्रि", "กำ", "1️⃣", "ক্ষ", "漢",
    "🏴\U000e0067\U000e0062\U000e007f",
]  # fmt: skip


def conversation(between, seed):
    dice = random.Random(seed)

    def text(count):
        return between.join(dice.choice(CHARACTERS) for _ in range(count))

    messages = [{"role": "user", "content": f"Never delete {text(30)}"}]
    for number in range(8):
        path = json.dumps({"path": text(20)}, ensure_ascii=False)
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read_file", "arguments": path}}
        messages += [
            {"role": "assistant", "content": text(60), "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": text(900)},
            {"role": "user", "content": text(200)},
        ]
    return messages


def characters(value):
    """Return every character within a value that no ASCII text has."""
    match value:
        case str():
            return {found for found in regex.findall(r"\X", value) if not found.isascii()}
        case dict():
            return characters(list(value.values()))
        case list():
            return set().union(*map(characters, value))
        case _:
            return set()


@pytest.mark.parametrize("policy", policies.names())
@pytest.mark.parametrize("between", ["", " ", "\n", ". "])
def test_every_character_of_the_result_is_one_of_the_conversation(policy, between):
    messages = conversation(between, seed=len(between))
    whole, known = refold.count(messages), characters(messages) | set("…—→")
    for share in (0.1, 0.2, 0.35, 0.6):
        try:
            result = refold.compact(messages, policy=policy, budget=int(whole * share), force=True)
        except CannotFit:
            continue
        assert characters(result.messages) <= known
