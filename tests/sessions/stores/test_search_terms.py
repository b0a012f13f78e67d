import pytest

from refold.sessions._stores.search_terms import pieces, terms, words_of


def test_words_are_small_and_split_at_every_sign():
    assert words_of("See src/foo_bar.py:12, OK?") == ["see", "src", "foo", "bar", "py", "12", "ok"]
    assert words_of("漢字 and more") == ["漢", "字", "and", "more"]
    assert words_of("x" * 129 + " " + "y" * 128) == ["y" * 128]


def test_a_query_is_words_and_runs_of_signs():
    assert terms("Foo_bar 漢字x") == [["foo"], ["bar"], ["漢", "字"], ["x"]]
    assert terms("?!") == []


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6])
def test_pieces_hold_so_many_words_and_characters(count):
    words = ["ab"] * count
    assert [word for piece in pieces(words, 5, 100) for word in piece] == words
    assert all(len(piece) <= 5 for piece in pieces(words, 5, 100))
    assert all(len(piece) <= 2 for piece in pieces(words, 5, 5))
