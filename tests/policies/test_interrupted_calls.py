"""A call that was interrupted does not keep what came after it; one that awaits its result stays with its end."""

from __future__ import annotations

import pytest

import refold

SUMMARY = "The user moves a service to a new store; the importer is done, and the nightly job is still open."
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": f"call_{n}", "type": "function", "function": {"name": "bash", "arguments": "{}"}} for n in (1, 2)
    ],
}


def chat(count):
    return [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n}: " + "words of it " * 60} for n in range(count)
    ]


@pytest.mark.parametrize("policy", ["claude-code", "neurolink", "opal", "vibe"])
def test_an_interrupted_call_does_not_keep_the_messages_after_it(policy):
    messages = [{"role": "user", "content": "go"}, CALL, *chat(40)]
    result = refold.compact(
        messages, policy=policy, window=9_000, max_output=1_000, force=True, summarize=lambda _: SUMMARY
    )
    assert result.sizes.after <= result.sizes.goal
    assert len(result.messages) < 20
    assert "truncate to goal" not in result.plan.stages_used


def test_results_are_acknowledged_only_where_none_is_awaited():
    answers = [{"role": "tool", "tool_call_id": f"call_{n}", "content": "done " * 900} for n in (1, 2)]
    for results, acknowledged in ((answers, True), (answers[:1], False)):
        messages = [*chat(4), {"role": "user", "content": "go"}, CALL, *results]
        plan = refold.plan(
            messages, policy="vibe", window=9_000, max_output=1_000, force=True, summarize=lambda _: SUMMARY
        )
        assert ("clean" in plan.stages_used) is acknowledged


def test_refold_says_of_a_call_without_result_that_the_user_cut_in():
    messages = [{"role": "user", "content": "go"}, CALL, *chat(40)]
    result = refold.compact(messages, window=9_000, goal=3_500, force=True)
    assert all(
        "conversation was compacted" not in message["content"] for message in result.messages if message["content"]
    )
    early = refold.compact([*chat(40), messages[0], CALL, *chat(3)], window=9_000, goal=3_500, force=True)
    results = [message["content"] for message in early.messages if message["role"] == "tool"]
    assert results == ["[No result: the user's next message came before one]"] * 2


@pytest.mark.parametrize("policy", ["claude-code", "neurolink", "opal", "wolffish", "refold"])
def test_the_result_that_a_call_is_given_is_counted_before_the_request_is_found_to_fit(policy):
    whole = [{"role": "user", "content": "go"}, CALL, {"role": "user", "content": "word " * 900}]
    repaired = refold.count(refold.repair(whole).messages)
    for budget in range(repaired - 60, repaired + 1, 6):
        assert refold.compact(whole, policy=policy, budget=budget, force=True).sizes.after <= budget
