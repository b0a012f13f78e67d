import msgspec
import pytest

from refold.core.budget import (
    Budget,
    Exactly,
    LeastCost,
    Limit,
    Never,
    Reserve,
    Share,
    Usage,
)
from refold.errors import BadBudget

BUDGET = Budget(1_000, 200)


def test_the_input_budget_is_the_window_less_the_reserve():
    assert BUDGET.input == 800


@pytest.mark.parametrize(("window", "reserve"), [(0, 0), (-1, 0), (10, 10), (10, -1)])
def test_a_window_that_holds_nothing_is_refused(window, reserve):
    with pytest.raises(BadBudget):
        Budget(window, reserve)


@pytest.mark.parametrize(
    ("limit", "below", "at"),
    [
        (Share(0.5), 400, 401),
        (Share(0.5, inclusive=True), 399, 400),
        (Share(0.5, of_window=True), 500, 501),
        (Share(1.0, minus=100), 700, 701),
        (Exactly(300), 300, 301),
        (Exactly(300, inclusive=True), 299, 300),
    ],
)
def test_a_limit_is_reached_on_its_own_reading_of_the_border(limit, below, at):
    assert not limit.reached(below, BUDGET)
    assert limit.reached(at, BUDGET)


def test_never_is_never_reached():
    assert not Never().reached(10**9, BUDGET)


def test_a_reserve_is_the_given_maximum_or_a_capped_share():
    assert Reserve()(100_000, 5_000) == 5_000
    assert Reserve()(100_000, None) == 35_000
    assert Reserve()(1_000_000, None) == 64_000
    assert Reserve(given_cap=20_000)(200_000, 64_000) == 20_000


def test_a_reserve_leaves_room_for_input():
    assert Reserve()(4_000, 4_000) == 3_999


def test_a_negative_usage_report_is_refused():
    with pytest.raises(BadBudget):
        Usage(-1)


def test_the_size_of_least_cost_grows_as_reading_from_the_cache_gets_cheaper():
    sizes = [LeastCost(read=read).size for read in (0.25, 0.1, 0.05, 0.025)]
    assert sizes == sorted(sizes)
    assert LeastCost(refetch_tokens=0).size == 30_000 + int((2 * 1_000 * 1.15 * 30_000 / 0.1) ** 0.5)


def test_without_a_cache_and_without_reading_again_every_call_is_the_time_to_compact():
    assert LeastCost(read=1.0, write=1.0, refetch_tokens=0).size == 30_000


def test_the_size_of_least_cost_is_never_above_a_share_of_the_input_budget():
    assert LeastCost().tokens(Budget(50_000, 10_000)) == 32_000
    assert LeastCost().reached(32_000, Budget(50_000, 10_000))
    assert not LeastCost().reached(31_999, Budget(50_000, 10_000))


@pytest.mark.parametrize("wrong", [{"read": 0}, {"write": -1}, {"growth": 0}])
def test_prices_and_growth_of_nothing_are_refused(wrong):
    with pytest.raises(BadBudget, match="above zero"):
        LeastCost(**wrong)


def test_what_system_prompt_and_tools_take_comes_on_top_of_the_size_of_least_cost():
    wide = Budget(1_000_000)
    assert LeastCost().tokens(wide, 40_000) == LeastCost().tokens(wide) + 40_000
    assert Exactly(30_000, messages_only=True).tokens(wide, 40_000) == 70_000
    assert Exactly(30_000).tokens(wide, 40_000) == 30_000
    assert Exactly(50_000, messages_only=True).tokens(Budget(100_000), 60_000) == 74_000


@pytest.mark.parametrize(
    ("stored", "limit"),
    [
        (b'{"type":"share","share":0.4,"free":0.35,"most":0.6}', Share(0.4, min_message_share=0.35, cap=0.6)),
        (b'{"type":"exactly","count":30000,"beside":true}', Exactly(30_000, messages_only=True)),
        (
            b'{"type":"least_cost","read":0.2,"kept":20000,"again":5000}',
            LeastCost(read=0.2, compacted_size=20_000, refetch_tokens=5_000),
        ),
    ],
)
def test_limits_in_stores_of_earlier_releases_are_read_and_written_by_the_same_names(stored, limit):
    assert msgspec.json.decode(stored, type=Limit) == limit
    assert msgspec.json.encode(limit) == stored


@pytest.mark.parametrize(
    "make",
    [
        lambda: Share(-0.1),
        lambda: Share(0.5, minus=-1),
        lambda: Share(0.5, cap=-0.5),
        lambda: Exactly(-1),
        lambda: Reserve(cap=-1),
    ],
)
def test_a_limit_below_nothing_is_refused(make):
    with pytest.raises(BadBudget):
        make()
