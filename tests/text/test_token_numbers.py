import pytest

from refold._text.token_numbers import parse_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("200000", 200_000), ("200_000", 200_000), ("200,000", 200_000), ("200k", 200_000), (" 200 K ", 200_000),
        ("1.5m", 1_500_000), (".5k", 500), ("0.3k", 300), ("-5", -5), ("0", 0), ("1,234,567", 1_234_567),
    ],
)  # fmt: skip
def test_a_number_of_tokens_is_read_as_people_write_it(text, tokens):
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize("text", ["", "k", "1.5", "12,34", "1__000", "20%", "1e3", "٣", "two", "1 000", "--5"])
def test_anything_else_is_none(text):
    assert parse_tokens(text) is None
