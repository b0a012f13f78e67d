import pytest
from msgspec.structs import replace

from refold._rules.pairing import GroupPairing, IdPairing
from refold.testing import talk


def broken(rule, *lines):
    messages = [replace(message, native={}) for message in talk(*lines).messages]  # as if read from a native list
    return [(violation.at, violation.message) for violation in rule.broken(messages)]


def test_results_of_parallel_calls_may_come_in_any_order():
    said = ("u: go", "a: look | read(a) as c1 | read(b) as c2", "t: c2 = B", "t: c1 = A", "a: done")
    assert broken(GroupPairing(), *said) == []
    assert GroupPairing().cuts(talk(*said).messages) == {0, 1, 4, 5}


def test_results_that_share_a_message_must_all_be_in_it():
    together = GroupPairing(together=True)
    assert broken(together, "u: go", "a:  | read(a) as c1 | read(b) as c2", "t: c1 = A | c2 = B", "a: ok") == []
    apart = broken(together, "u: go", "a:  | read(a) as c1 | read(b) as c2", "t: c1 = A", "t: c2 = B", "a: ok")
    assert apart == [((3,), "the result of call c2 (read) stands too late")]


def test_a_call_without_result_and_a_result_without_call_are_found():
    assert broken(GroupPairing(), "u: go", "a:  | read(a) as c1", "u: and?") == [((1,), "call c1 (read) has no result")]
    assert broken(GroupPairing(), "u: go", "t: c9 = A") == [((1,), "result c9 has no call")]


def test_a_second_result_is_found_and_never_cut_from_its_batch():
    said = ("u: go", "a:  | read(a) as c1", "t: c1 = A", "t: c1 = B", "a: ok")
    assert broken(GroupPairing(), *said) == [((3,), "a second result for call c1")]
    assert GroupPairing().cuts(talk(*said).messages) == {0, 1, 4, 5}


def test_an_id_may_come_again_in_a_later_batch():
    said = ("u: go", "a:  | read(a) as c1", "t: c1 = A", "a:  | read(b) as c1", "t: c1 = B", "a: ok")
    for rule in (GroupPairing(), GroupPairing(together=True), IdPairing()):
        assert broken(rule, *said) == []
        assert rule.cuts(talk(*said).messages) == {0, 1, 3, 5, 6}


def test_two_calls_of_one_id_need_two_results():
    said = ("u: go", "a:  | read(a) as c | read(b) as c", "t: c = A", "t: c = B")
    assert broken(GroupPairing(), *said) == []
    assert broken(GroupPairing(), *said[:3], "u: so?") == [((1,), "call c (read) has no result")]


@pytest.mark.parametrize("rule", [GroupPairing(), GroupPairing(together=True), IdPairing()])
def test_calls_at_the_very_end_await_their_results(rule):
    messages = talk("u: go", "a:  | read(a) as c1 | read(b) as c2").messages
    assert rule.broken(messages) == ()
    assert [call.call_id for call in rule.open_calls(messages)] == ["c1", "c2"]
    strict = replace(rule, pending=False)
    assert len(strict.broken(messages)) == 2


@pytest.mark.parametrize("rule", [GroupPairing(), GroupPairing(together=True), IdPairing()])
def test_a_call_that_the_user_talked_over_awaits_nothing(rule):
    messages = talk("u: go", "a:  | read(a) as c1", "u: never mind").messages
    assert rule.open_calls(messages) == ()
    assert len(rule.broken(messages)) == 1


def test_a_late_result_is_not_cut_from_its_call():
    said = ("u: go", "a:  | read(a) as c1", "u: wait", "t: c1 = A")
    assert broken(GroupPairing(), *said) == [((3,), "the result of call c1 (read) stands too late")]
    assert GroupPairing().cuts(talk(*said).messages) == {0, 1, 4}


def test_a_result_anywhere_after_its_call_is_enough_where_items_stand_alone():
    said = ("u: go", "a:  | read(a) as c1", "a:  | read(b) as c2", "t: c1 = A", "t: c2 = B")
    assert broken(IdPairing(), *said) == []
    assert IdPairing().cuts(talk(*said).messages) == {0, 1, 5}
