"""Recorded sessions under every policy, ours and where there are some other people's: read, compacted, taken back."""

import pytest

import refold
from refold import policies, transcripts
from refold.errors import BadBudget, CannotFit, UnreadableTranscript
from tests.depth import DEEP
from tests.shared import OWN, SESSIONS, SHARED

DATA = SHARED / "data"
FILES = OWN + sorted(path for path in DATA.rglob("*") if path.is_file() and path.name != "MANIFEST.tsv")
REFUSED = {"empty.jsonl", "duplicate-assistant-response-2.jsonl"}  # no conversation; damaged from the first line on
EACH = 2  # conversations of other people's files; some hold hundreds of a kind
OTHERS = 2  # policies beside the default one that meet a conversation of other people's in a usual run, in turn


def recorded(path):
    try:
        found = transcripts.read(path)
    except UnreadableTranscript:
        assert path.name in REFUSED
        return []
    return [each for each in (found if path in OWN else found[:EACH]) if each.messages]


def size(each, messages):
    return refold.count(messages, format=each.format, system=each.system, tools=each.tools)


def chosen(number, *, all_of_them):
    """The policies for a conversation of a number: each one meets as many of them as the others, the default one all."""
    others = [name for name in policies.names() if name != "refold"]
    if all_of_them:
        return ["refold", *others]
    return ["refold", *(others[(OTHERS * number + place) % len(others)] for place in range(OTHERS))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SESSIONS if path in OWN else DATA)))
def test_a_recorded_conversation_is_compacted_under_every_policy_and_taken_back(path):
    for number, each in enumerate(recorded(path), FILES.index(path)):
        whole = size(each, each.messages)
        before = {violation.message for violation in refold.violations(each.messages, format=each.format)}
        budgets = [whole // 2, whole // 4, 32_000]
        for place, policy in enumerate(chosen(number, all_of_them=DEEP or path in OWN), number):
            for budget in set(budgets if DEEP else [budgets[place % len(budgets)]]) - {0}:
                try:
                    result = refold.compact(
                        each.messages, format=each.format, policy=policy, budget=budget, system=each.system,
                        tools=each.tools, force=True,
                    )  # fmt: skip
                except (CannotFit, BadBudget) as error:
                    assert any(character.isdigit() for character in str(error))  # noqa: PT017 # most runs end without one
                    continue
                assert size(each, result.messages) <= budget
                after = {violation.message for violation in refold.violations(result.messages, format=each.format)}
                assert after <= before
                back = refold.rewind(result)
                assert all(new is old for new, old in zip(back, each.messages, strict=True))
