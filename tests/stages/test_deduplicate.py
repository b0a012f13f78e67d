from __future__ import annotations

from refold._condense.view_positions import with_text
from refold.core.edits import Rewrite
from refold.stages.deduplicate import DeduplicateReads
from refold.testing import talk, view_of

STAGE = DeduplicateReads(saving=0)


def replaced(*lines: str) -> list[str]:
    view = view_of(talk("u: go", *lines))
    seen = view.after(STAGE.edits(view, ()))
    return [r.call_id for m in seen.messages for r in m.results if r.text.startswith("[File ")]


def read(call_id: str, size: int, arguments: str = '{"path": "a.py"}', mark: str = "t:") -> list[str]:
    return [f"a: l | read_file({arguments}) as {call_id}", f"{mark} {call_id} = {'x' * size}"]


EDIT = ['a: l | edit_file({"path": "a.py"}) as e1', "t: e1 = ok"]


def test_of_three_reads_the_last_stays() -> None:
    assert replaced(*read("c1", 900), *read("c2", 900), *read("c3", 900)) == ["c1", "c2"]


def test_a_whole_read_stands_for_an_earlier_part_but_not_the_other_way() -> None:
    part = '{"path": "a.py", "offset": 5, "limit": 20}'
    assert replaced(*read("c1", 500, part), *read("c2", 900)) == ["c1"]
    assert replaced(*read("c1", 900), *read("c2", 500, part)) == []


def test_after_an_edit_the_older_read_is_stale_and_a_shorter_one_may_stand_for_it() -> None:
    assert replaced(*read("c1", 900), *EDIT, *read("c2", 300)) == ["c1"]
    assert replaced(*read("c1", 900), *read("c2", 300)) == []
    assert replaced(*read("c1", 900), *EDIT, *read("c2", 30)) == []


def test_a_failed_read_neither_replaces_nor_is_replaced() -> None:
    assert replaced(*read("c1", 900, mark="t!"), *read("c2", 900)) == []
    assert replaced(*read("c1", 900), *read("c2", 900, mark="t!")) == []
    assert replaced(*read("c1", 900), *read("c2", 900, mark="t!"), *read("c3", 900)) == ["c1"]


def test_a_short_file_is_not_replaced_by_a_longer_reference() -> None:
    assert replaced(*read("c1", 20), *read("c2", 20)) == []


def test_a_read_that_was_cleared_meanwhile_stands_for_nothing() -> None:
    view = view_of(talk("u: go", *read("c1", 900), *read("c2", 900), "a: ok"))
    result = view.messages[4].results[0]
    once = view.after([Rewrite(view.messages[4].id, result.at, with_text(result, "z" * 900))])
    assert STAGE.edits(once, ()) == ()
