"""What can fit fits, under every policy: shapes in which one thing is far too large."""

import json

import pytest

import refold
from refold import policies
from refold.errors import CannotFit

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WORDS = " ".join(f"word{number}" for number in range(4_000))
LINES = "\n".join(f"src/part_{number}.py:{number}: value" for number in range(3_000))
CHATTER = [{"role": "user", "content": "Look at it."}, {"role": "assistant", "content": "I do."}] * 4
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


def called(output, arguments=None, count=1):
    arguments = json.dumps(arguments or {"path": "a.py"})
    function = {"name": "read_file", "arguments": arguments}
    calls = [{"id": f"c{number}", "type": "function", "function": function} for number in range(count)]
    results = [{"role": "tool", "tool_call_id": each["id"], "content": output} for each in calls]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


SHAPES = {
    "newest output": [*CHATTER, {"role": "user", "content": "Read."}, *called(LINES)],
    "output of one line": [*CHATTER, *called("x" * 60_000)],
    "many outputs of one answer": [*CHATTER, *called(LINES[:9_000], count=12)],
    "arguments of the newest call": [*CHATTER, *called("ok", {"path": "a", "content": WORDS})],
    "arguments without texts": [*CHATTER, *called("ok", {"rows": [[n, 3 * n] for n in range(3_000)]})],
    "only message": [{"role": "user", "content": WORDS}],
    "first message": [{"role": "user", "content": WORDS}, *CHATTER],
    "last message": [*CHATTER, {"role": "user", "content": WORDS}],
    "last answer": [*CHATTER, {"role": "user", "content": "go"}, {"role": "assistant", "content": WORDS}],
    "pictures of the newest message": [*CHATTER, {"role": "user", "content": [PICTURE] * 40}],
    "pictures in all messages": [*CHATTER, {"role": "user", "content": [PICTURE] * 4}, CHATTER[1]] * 6,
    "number of messages": [{"role": ("user", "assistant")[n % 2], "content": f"m{n}"} for n in range(1_501)],
}


@pytest.mark.parametrize("asked", [False, True], ids=["without", "with"])
@pytest.mark.parametrize("policy", policies.names())
@pytest.mark.parametrize("shape", SHAPES)
def test_one_thing_that_is_far_too_large_is_made_to_fit(shape, policy, asked):
    summarize = (lambda need: "GOAL: go on.") if asked else None
    result = refold.compact(SHAPES[shape], policy=policy, window=6_000, summarize=summarize, force=True)
    assert result.sizes.after <= result.sizes.limit
    assert not refold.violations(result.messages)


RULES = [
    message
    for number in range(100)
    for message in (
        {"role": "user", "content": f"Never touch part_{number}.py and you must keep value_{number} as it is."},
        {"role": "assistant", "content": "Understood."},
    )
]


def test_rules_of_users_that_are_larger_than_the_goal_fit_the_window():
    window = int(refold.count(RULES) * 1.6)
    result = refold.compact([*RULES, {"role": "user", "content": "go"}], window=window, force=True)
    assert result.sizes.goal < result.sizes.after <= result.sizes.limit
    assert all(f"Never touch part_{number}.py" in str(result.messages) for number in range(100))


@pytest.mark.parametrize("policy", policies.names())
def test_what_nothing_shortens_is_named(policy):
    messages = [{"role": "system", "content": WORDS}, *CHATTER]
    with pytest.raises(CannotFit, match=r"system messages [0-9]") as caught:
        refold.compact(messages, policy=policy, window=6_000, force=True)
    assert "message 0 alone" in str(caught.value)
