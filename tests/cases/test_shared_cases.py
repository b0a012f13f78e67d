"""Cases from fault reports; collected where the folder of them is."""

import importlib.util
import warnings

import pytest

from refold._counting import counter_for
from tests.cases import adapter
from tests.cases.failing import FAILING
from tests.shared import SHARED

FOLDER = SHARED / "cases"


def reference():
    spec = importlib.util.spec_from_file_location("case_reference", FOLDER / "ref.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.count_text = counter_for("gpt-4o").text  # exact counts in place of the file's rough rule
    return module


REFERENCE = reference()


def load():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the reference leaves its files to the collector
        for case in REFERENCE.load():
            for policy in adapter.policies_for(case):
                reason = FAILING.get((case["id"][:3], policy), "")
                marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
                yield pytest.param(case, policy, id=f"{case['id']}-{policy}", marks=marks)


CASES = list(load())


@pytest.mark.parametrize(("case", "policy"), CASES)
def test_a_case_from_a_fault_report_passes_its_checks(case, policy):
    out, seen = adapter.run(case, policy)
    failed = [(check, why) for check, passed, why in REFERENCE.run_checks(case, out, seen) if passed is False]
    assert not failed
