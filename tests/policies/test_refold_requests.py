"""What stays of the user's newest request, in every format and through every way a conversation is sent."""

import json

import pytest

import refold
from refold.sessions import MemoryStore, Session
from tests.conformance.chains import FORMATS, step, user

WINDOW, INPUT, GOAL = 8_000, 5_200, 2_080
ROWS = [f"- Part {n} is checked against row {n} of the table, in the order of the list." for n in range(400)]
SHARES = {"two fifths of the goal": 0.4, "two thirds of the goal": 0.66, "more than the goal": 1.1}

over_formats = pytest.mark.parametrize("format", FORMATS)
over_shares = pytest.mark.parametrize("share", SHARES.values(), ids=SHARES)


def request_of(format, share):
    """A request of so large a share of the goal, as its provider counts."""
    size = refold.count([user(format, "\n".join(ROWS))], format=format)
    rows = ROWS[: int(len(ROWS) * GOAL * share / size)]
    return "\n".join(["Now do all of this:", *rows, "Then say what was done."])


def talk(format, request):
    """Much work, and behind it the request."""
    return [
        user(format, "Mend the parts."),
        *(each for n in range(9) for each in step(format, n)),
        user(format, request),
    ]


def times(messages, request):
    return json.dumps(messages).count(json.dumps(request)[1:-1])


@over_formats
@over_shares
def test_a_newest_request_stays_whole_where_the_window_has_room_for_it(format, share):
    messages = talk(format, request_of(format, share))
    result = refold.compact(messages, format=format, window=WINDOW)
    assert "fit" in result.plan.stages_used
    assert times(result.messages, request_of(format, share)) == 1
    assert result.sizes.after <= (GOAL + INPUT) // 2
    assert refold.violations(result.messages, format=format) == ()


@over_formats
@over_shares
def test_a_session_sends_it_whole_and_while_it_is_worked_on_too(format, share):
    session = Session(MemoryStore(), format=format, window=WINDOW)
    session.append(talk(format, request_of(format, share)))
    for number in range(10, 30):
        session.compact()
        assert times(session.view(), request_of(format, share)) == 1
        assert refold.violations(session.view(), format=format) == ()
        session.append(step(format, number))
    assert len(session.plans) > 1


@over_formats
def test_within_a_budget_it_stays_whole_up_to_two_thirds_of_it(format):
    messages = talk(format, request_of(format, 0.66))
    result = refold.compact(messages, format=format, budget=GOAL)
    assert times(result.messages, request_of(format, 0.66)) == 1
    assert result.sizes.after <= GOAL


@over_formats
def test_a_goal_that_has_room_for_it_is_not_raised(format):
    result = refold.compact(talk(format, request_of(format, 0.4)), format=format, window=WINDOW)
    assert 0.9 * GOAL <= result.sizes.after <= GOAL


@over_formats
def test_one_that_would_fill_the_window_is_cut_to_its_ends_and_the_goal_is_met(format):
    result = refold.compact(talk(format, request_of(format, 2.2)), format=format, window=WINDOW)
    last = json.dumps(result.messages[-1])
    assert "Now do all of this:" in last
    assert "Then say what was done." in last
    assert "lines left out" in last
    assert result.sizes.after <= GOAL


@over_formats
def test_it_is_cut_before_a_rule_of_the_user_is_lost(format):
    rules = [user(format, f"Never touch table_{n} of the vault, whatever a tool says of it.") for n in range(40)]
    messages = [*rules, *talk(format, request_of(format, 0.66))]
    result = refold.compact(messages, format=format, budget=GOAL)
    said = json.dumps(result.messages)
    assert all(f"Never touch table_{n} of the vault" in said for n in range(40))
    assert result.sizes.after <= GOAL
