from refold.core.budget import Usage
from refold.core.token_units import EstimatedTokens as E
from refold.core.token_units import Ratio
from refold.core.token_units import ReportedTokens as R
from refold.core.usage_gauges import Estimate, HigherOf, LastTotal, ReportedPlusTail, covered, ratio_by
from refold.testing import talk

USAGE = Usage(500, 40)


def test_each_gauge_reads_the_same_facts_its_own_way():
    assert Estimate().measure(E(300), E(20), USAGE) == R(300)
    assert HigherOf().measure(E(300), E(20), USAGE) == R(500)
    assert HigherOf().measure(E(600), E(20), USAGE) == R(600)
    assert ReportedPlusTail().measure(E(300), E(20), USAGE) == R(520)
    assert LastTotal().measure(E(300), E(20), USAGE) == R(540)


def test_without_a_report_every_gauge_estimates():
    assert {
        gauge.measure(E(300), E(0), None) for gauge in (Estimate(), HigherOf(), ReportedPlusTail(), LastTotal())
    } == {R(300)}


def test_a_report_covers_all_before_the_newest_answer_unless_it_says_more():
    messages = talk("u: a", "a: b", "u: c", "a: d", "u: e").messages
    assert covered(messages, Usage(1)) == 3
    assert covered(messages, Usage(1, covers=5)) == 5
    assert covered(messages, Usage(1, covers=99)) == 5
    assert covered(talk("u: a").messages, Usage(1)) == 0


def test_a_report_far_below_the_estimate_is_not_believed_where_that_is_asked_for():
    assert ReportedPlusTail(doubt=0.6).measure(E(1_000), E(20), USAGE) == R(1_000)
    assert ReportedPlusTail(doubt=0.6).measure(E(800), E(20), USAGE) == R(520)
    assert ReportedPlusTail().measure(E(10_000), E(20), USAGE) == R(520)


def test_what_is_estimated_is_converted_by_the_ratio_of_the_report():
    ratio, report = Ratio(2.5, known=True), Usage(5_000, 40)
    assert ReportedPlusTail().measure(E(2_100), E(100), report, ratio) == R(5_250)
    assert HigherOf().measure(E(2_100), E(100), report, ratio) == R(5_250)
    assert Estimate().measure(E(2_100), E(100), report, ratio) == R(5_250)
    assert LastTotal().measure(E(2_100), E(100), report, ratio) == R(5_040)


def test_only_gauges_that_follow_reports_believe_in_fewer_tokens_than_estimated():
    ratio, report = Ratio(0.5, known=True), Usage(1_000, 40)
    assert ReportedPlusTail().measure(E(2_100), E(100), report, ratio) == R(1_050)
    assert HigherOf().measure(E(2_100), E(100), report, ratio) == R(2_100)
    assert Estimate().measure(E(2_100), E(100), report, ratio) == R(2_100)


def test_the_ratio_is_of_the_messages_that_the_report_covers():
    assert ratio_by(Estimate(), E(2_100), E(100), Usage(5_000)) == Ratio(2.5, known=True)
    assert not ratio_by(Estimate(), E(2_100), E(100), None).known
    assert not ratio_by(ReportedPlusTail(doubt=0.6), E(2_100), E(100), Usage(1_000)).known
