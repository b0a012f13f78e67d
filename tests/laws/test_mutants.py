"""What was valid before a compaction is valid after it, for healthy requests that were changed at random."""

from collections import Counter

import pytest

from tests.healthy.mutants import mutant, tried

RUNS = 600  # `python -m benchmarks.mutants` runs 100,000


def summary(need):
    return f"GOAL: find the slowest stage.\nDONE: {len(need.messages)} messages were here."


@pytest.fixture(scope="module")
def outcomes():
    return [tried(seed, summary) for seed in range(RUNS)]


def test_what_was_valid_stays_valid_under_any_policy(outcomes):
    wrong = [(seed, found.mutant.format, found.way, found.wrong) for seed, found in enumerate(outcomes) if found.wrong]
    assert not wrong


def test_mutants_of_every_format_are_valid_often_enough_to_say_something(outcomes):
    valid = Counter(found.mutant.format for found in outcomes if found.valid and not found.refused)
    assert len(valid) == 5
    assert sum(valid.values()) > RUNS // 5


def test_a_mutant_is_the_same_for_a_seed():
    assert mutant(7) == mutant(7)
