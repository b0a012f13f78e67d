import pytest

from refold._page import rates
from refold._page.rates import Rates


@pytest.fixture
def clock(monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr(rates, "monotonic", lambda: now[0])
    return now


def test_a_name_has_as_many_at_once_as_a_minute_has_and_they_come_back_evenly(clock):
    given = Rates()
    assert [given.take("a", 6) for _ in range(8)] == [0] * 6 + [10] * 2
    clock[0] += 9
    assert given.wait("a", 6) == 1
    clock[0] += 1
    assert [given.take("a", 6), given.take("a", 6)] == [0, 10]
    assert given.take("b", 6) == 0


def test_no_number_of_names_makes_it_remember_more(clock, monkeypatch):
    monkeypatch.setattr(rates, "REMEMBERED", 100)
    given = Rates()
    for number in range(1_000):
        given.take(f"name {number}", 1)
        given.take("often", 2)
    assert len(given) == 100
    assert given.wait("name 999", 1) == 60
    assert given.wait("name 0", 1) == 0, "the one that took none for longest is forgotten"
    assert given.wait("often", 2) == 30
