import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold._counting import counter_for
from refold.core.counting import CharCounter, Counter
from refold.models._file_budget import Attached, FileReading, file_budget, fit_files, how_to_read

KB, MB = 1024, 1024 * 1024


def test_n15_the_budget_is_60_per_cent_of_what_remains() -> None:
    assert file_budget(200_000, 50_000, 8_000) == 85_200
    assert file_budget(101, 0) == 60
    assert file_budget(100, 60, 40) == 0
    assert file_budget(100, 500) == 0


@pytest.mark.parametrize(
    ("size", "budget", "reading"),
    [
        (100 * KB - 1, 0, FileReading(False)),
        (100 * KB, 25_600, FileReading(False)),
        (100 * KB, 25_599, FileReading(True, 102_396)),
        (5 * MB, 10, FileReading(True, 40)),
        (5 * MB, 10**9, FileReading(False)),
        (5 * MB + 1, 10**9, FileReading(True, 2_000, preview=True)),
    ],
)
def test_n15_a_file_is_taken_by_its_size(size: int, budget: int, reading: FileReading) -> None:
    assert how_to_read(size, budget) == reading


def test_files_that_fit_together_are_the_same_objects() -> None:
    files = [Attached("a" * 400, "a"), Attached("b" * 400, "b")]
    assert all(one is other for one, other in zip(fit_files(files, 200), files, strict=True))


def test_small_files_stay_whole_and_large_ones_share_what_is_left() -> None:
    files = [Attached("a" * 40_000, "big"), Attached("b" * 400, "small"), Attached("c" * 80_000, "bigger")]
    big, small, bigger = fit_files(files, 2_100)
    assert small.content == "b" * 400
    assert 3_800 < len(big.content) <= 4_000
    assert 3_800 < len(bigger.content) <= 4_000
    assert "[File big: the first " in big.content
    assert big.chars == 40_000


def test_a_file_above_5_mb_is_a_preview() -> None:
    (only,) = fit_files([Attached("x" * (5 * MB + 1), "log.txt")], 10**9)
    assert only.content.startswith("x" * 2_000 + "\n[File log.txt: the first 2,000 of 5,242,881 characters]")
    (whole,) = fit_files([Attached("x" * (5 * MB), "log.txt")], 10**9)
    assert len(whole.content) == 5 * MB


def test_without_room_files_become_empty() -> None:
    assert [file.content for file in fit_files([Attached("a" * 99), Attached("b" * 99)], 0)] == ["", ""]
    assert fit_files([], 100) == ()


COUNTERS: list[Counter] = [CharCounter(), counter_for("gpt-4o"), counter_for("claude-opus-4-7")]


@pytest.mark.parametrize("counter", COUNTERS, ids=["characters", "exact", "calibrated"])
@given(
    st.lists(st.lists(st.sampled_from(["word " * 30, "漢字", "{};", "\n", "😀"]), max_size=60), max_size=5),
    st.integers(0, 2_000),
)
def test_all_files_together_stay_inside_the_budget(counter: Counter, contents: list[list[str]], budget: int) -> None:
    files = [Attached("".join(content), f"f{number}") for number, content in enumerate(contents)]
    fitted = fit_files(files, budget, counter)
    assert [file.path for file in fitted] == [file.path for file in files]
    assert sum(counter.text(file.content) for file in fitted) <= budget
