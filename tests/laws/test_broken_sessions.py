"""Long sessions of a coding agent whose results lost the id of their call at random: each policy mends and compacts them."""

import copy
import json
import random

import pytest

import refold
from refold import formats, policies
from refold.errors import CannotFit
from refold.testing import talk

OUTPUTS = [
    "1 def work(value): return value\n" * 40,
    "Error: no such file",
    "FAILED tests/test_a.py::test_b - assert 1 == 2",
]
ASKED = ["yes", "no, use port 9090 instead", "Then mend /src/3.py too."]
LINKS = ("tool_call_id", "call_id", "tool_use_id", "toolUseId", "id", "name")


def session(format, chance):
    lines = ["u: Mend all files. Never touch port 8080."]
    for number in range(25):
        path = f"/src/{chance.randrange(8)}.py"
        call = chance.choice(
            [f"read({path})", f"grep({path})", f'bash({{"command": "cat {path} && pytest -q"}})',
             f'edit({{"path": "{path}", "old_string": "value", "new_string": "number"}})']
        )  # fmt: skip
        lines += [f"a: I decided to look at {path}. | {call} as c{number}", f"t: c{number} = {chance.choice(OUTPUTS)}"]
        if chance.random() < 0.2:
            lines += ["a: Done. Shall I go on?", f"u: {chance.choice(ASKED)}"]
    return formats.assemble(formats.find(format), talk(*lines, "u: What does /src/3.py hold?").messages)


def damage(value, chance, rate):
    """Remove or empty what links a result to its call."""
    if isinstance(value, list):
        for entry in value:
            damage(entry, chance, rate)
    elif isinstance(value, dict):
        is_result = not value.keys().isdisjoint(("content", "output", "response"))
        for key in list(value):
            if not (is_result and key in LINKS) or chance.random() > rate:
                damage(value[key], chance, rate)
            elif chance.random() < 0.5:
                del value[key]
            else:
                value[key] = ""


@pytest.mark.parametrize("format", formats.names())
@pytest.mark.parametrize("policy", policies.names())
def test_a_damaged_session_is_compacted_and_valid_and_given_back(format, policy):
    for seed in range(10 if policy == "refold" else 1):
        chance = random.Random(seed)
        messages = session(format, chance)
        damage(messages, chance, chance.choice([0.02, 0.3]))
        for _ in range(chance.randrange(6)):
            del messages[chance.randrange(2, len(messages) - 1)]
        before = json.dumps(messages)
        try:
            result = refold.compact(copy.deepcopy(messages), policy=policy, budget=2_500, format=format, force=True)
        except CannotFit:
            continue
        assert refold.violations(result.messages, format=format) == ()
        assert json.dumps(refold.rewind(result)) == before
