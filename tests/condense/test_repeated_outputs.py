import pytest

from refold._condense.fit_draft import Draft
from refold._condense.placeholders import content_replaced
from refold._condense.repeated_outputs import correct_markers
from refold.testing import talk, view_of

MARKER = "[output repeated: the same lines come again later] read a.py, 9 lines"
WORK = talk(
    "u: go",
    "a: x | read(a.py) as c1",
    f"t: c1 = {MARKER}",
    "a: y | read(a.py) as c2",
    "t: c2 = line one\nline two",
    "a: z",
)


def test_a_marker_stands_while_what_it_points_to_is_there():
    draft = Draft(view_of(WORK))
    correct_markers(draft)
    assert draft.messages[2].results[0].text == MARKER


def test_a_marker_whose_later_copy_has_left_is_a_plain_pointer():
    draft = Draft(view_of(WORK))
    draft.hide([3, 4])
    correct_markers(draft)
    assert draft.messages[2].results[0].text == "[output cleared] read a.py, 9 lines"


OUTDATED = "[output outdated: the file was changed after this and is read again later] read a.py, 9 lines"


@pytest.mark.parametrize(
    ("marker", "then"),
    [
        (MARKER, "[output cleared] read a.py, 9 lines"),
        (OUTDATED, "[output outdated: the file was changed after this] read a.py, 9 lines"),
    ],
)
def test_a_marker_does_not_promise_a_later_copy_of_which_only_parts_are_there(marker, then):
    lines = ("u: go", "a: x | read(a.py) as c1", f"t: c1 = {marker}", "a: y | read(a.py) as c2", "t: c2 = one\ntwo")
    draft = Draft(view_of(talk(*lines, "a: z")))
    parts = content_replaced(draft.messages[4].results[0], "[parts of the output] read a.py\none\n[…]")
    draft.change(4, parts)
    correct_markers(draft)
    assert draft.messages[2].results[0].text == then
