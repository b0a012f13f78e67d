"""What a compaction says is left is what the provider then counts, whatever its tokenizer: 1, 2.7 or 4.5 characters."""

import random

import pytest

import refold
from refold import formats, policies
from refold._counting import counter_for
from refold.core.counting import CharCounter
from refold.sessions import MemoryStore, Session
from refold.testing import ScriptedSummarizer

TOKENIZERS = [1.0, 2.7, 4.5]  # characters a token; Claude, which the format stands for, has 3.5 of this prose
SYSTEM = "You work on a program. " * 40
WORDS = [
    "the",
    "river",
    "budget",
    "of",
    "this",
    "committee",
    "was",
    "rather",
    "small",
    "before",
    "autumn",
    "and",
    "nobody",
    "found",
    "another",
    "reason",
]


def prose(random_: random.Random, words: int) -> str:
    return " ".join(random_.choice(WORDS) for _ in range(words))


def history(steps: int = 24):
    random_ = random.Random(7)
    messages = [{"role": "user", "content": prose(random_, 60)}]
    for number in range(steps):
        call = {"id": f"c{number}", "name": "read_file", "input": {"path": f"notes/{prose(random_, 3)}.md"}}
        messages += [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": prose(random_, 30)}, {"type": "tool_use", **call}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": prose(random_, 300)}],
            },
        ]
    return [*messages, {"role": "assistant", "content": prose(random_, 60)}, {"role": "user", "content": "Go on."}]


def counted(messages, per_token: float) -> int:
    return refold.count(messages, format="anthropic", system=SYSTEM, counter=CharCounter(per_token))


def near(said: int, true: int) -> bool:
    return abs(said - true) <= 0.05 * true


@pytest.mark.parametrize("per_token", TOKENIZERS)
@pytest.mark.parametrize("policy", policies.names())
def test_sizes_after_are_what_the_provider_counts(policy, per_token):
    messages = history()
    report = refold.Usage(counted(messages[:-2], per_token), covers=len(messages) - 2)
    whole = counted(messages, per_token)
    options = {
        "policy": policy, "format": "anthropic", "system": SYSTEM, "budget": refold.Budget(int(whole * 0.7)),
        "summarize": ScriptedSummarizer(prose(random.Random(1), 120)),
    }  # fmt: skip
    result = refold.compact(messages, usage=report, force=True, **options)
    left = counted(result.messages, per_token)
    assert result.plan.edits
    assert result.sizes.calibrated
    assert near(result.sizes.after, left)
    assert near(result.sizes.before, whole)
    assert left <= result.sizes.limit
    options.pop("summarize")
    assert near(refold.check(messages, plans=result.plans, **options).expected, left)


@pytest.mark.parametrize("per_token", TOKENIZERS)
@pytest.mark.parametrize("policy", policies.names())
def test_a_session_says_what_the_provider_counts_next(policy, per_token):
    messages = history()
    whole = counted(messages, per_token)
    session = Session(
        MemoryStore(), policy=policy, format="anthropic", system=SYSTEM, budget=refold.Budget(int(whole * 0.7))
    )
    session.append(messages[:-2])
    session.report(refold.Usage(counted(session.view(), per_token), covers=len(messages) - 2))
    session.append(messages[-2:])
    done = session.compact(force=True, summarize=ScriptedSummarizer(prose(random.Random(1), 120)))
    assert near(done.tokens_after, counted(session.view(), per_token))
    session.append(
        [{"role": "assistant", "content": "Done."}, {"role": "user", "content": prose(random.Random(3), 60)}]
    )
    stats = session.get_context_stats()
    assert near(stats.context_tokens, counted(session.view(), per_token))


def skeletons(steps: int = 40):
    """Long prose read by calls with dense arguments: what a policy leaves is of another kind than what it removes."""
    random_ = random.Random(5)
    messages = [{"role": "user", "content": "Read the reports."}]
    for number in range(steps):
        arguments = f'{{"path":"/srv/q{number}/r-{random_.getrandbits(64):x}.csv","n":{random_.getrandbits(32)}}}'
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "read_file", "arguments": arguments}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": prose(random_, 300)},
        ]
    return [*messages, {"role": "assistant", "content": "Read."}, {"role": "user", "content": "Go on."}]


@pytest.mark.parametrize("policy", [name for name in policies.names() if name != "refold"])
def test_sizes_after_are_right_where_what_stays_is_of_another_kind(policy):
    messages = skeletons()
    whole = refold.count(messages, model="gpt-4o")
    result = refold.compact(
        messages, policy=policy, model="gpt-4o", budget=refold.Budget(int(whole * 0.8)), force=True,
        usage=refold.Usage(refold.count(messages[:-1], model="gpt-4o"), covers=len(messages) - 1),
        summarize=ScriptedSummarizer(prose(random.Random(1), 120)),
    )  # fmt: skip
    left = refold.count(result.messages, model="gpt-4o")
    assert left < whole / 2
    assert result.sizes.after == pytest.approx(left, rel=0.01)


def test_an_exact_counter_that_is_given_decides_where_no_model_is_named():
    counter = counter_for("gpt-4o")
    messages = [{"role": "user", "content": "Look at all rooms."}]
    for number in range(100):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        seen = f"a room with a number of things, such as {prose(random.Random(number), 8)}"
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": seen})
    result = refold.compact(messages, format="openai-chat", policy="refold", budget=2_000, counter=counter, force=True)
    kept = formats.read(formats.find("openai-chat"), result.messages).messages
    assert 1_900 <= sum(map(counter.message, kept)) + counter.per_conversation <= 2_000
