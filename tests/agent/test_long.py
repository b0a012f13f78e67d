"""A long conversation with a summarizer that fails as summarizers do; `benchmarks/long_run.py` has the full length."""

import pytest

from benchmarks.long_run import long_run
from refold import policies

TURNS = 40


@pytest.mark.parametrize("policy", policies.names())
def test_a_long_conversation_loses_neither_its_task_nor_a_pin_nor_an_original(policy, tmp_path):
    run = long_run(policy, TURNS, window=10_000, folder=tmp_path)
    assert run.errors == ()
    assert run.answered == TURNS
    assert run.compactions >= 2
    assert run.missing == ()
    assert run.said >= TURNS * 4
    assert run.lost == 0
    assert run.highest <= 10_000
    assert run.growth < 3.5  # twice the turns; a quadratic store would be at 4
