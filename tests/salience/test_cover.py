from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from refold._salience.cover import LEAST, Cover, Unit, choose

ATOMS = st.frozensets(st.sampled_from("abcdefgh"), max_size=4)


def test_what_covers_most_for_its_size_comes_first_and_a_second_copy_gains_nothing():
    units = [Unit("big", 100, frozenset("ab")), Unit("small", 30, frozenset("a")), Unit("copy", 30, frozenset("a"))]
    chosen = choose(units, {"a": 1.0, "b": 0.5}, set(), 200)
    assert [unit.of for unit in chosen] == ["small", "big"]


def test_a_unit_brings_the_one_it_cannot_be_without():
    frame = Unit("frame", 50, frozenset())
    chosen = choose([frame, Unit("part", 30, frozenset("a"), frame)], {"a": 1.0}, set(), 100)
    assert [unit.of for unit in chosen] == ["frame", "part"]


def test_a_unit_whose_frame_does_not_fit_with_it_is_left():
    frame = Unit("frame", 90, frozenset("b"))
    chosen = choose([frame, Unit("part", 30, frozenset("a"), frame)], {"a": 1.0, "b": 0.1}, set(), 100)
    assert [unit.of for unit in chosen] == ["frame"]


def test_equal_units_are_taken_in_the_order_given():
    units = [Unit(number, 30, frozenset(), extra=0.1) for number in range(5)]
    assert [unit.of for unit in choose(units, {}, set(), 100)] == [0, 1, 2]


def page(of, *statements, news=0.1, after=None):
    return Unit(of, 30, frozenset(), after, news=news, statements=frozenset(statements))


def test_what_another_unit_says_is_worth_nothing_a_second_time():
    units = [page("newer", "a table", "a chair", news=0.2), page("older", "a table", "a chair"), page("other", "a bed")]
    assert [unit.of for unit in choose(units, {}, set(), 100)] == ["newer", "other"]


def test_of_a_unit_that_says_one_thing_more_only_that_counts():
    units = [
        page("newer", "a table", "a chair", news=0.2),
        page("older", "a table", "a lamp"),
        page("other", "a bedroom"),
    ]
    assert [unit.of for unit in choose(units, {}, set(), 100)] == ["newer", "other", "older"]


def test_text_that_counts_once_comes_last_where_another_unit_says_it_too():
    def lines(of, once, *statements):
        return Unit(of, 30, frozenset(), once=once, statements=frozenset(statements))

    units = [lines("read", 0.2, "a row"), lines("read again", 0.2, "a row"), lines("other", 0.05, "a line")]
    assert [unit.of for unit in choose(units, {}, set(), 100)] == ["read", "other", "read again"]


def test_what_stays_anyway_says_nothing_new():
    units = [page("stays", "a table"), page("other", "a bed")]
    chosen = Cover(units, lambda atoms: [0.0] * len(atoms), (), {"a table"}).choose(100)
    assert [unit.of for unit in chosen] == ["other"]


@given(st.lists(st.tuples(st.integers(21, 60), ATOMS), min_size=1, max_size=7), st.integers(LEAST + 1, 200))
def test_the_choice_fits_and_is_never_worse_than_a_third_of_the_best(sizes, room):
    worth = {atom: 1.0 + place for place, atom in enumerate("abcdefgh")}

    def value(atoms):
        return sum(worth[atom] for atom in atoms)

    chosen = choose([Unit(place, *size) for place, size in enumerate(sizes)], worth, set(), room)
    assert sum(unit.cost for unit in chosen) <= room
    got = value(frozenset().union(*(unit.atoms for unit in chosen)))
    alone = max((value(atoms) for cost, atoms in sizes if cost <= room), default=0)
    best = max(
        value(frozenset().union(*(atoms for _, atoms in some)))
        for count in range(len(sizes) + 1)
        for some in combinations(sizes, count)
        if sum(cost for cost, _ in some) <= room
    )
    assert max(got, alone) >= best / 3
