import functools

import pytest

from refold import policies
from refold.core._plan_json import load_plan
from refold.core.plan import checked
from refold.core.transcript import Transcript
from tests.golden import cases

made = functools.cache(cases.made)  # three tests look at each plan
EVERY = [(policy, case) for policy in policies.names() for case in cases.CASES]


@pytest.mark.parametrize(("policy", "case"), EVERY)
def test_a_policy_makes_the_plan_that_is_kept(policy, case):
    kept = cases.path(policy, case)
    assert kept.exists(), f"{kept} is missing: run python tools/write_docs.py and review it"
    assert cases.wire(made(policy, case).plan) == kept.read_bytes(), "run python tools/write_docs.py, review the diff"


@pytest.mark.parametrize(("policy", "case"), EVERY)
def test_a_kept_plan_still_applies_to_its_conversation(policy, case):
    again = made(policy, case)
    plan = load_plan(cases.path(policy, case).read_bytes())
    assert checked(plan, Transcript(again.messages)).edits == again.plan.edits


@pytest.mark.parametrize(("policy", "case"), EVERY)
def test_a_policy_has_something_to_do_in_each_case(policy, case):
    plan = made(policy, case).plan
    assert plan.edits
    assert plan.sizes.after <= plan.sizes.limit


def test_no_plan_is_kept_of_a_policy_that_is_gone():
    kept = {folder.name for folder in cases.FOLDER.iterdir() if folder.is_dir() and folder.name != "__pycache__"}
    assert kept == set(policies.names())
