import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold._counting import counter_for
from refold._counting.token_cut import cut_to_tokens
from refold.core.counting import CharCounter, Counter

PLAIN = CharCounter()
SEED = CharCounter(4, factor=1.23, margin=1.15)
COUNTERS: list[Counter] = [
    PLAIN,
    SEED,
    CharCounter(1.5, floor=True),
    counter_for("gpt-4o"),
    counter_for("claude-opus-4-7"),
]


def test_what_fits_exactly_is_not_cut() -> None:
    assert cut_to_tokens("a" * 40, 10, PLAIN) == ("a" * 40, False)
    assert cut_to_tokens("a" * 41, 10, PLAIN) == ("a" * 37 + "...", True)


def test_a_cut_is_after_a_sentence_that_ends_near() -> None:
    text = "One two three. Four five six. Seven eight nine ten eleven twelve."
    assert cut_to_tokens(text, 9, PLAIN) == ("One two three. Four five six....", True)


def test_else_a_cut_is_after_a_word() -> None:
    text = "alpha beta gamma delta epsilon zeta eta theta"
    cut, was_cut = cut_to_tokens(text, 7, PLAIN)
    assert was_cut
    assert cut == "alpha beta gamma delta..."


def test_a_word_without_end_is_cut_between_characters() -> None:
    assert cut_to_tokens("x" * 400, 5, PLAIN) == ("x" * 17 + "...", True)


def test_nothing_is_left_where_not_even_the_dots_fit() -> None:
    assert cut_to_tokens("word " * 50, 0, PLAIN) == ("", True)
    assert cut_to_tokens("", 0, PLAIN) == ("", False)


def test_a_character_of_several_code_points_stays_whole() -> None:
    family = "👨‍👩‍👧"
    for budget in range(1, 12):
        cut, _ = cut_to_tokens(family * 20, budget, PLAIN)
        assert cut.removesuffix("...").replace(family, "") == ""


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: type(counter).__name__)
@given(
    st.lists(st.sampled_from(["word ", "End. ", "漢字", "😀", "\n", "x" * 30, "{}", "e\u0301"]), max_size=60),
    st.integers(0, 60),
)
def test_the_result_is_within_the_budget_and_begins_as_the_text(
    counter: Counter, pieces: list[str], budget: int
) -> None:
    text = "".join(pieces)
    cut, was_cut = cut_to_tokens(text, budget, counter)
    assert counter.text(cut) <= max(budget, 0)
    assert was_cut == (cut != text)
    assert text.startswith(cut.removesuffix("...") if was_cut else cut)
