"""A session whose compaction waits until it pays, by the course of the whole session."""

import refold
from refold.sessions import MemoryStore
from tests.sessions.talks import session, talk


def in_band(messages, share=0.9, **settings):
    """A session that fills that share of its input budget."""
    budget = refold.Budget(int(refold.count(messages, model="gpt-4o") / share))
    opened = session(MemoryStore(), policy="refold", window=None, model="gpt-4o", budget=budget, **settings)
    opened.append(messages)
    return opened


def test_a_compaction_that_does_not_pay_waits_and_check_and_plan_say_why():
    opened = in_band(talk(30))
    check = opened.check()
    assert not check.due
    assert not opened.needs_compaction()
    assert check.waiting.calls_left == 60
    assert opened.plan().break_even == check.waiting
    assert not opened.compact().compacted
    assert opened.plans == ()


def test_the_course_is_that_of_the_session_and_not_of_its_view():
    opened = in_band(talk(30))
    assert opened.compact(force=True).compacted
    paid = opened.plans[0].break_even
    assert paid.cost > 0
    while opened.check().waiting is None:
        opened.append(talk(2))
    waiting = opened.check().waiting
    calls = len(opened.ids) // 4 * 2
    assert waiting.calls_left == calls
    assert opened.plan().break_even.calls_left == calls


def test_above_the_input_budget_a_session_is_compacted_at_once():
    opened = in_band(talk(30), share=1.05)
    assert opened.needs_compaction()
    done = opened.compact()
    assert done.compacted
    assert done.plan.break_even.saving > 0
