import functools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold._counting.memo import forget
from refold._counting.token_slices import SLICE, slices, tokens

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row['encoding']}-{row['text'][:12]!r}")
def test_every_golden_text_has_its_count(row: dict[str, object]) -> None:
    assert tokens(str(row["encoding"]), str(row["text"]) * int(str(row.get("times", 1)))) == row["count"]


def test_text_of_a_special_token_counts_as_ordinary_text() -> None:
    assert tokens("o200k_base", "<|endoftext|>") == 7
    assert tokens("cl100k_base", "<|endoftext|>") == 7


def test_lone_surrogates_are_replaced_and_pairs_are_joined() -> None:
    assert tokens("o200k_base", "\ud83d\ude00") == tokens("o200k_base", "😀")
    assert tokens("o200k_base", "a\udc00") == tokens("o200k_base", "a\ufffd")


@given(
    st.lists(st.sampled_from(["word ", "x=1;\n", "\n\n", "漢字", "  ", "0123456789", "é"]), max_size=40),
    st.integers(1, 4),
)
def test_slices_of_a_text_are_the_text(pieces: list[str], times: int) -> None:
    text = "".join(pieces) * (times * 400)
    cut = list(slices(text))
    assert "".join(cut) == text
    assert all(len(piece) <= SLICE for piece in cut)


@pytest.mark.parametrize(
    "text",
    [
        "The nightly build compiles every package and then runs the full test suite. " * 1_000,
        "def read(path):\n    with open(path) as file:\n        return file.read()\n\n" * 1_000,
        '{"id": 17, "name": "alpha", "tags": ["a", "b"]},\n' * 2_000,
        "2026-01-02 10:11:12 INFO worker-3 took job 8891 in 12.5 ms\n" * 2_000,
    ],
)
def test_a_long_text_in_slices_counts_as_in_one(text: str) -> None:
    splintr = pytest.importorskip("splintr")
    whole = len(splintr.Tokenizer.from_pretrained("o200k_base").encode_ordinary(text))
    assert len(text) > 2 * SLICE
    assert tokens("o200k_base", text) == whole


def test_a_count_does_not_depend_on_what_was_counted_before() -> None:
    text = "alpha beta gamma " * 50
    first = tokens("o200k_base", text)
    assert tokens("o200k_base", text) == first
    forget()
    assert tokens("o200k_base", text) == first


def test_an_empty_text_is_no_token() -> None:
    assert tokens("o200k_base", "") == 0


@functools.cache
def pretrained(encoding: str) -> Any:
    return pytest.importorskip("splintr").Tokenizer.from_pretrained(encoding)


@given(
    st.lists(
        st.sampled_from(("<|", "|>", "endoftext", "im_start", "<|endoftext|>", " x_1", "\n\t", "é日本", "</think>"))
    )
)
def test_every_way_to_count_counts_what_looks_like_a_special_token_as_ordinary_text(pieces: list[str]) -> None:
    text = "".join(pieces)
    for encoding in ("o200k_base", "cl100k_base", "gemma3"):
        assert tokens(encoding, text) == len(pretrained(encoding).encode_ordinary(text))
