"""Counts against the figures that providers document, and against reports that others measured."""

import pytest

from tests.counting.documented import ROWS


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row.model}: {row.what}") for row in ROWS])
def test_a_count_is_near_to_the_documented_figure(row):
    assert abs(row.error) <= row.most


def test_pictures_of_openai_are_counted_to_a_patch():
    rows = [row for row in ROWS if row.kind == "picture" and row.model.startswith("gpt")]
    assert len(rows) > 10
    assert all(abs(row.counted - row.tokens) <= 4 for row in rows)  # 4 frame a call


def test_every_figure_has_its_source():
    assert all(row.source.startswith("https://") for row in ROWS)
    assert {row.kind for row in ROWS} == {"words", "tools", "native block", "picture", "deferred tools"}
