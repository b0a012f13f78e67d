import pytest

from refold._text.surrogates import repair_surrogate_escapes, repair_surrogates

HALF = "\ud83d"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("é 😀", "é 😀"),
        (f"a{HALF}b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_are_joined(text, expected):
    assert repair_surrogates(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'{"a": "\ud83d"}', r'{"a": "\ufffd"}'),
        (r'{"a": "\uDE00x"}', r'{"a": "\ufffdx"}'),
        (r'{"a": "\ud83d\ude00"}', r'{"a": "\ud83d\ude00"}'),
        (r'{"a": "C:\\ud83d"}', r'{"a": "C:\\ud83d"}'),
        (r'{"a": "\n\u00e9"}', r'{"a": "\n\u00e9"}'),
    ],
)
def test_escapes_of_lone_surrogates_become_one_that_every_decoder_takes(text, expected):
    assert repair_surrogate_escapes(text) == expected
