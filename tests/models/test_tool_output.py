from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.core.counting import CharCounter
from refold.errors import BadBudget
from refold.models._tool_output import archive_output, truncate_output

PIECES = ["a", "é", "漢", "😀", "👨‍👩‍👧", "e\u0301", "\n", " ", "\ud800", "\r\n", "word "]


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def test_n14_what_fits_exactly_is_untouched() -> None:
    for text in ("x" * 51_200, "line\n" * 2_000, "\n".join("x" * 2_000), ""):
        assert truncate_output(text).text == text
        assert not truncate_output(text).truncated


def test_n14_one_byte_or_line_more_is_cut_with_both_sizes_named() -> None:
    by_bytes = truncate_output("x" * 51_201)
    assert by_bytes.truncated
    assert size(by_bytes.text) <= 51_200
    assert by_bytes.text.endswith(f"[Output truncated from 51201 bytes to {by_bytes.kept} bytes]")
    by_lines = truncate_output("line\n" * 2_001)
    assert by_lines.truncated
    assert by_lines.text.count("\n") + 1 == 2_000
    assert by_lines.text.endswith(f"[Output truncated from 10005 bytes to {by_lines.kept} bytes]")


def test_n14_the_tail_stays_unless_the_head_is_asked_for() -> None:
    text = "\n".join(f"line {number}" for number in range(5_000))
    tail, head = truncate_output(text), truncate_output(text, keep="head")
    assert "line 4999" in tail.text
    assert "line 0\n" not in tail.text
    assert head.text.startswith("line 0\n")
    assert "line 4999" not in head.text


def test_n14_the_whole_is_saved_only_when_cut() -> None:
    saved: list[str] = []

    def save(text: str) -> str:
        saved.append(text)
        return "/tmp/out-1.txt"

    assert truncate_output("short", save=save).place is None
    assert saved == []
    cut = truncate_output("x" * 60_000, save=save)
    assert saved == ["x" * 60_000]
    assert cut.place == "/tmp/out-1.txt"
    assert "/tmp/out-1.txt" in cut.text


@pytest.mark.parametrize("keep", ["head", "tail"])
@given(st.lists(st.sampled_from(PIECES), max_size=120), st.integers(1, 400), st.integers(1, 40))
def test_any_output_stays_inside_both_limits(
    keep: Literal["head", "tail"], pieces: list[str], most: int, lines: int
) -> None:
    text = "".join(pieces)
    out = truncate_output(text, most, lines, keep)
    assert size(out.text) <= most
    assert out.size == size(text)
    if out.truncated:
        assert out.text.count("\n") + 1 <= max(lines, 1)
        kept = out.text.rsplit("[Output", 1)[0].removesuffix("\n")
        assert out.kept == 0 or (text.startswith(kept) if keep == "head" else kept in text)
    else:
        assert out.text == text


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(BadBudget):
        truncate_output("x", 0)
    with pytest.raises(BadBudget):
        truncate_output("x", 5, 0)


def test_l08_above_40000_tokens_a_path_and_2000_characters_are_left() -> None:
    saved: list[str] = []

    def save(text: str) -> str:
        saved.append(text)
        return ".transcripts/output_1.txt"

    assert archive_output("x" * 160_000, save, CharCounter()).text == "x" * 160_000
    assert saved == []
    out = archive_output("y" * 160_001, save, CharCounter())
    assert saved == ["y" * 160_001]
    assert out.truncated
    assert out.place == ".transcripts/output_1.txt"
    assert ".transcripts/output_1.txt" in out.text
    assert out.text.count("y") == 2_000 + "bytes) saved".count("y")
