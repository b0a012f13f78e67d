import copy

import pytest

import refold
from refold.errors import BrokenConversation
from refold.testing import judge
from tests.testing.judge.ill_formed import ILL_FORMED, body

NOT_REPAIRED = "a-trigger-that-is-not-last"  # it asks for a compaction, which no repair takes back
every_row = pytest.mark.parametrize("row", ILL_FORMED, ids=lambda row: f"{row.format}-{row.name}")


def judged(row, messages):
    return judge.problems(row.format, body(row.format, messages))


def test_there_are_sixty_ill_formed_requests_and_each_has_a_source():
    assert len(ILL_FORMED) >= 60
    assert len({(row.format, row.name) for row in ILL_FORMED}) == len(ILL_FORMED)
    assert all(row.source for row in ILL_FORMED)


@every_row
def test_judge_and_violations_find_fault_with_an_ill_formed_request(row):
    assert judged(row, row.messages)
    assert refold.violations(row.messages, format=row.format)


def test_a_compaction_that_was_asked_for_too_early_is_not_taken_back():
    (row,) = (row for row in ILL_FORMED if row.name == NOT_REPAIRED)
    with pytest.raises(BrokenConversation, match="compaction_trigger is not the last item"):
        refold.repair(row.messages, format=row.format)


@pytest.mark.parametrize(
    "row", [row for row in ILL_FORMED if row.name != NOT_REPAIRED], ids=lambda row: f"{row.format}-{row.name}"
)
def test_what_a_repair_gives_back_contents_judge_and_violations(row):
    before = copy.deepcopy(row.messages)
    made = refold.repair(row.messages, format=row.format).messages
    assert row.messages == before
    assert refold.violations(made, format=row.format) == ()
    assert judged(row, made) == ()
