from refold.core.budget import Usage
from refold.core.usage_gauges import Estimate, HigherOf, LastTotal, ReportedPlusTail, covered
from refold.testing import talk

USAGE = Usage(500, 40)


def test_each_gauge_reads_the_same_facts_its_own_way():
    assert Estimate().measure(300, 20, USAGE) == 300
    assert HigherOf().measure(300, 20, USAGE) == 500
    assert HigherOf().measure(600, 20, USAGE) == 600
    assert ReportedPlusTail().measure(300, 20, USAGE) == 520
    assert LastTotal().measure(300, 20, USAGE) == 540


def test_without_a_report_every_gauge_estimates():
    assert {gauge.measure(300, 0, None) for gauge in (Estimate(), HigherOf(), ReportedPlusTail(), LastTotal())} == {300}


def test_a_report_covers_all_before_the_newest_answer_unless_it_says_more():
    messages = talk("u: a", "a: b", "u: c", "a: d", "u: e").messages
    assert covered(messages, Usage(1)) == 3
    assert covered(messages, Usage(1, covers=5)) == 5
    assert covered(messages, Usage(1, covers=99)) == 5
    assert covered(talk("u: a").messages, Usage(1)) == 0


def test_a_report_far_below_the_estimate_is_not_believed_where_that_is_asked_for():
    assert ReportedPlusTail(doubt=0.6).measure(1_000, 20, USAGE) == 1_000
    assert ReportedPlusTail(doubt=0.6).measure(800, 20, USAGE) == 520
    assert ReportedPlusTail().measure(10_000, 20, USAGE) == 520
