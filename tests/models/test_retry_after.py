import httpx2
import pytest

from refold.models._retry_after import retry_after

NOON = 1_764_331_200.0  # 2025-11-28 12:00:00 UTC


class Told(Exception):
    def __init__(self, message="slow down", **headers):
        super().__init__(message)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = httpx2.Response(429, headers=names)


def clock():
    return NOON


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "250"}, 0.25),
        ({"retry_after": "7", "retry_after_ms": "6500"}, 6.5),
        ({"retry_after": "Fri, 28 Nov 2025 12:00:30 GMT"}, 30),
        ({"retry_after": "Fri, 28 Nov 2025 11:00:00 GMT"}, 0),
        ({"retry_after": "Fri, 28 Nov 2025 12:00:05 -0000"}, 5),
        ({"retry_after": "0"}, 0),
        ({"retry_after": "-3"}, None),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "soon"}, None),
        ({"retry_after_ms": "soon", "retry_after": "3"}, 3),
        ({}, None),
    ],
)
def test_the_headers_of_a_refusal_say_how_long_to_wait(headers, seconds):
    assert retry_after(Told(**headers), clock) == seconds


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Rate limit reached for gpt-4o. Please try again in 6.5s. Visit the page.", 6.5),
        ("Please try again in 1m20.5s.", 80.5),
        ("Please try again in 7m12s", 432),
        ("Please try again in 2h3m", 7_380),
        ("try again in 250ms", 0.25),
        ("Please retry in 34.07s.", 34.07),
        ("please retry after 20 s", 20),
        ("Please try again in a moment", None),
        ("try again in 3 files", None),
        ("Server error", None),
    ],
)
def test_its_words_say_it_where_the_headers_do_not(words, seconds):
    assert retry_after(Told(words), clock) == seconds


def test_the_headers_win_over_the_words():
    assert retry_after(Told("try again in 20s", retry_after="3"), clock) == 3


def test_the_cause_of_an_error_is_looked_at_too():
    outer = RuntimeError("no answer")
    outer.__cause__ = Told(retry_after="9")
    assert retry_after(outer, clock) == 9


@pytest.mark.parametrize("error", [None, "", ValueError(), {"error": {"message": "no"}}, 5])
def test_what_says_nothing_asks_for_no_wait(error):
    assert retry_after(error, clock) is None
