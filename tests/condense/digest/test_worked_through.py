import pytest

from refold._condense.digest.previous import entry
from refold._condense.digest.render import digest_text
from refold._condense.digest.worked_through import WORKED_THROUGH, worked_through
from refold.core._annotations import recovered
from refold.core.transcript import Transcript
from refold.testing import talk, view_of


def looked_up(*ids):
    return [
        line for id in ids for line in (f'a: Next. | customer_get({{"id": "{id}"}}) as c{id}', f"t: c{id} = a customer")
    ]


def lines(view, staying=0):
    messages = view.transcript.messages
    return worked_through(view, messages[: len(messages) - staying], messages[len(messages) - staying :])


def test_calls_of_a_tool_that_works_through_a_list_are_told_newest_first():
    view = view_of(talk("u: Look up all customers.", *looked_up("K1", "K2", "K3", "K4")))
    assert lines(view) == ("turn 1: customer_get: K4; K3; K2; K1",)


def test_calls_that_stay_or_failed_or_were_for_an_earlier_request_are_not_told():
    assert lines(view_of(talk("u: All.", *looked_up("K1", "K2", "K3", "K4", "K5"))), staying=2) == (
        "turn 1: customer_get: K4; K3; K2; K1",
    )
    failed = ['a: Next. | customer_get({"id": "K5"}) as f', "t! f = no such customer"]
    assert lines(view_of(talk("u: All.", *looked_up("K1", "K2", "K3", "K4"), *failed))) == (
        "turn 1: customer_get: K4; K3; K2; K1",
    )
    assert lines(view_of(talk("u: All.", *looked_up("K1", "K2", "K3", "K4"), "a: All are there.", "u: Thanks."))) == ()


@pytest.mark.parametrize("call", ["read(src/{0}.py)", 'bash({{"command": "make {0}"}})', "grep({0})"])
def test_files_commands_searches_and_a_few_calls_are_not_told(call):
    work = [line for n in range(6) for line in (f"a: Next. | {call.format(n)} as c{n}", f"t: c{n} = x")]
    assert lines(view_of(talk("u: All.", *work))) == ()
    assert lines(view_of(talk("u: All.", *looked_up("K1", "K2", "K3")))) == ()


def test_what_an_earlier_digest_tells_is_carried_on_each_call_once():
    first = view_of(talk("u: All.", *looked_up("K1", "K2", "K3", "K4")), goal=4_000)
    digest = digest_text(first, first.transcript.messages[1:])
    assert f"## {WORKED_THROUGH}\n{entry('turn 1: customer_get: K4; K3; K2; K1')}" in digest
    sent = talk("u: All.", f"u: {digest}", *looked_up("K4", "K5"))
    later = view_of(Transcript(tuple(map(recovered, sent.messages))))
    assert lines(later) == ("turn 1: customer_get: K5; K4; K3; K2; K1",)
