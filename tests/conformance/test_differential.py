"""The policies against their originals: every decision is equal, or a named difference says exactly how it is not.

What the originals decide is data (tests/data/originals), recorded by tools/record_originals.py; the differences, each
with its reason, are on the policies' pages.
"""

from __future__ import annotations

import json

import pytest

from tests.conformance import histories
from tests.conformance.comparisons import COMPARISONS, compared
from tests.conformance.differential import FIGURES, original


@pytest.mark.parametrize("policy", COMPARISONS)
def test_every_decision_is_the_original_s_or_a_named_difference(policy):
    decisions, tally = compared(policy)
    unexplained = [decision for decision in decisions if decision.unexplained]
    assert unexplained == []
    assert set(tally.differences) == set(COMPARISONS[policy].DIFFERENCES), "a difference that never occurs is none"
    assert tally.figures == json.loads(FIGURES.read_text("utf-8"))[policy], "run tools/record_originals.py --figures"


@pytest.mark.parametrize("policy", COMPARISONS)
def test_the_record_says_what_it_was_made_from(policy):
    recorded = original(policy)
    assert recorded["seed"] == histories.SEED
    assert recorded["version"]
    assert recorded["licence"]
    assert [one["name"] for one in recorded["histories"]] == [history.name for history in histories.histories()]
    assert len(recorded["histories"]) >= 60


def test_the_histories_have_every_kind_that_was_asked_for():
    kinds = {history.kind for history in histories.histories()}
    assert kinds >= {"chat", "system", "tools", "parallel", "missing", "trailing", "reads", "huge", "chain", "unicode"}
    lengths = {len(history.entries) for history in histories.histories() if history.kind == "chat"}
    assert {4, 30} <= lengths
