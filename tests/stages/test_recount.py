from __future__ import annotations

from refold.core.edits import Hide
from refold.core.needs import CountNeed, Provided
from refold.core.transcript import Transcript
from refold.stages.recount import Recount
from refold.testing import talk, view_of


def many(count: int = 10) -> Transcript:
    return talk(*[f"{'ua'[n % 2]}: message {n} " + "x" * 80 for n in range(count)])


def test_a_recount_is_asked_for_only_where_something_was_changed() -> None:
    view = view_of(many())
    assert Recount().needs(view) == ()
    done = view.after([Hide((view.messages[0].id,))])
    assert Recount().needs(done) == (CountNeed(done.messages, 16),)
    assert Recount().edits(done, (Provided(count=3),)) == ()
