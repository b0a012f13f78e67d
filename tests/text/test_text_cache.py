"""A cache of what texts give holds few long ones."""

import weakref

import pytest

from refold._text.text_cache import FEW, LONG, MANY, SHORT, text_cache


class Found:
    """What can be seen to leave."""


@pytest.fixture
def cache():
    asked = []

    @text_cache
    def found(text, more=0):
        asked.append((len(text), more))
        return Found()

    return found, asked


def test_a_text_is_looked_at_once(cache):
    found, asked = cache
    assert found("a" * 50) is found("a" * 50)
    assert found("a" * 50, 1) is not found("a" * 50)
    assert asked == [(50, 0), (50, 1)]


def test_long_texts_leave_with_what_was_found(cache):
    found, _ = cache
    first = weakref.ref(found("b" * (LONG + 1)))
    for number in range(FEW):
        assert first() is not None
        found(f"{number}" * (LONG + 1))
    assert first() is None


@pytest.mark.parametrize("size", [SHORT, LONG, LONG + 1])
def test_a_text_that_is_asked_for_beside_many_short_ones_stays(cache, size):
    found, asked = cache
    for number in range(MANY // 2):
        found("c" * size)
        found(f"short {number}")
    assert asked.count((size, 0)) == 1
