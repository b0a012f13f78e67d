import pytest

from refold.replay._bounds import Bounds
from refold.replay._equal_size import Limits, SizedResult
from refold.replay._quality import Quality
from refold.replay._repeated_compaction import Cycles
from refold.replay._run import ReplayedCompaction, Run
from refold.replay._summary import limits_of, sizes_of, summed, verdicts
from refold.replay._tables import tables, verdict_table
from refold.replay.pricing import CallTokens, Spent

CUT = 7


def quality(recall):
    return Quality(1, recall, 1 - recall, None, 1.0, 1.0, 1.0, 1.0)


def run(policy, recall=None, size="10%", planted=1.0, last=0.9):
    held = () if policy == "none" else (SizedResult(CUT, size, 0.9, None if recall is None else quality(recall)),)
    limits = (Limits(CUT, size, Bounds(0.9, 0.95, 0.4, 0.3)),) if policy == "none" else ()
    cycles = None if policy == "none" else Cycles((1.0, planted), 0.8, 0.9, last)
    made = () if policy == "none" else (ReplayedCompaction(1, 9, 5, 0),)
    judged = (quality(1.0 if recall is None else recall),)
    return Run(
        "f", policy, 100, (9, 9), (1.0, 2.0), made, Spent(fresh=2.0), CallTokens(18), summaries=3, summary=0.5,
        quality=judged, at_sizes=held, limits=limits, cycles=cycles,
    )  # fmt: skip


def talks(*recalls):
    return [[run("none"), run("a", one), run("b", two)] for one, two in recalls]


def of(found, title):
    (table,) = [each for each in found if each.title == title]
    return {line.name: dict(zip(table.headers, line.cells, strict=True)) for line in table.lines}


def test_recall_stands_between_the_bound_and_the_floors_best_policy_first():
    found = of(tables(talks((0.5, 0.7), (0.6, 0.8))), "Recall at equal size")
    assert list(found) == ["certified bound", "oracle", "b", "a", "newest text", "by chance"]
    said = {name: cells["10% of the history"].text for name, cells in found.items()}
    assert said["certified bound"] == "95.0% ±0.0"
    assert said["b"].startswith("75.0% ±")
    assert [name for name, cells in found.items() if cells["10% of the history"].best] == ["b"]


def test_recall_is_shown_as_a_share_of_the_bound_too():
    found = of(tables(talks((0.475, 0.95))), "Kept at 10% of the history")
    assert (found["of the bound"]["a"].text, found["of the bound"]["b"].text) == ("50.0%", "100.0%")


def test_a_policy_that_did_not_come_down_to_a_size_has_no_figures_there():
    found = of(tables(talks((None, 0.7), (None, 0.8))), "Kept at 10% of the history")
    assert found["came down to it"]["a"].text.startswith("0.0%")
    assert found["recall"]["a"].text == "–"
    assert found["recall"]["b"].text.startswith("75.0%")


def test_five_compactions_are_summed_up_and_the_drift_is_of_the_sums():
    row = summed([[run("none"), run("a", 0.5, planted=0.5, last=0.45)], [run("none"), run("a", 0.5, last=0.9)]])[1]
    assert row.cycles["planted"].value == pytest.approx(0.75)
    assert row.cycles["planted_once"].value == 1
    assert row.cycles["drift"].value == pytest.approx(0.75)


def test_summaries_are_part_of_the_bill():
    row = summed(talks((0.5, 0.7)))[1]
    assert (row.summaries, row.summary, row.bill) == (3, 0.5, 2.5)
    assert of(tables(talks((0.5, 0.7))), "Cost: 1 conversation, 2 calls")["US$ summaries"]["a"].text == "0.50"


def test_figures_at_equal_size_are_told_apart_only_where_conversations_agree():
    apart = talks(*[(0.5, 0.7 + number / 100) for number in range(8)])
    found = {(each.figure, each.verdict) for each in verdicts(apart)}
    assert ("recall at 10%", "supported") in found
    assert ("bill", "not supported") in found
    mixed = talks(*[(0.5, 0.9 if number % 2 else 0.15) for number in range(8)])
    assert ("recall at 10%", "not supported") in {(each.figure, each.verdict) for each in verdicts(mixed)}
    table = verdict_table(apart)
    assert [cell.text for cell in table.lines[-1].cells] == ["a", ""]
    assert verdict_table([talk[:2] for talk in apart]) is None


def test_a_figure_that_half_of_the_policies_share_is_not_marked():
    found = of(tables(talks((0.5, 0.7), (0.6, 0.8))), "Kept at 10% of the history")
    assert not any(cell.best for cell in found["trail"].values())
    assert found["recall"]["b"].best
    assert found["lost"]["b"].best


def test_sizes_stand_shares_first_and_small_ones_first():
    found = [[run("none"), run("a", 0.5, size)] for size in ("15k", "25%", "800", "10%", "2.5k")]
    assert sizes_of(found) == ["10%", "25%", "800", "2.5k", "15k"]


def test_limits_are_means_over_conversations():
    assert limits_of(talks((0.5, 0.7), (0.6, 0.8)))["10%"]["random"].value == pytest.approx(0.3)
