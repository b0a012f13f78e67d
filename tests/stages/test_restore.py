from __future__ import annotations

from refold.core.messages import Note
from refold.core.needs import FileNeed, Provided
from refold.stages.restore import Restore
from refold.testing import talk, view_of


def test_files_are_restored_only_in_a_run_that_put_something_in_place_of_the_conversation() -> None:
    view = view_of(talk("u: go", "a: l | read(a.py) as c1", "t: c1 = x", "a: ok"))
    assert Restore().needs(view) == ()
    done = view.after([view.insert("user", "summary", Note("summary"))])
    assert Restore().needs(done) == (FileNeed("a.py", 5_000),)


def test_restored_files_never_take_more_than_the_goal_has_room_for() -> None:
    view = view_of(
        talk("u: go", "a: l | read(a.py) as c1 | read(b.py) as c2", "t: c1 = x | c2 = y", "a: ok"), goal=1_500
    )
    done = view.after([view.insert("user", "summary", Note("summary"))])
    answers = (Provided("y" * 900), Provided("y" * 900))
    edits = Restore().edits(done, answers)
    assert len(edits) == 2
    assert done.after(edits).over_goal <= 0
