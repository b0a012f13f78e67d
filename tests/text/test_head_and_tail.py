from __future__ import annotations

import pytest

from refold._text.graphemes import grapheme_prefix, grapheme_suffix, head_and_tail

FAMILY = "👩‍👩‍👧"


@pytest.mark.parametrize(
    ("text", "size", "head", "tail"),
    [
        ("abcdef", 3, "abc", "def"),
        ("abc", 9, "abc", "abc"),
        ("abc", 0, "", ""),
        ("", 3, "", ""),
        ("ae\u0301b", 2, "a", "b"),
        ("ae\u0301b", 3, "ae\u0301", "e\u0301b"),
        (FAMILY + "x", 3, "", "x"),
        ("x" + FAMILY, 3, "x", ""),
        (f"x{FAMILY}y", 6, f"x{FAMILY}", f"{FAMILY}y"),
        ("\ud83d\ude00x", 1, "", "x"),
        ("x\ud83d\ude00", 1, "x", ""),
        ("x\ud83d\ude00", 2, "x", "\ud83d\ude00"),
        ("a\r\nb", 2, "a", "b"),
        ("👍🏽a", 1, "", "a"),
        ("🇩🇪🇫🇷", 3, "🇩🇪", "🇫🇷"),
        ("a❤\ufe0fb", 2, "a", "b"),
        ("각x", 1, "각", "x"),
        ("\u1100\u1161\u11a8x", 2, "", "x"),
        ("नि", 1, "", ""),
    ],
)
def test_a_sign_is_never_cut_in_two(text: str, size: int, head: str, tail: str) -> None:
    assert grapheme_prefix(text, size) == head
    assert grapheme_suffix(text, size) == tail


def test_a_pile_of_marks_without_end_is_cut_all_the_same() -> None:
    pile = "a" + "\u0301" * 10_000
    assert 0 < len(grapheme_prefix(pile, 5_000)) <= 5_000
    assert 0 < len(grapheme_suffix(pile, 5_000)) <= 5_000


def test_head_label_and_tail_state_true_numbers() -> None:
    text = head_and_tail("a" * 50 + FAMILY + "b" * 50, 52, 20, "[{omitted} of {original}: {head} + {tail}]")
    assert text == "a" * 50 + "\n[35 of 105: 50 + 20]\n" + "b" * 20
