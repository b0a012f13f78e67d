"""One truth about where a character ends, with the `regex` library as the judge."""

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from refold._text.graphemes import boundary_after, boundary_before, grapheme_prefix, grapheme_suffix

# One or more of each class of UAX 29, and characters of several code points as people write them.
CHARS = [
    "a", " ", "é", "e\u0301", "漢", "\r\n", "\r", "\n", "\t", "\u00ad", "\u200b", "\u200c", "\u200d", "\ufe0f", "\u0301",
    "😀", "👍🏽", "🏽", "👨‍👩‍👧", "👩🏽‍🚀", "❤️", "❤", "©", "🏴\U000e0067\U000e0062\U000e007f", "1️⃣",
    "🇩🇪", "🇩", "🇪", "각", "가", "\u1100", "\u1161", "\u11a8", "\u1100\u1161\u11a8", "\ua960", "\ud7b0", "\ud7cb",
    "नि", "न", "क", "्", "क्ष", "क\u094d\u200dष", "ि", "\u0600", "\u0d4e", "ക", "\u0d4d", "ำ", "ก", "\u1cf5", "\u11a3a",
]  # fmt: skip
texts = st.lists(st.sampled_from(CHARS), max_size=24).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=12
)


def judged(text):
    """Return every place between two characters."""
    return {0, len(text), *(found.end() for found in regex.finditer(r"\X", text))}


@given(texts)
def test_every_place_is_what_the_judge_says(text):
    places = judged(text)
    for at in range(len(text) + 1):
        assert boundary_before(text, at) == max(place for place in places if place <= at)
        assert boundary_after(text, at) == min(place for place in places if place >= at)


@pytest.mark.parametrize("first", CHARS)
def test_any_two_neighbours_are_what_the_judge_says(first):
    for second in CHARS:
        for third in CHARS:
            text = first + second + third
            places = judged(text)
            assert [at for at in range(len(text) + 1) if boundary_before(text, at) == at] == sorted(places), text


@given(texts, st.integers(-3, 90))
def test_what_is_cut_off_is_whole_and_no_longer_than_asked(text, size):
    for part in (grapheme_prefix(text, size), grapheme_suffix(text, size)):
        assert len(part) <= max(size, 0)
    assert text.startswith(grapheme_prefix(text, size))
    assert text.endswith(grapheme_suffix(text, size))
    assert len(grapheme_prefix(text, size)) in judged(text)
    assert len(text) - len(grapheme_suffix(text, size)) in judged(text)


def test_halves_of_a_pair_are_one_character():
    text = "x\ud83d\ude00"
    assert (boundary_before(text, 2), boundary_after(text, 2)) == (1, 3)


def test_noise_without_an_end_is_cut_anyway():
    noise = "a" + "\u0301" * 10_000
    assert boundary_before(noise, 5_000) == 5_000
    assert boundary_after(noise, 5_000) == 5_000


def test_a_cut_in_a_long_row_of_flags_is_between_two_of_them():
    row = "x" + "🇩🇪" * 5_000
    assert [boundary_before(row, at) for at in (5_000, 5_001)] == [4_999, 5_001]
