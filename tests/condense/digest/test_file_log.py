from refold._condense.digest.file_log import file_log
from refold._condense.digest.sections import touched_files
from refold.testing import talk, view_of


def test_each_file_has_one_line_with_what_was_done_to_it():
    transcript = talk(
        "u: go",
        "a: x | write(new.py) as c1 | read(seen.py) as c2",
        "t: c1 = ok",
        "t: c2 = x",
        "u: on",
        "a: x | edit(new.py) as c3 | edit(new.py) as c4 | edit(wrong.py) as c5 | edit(seen.py) as c6 | read(b.py) as c7",
        "t: c3 = ok",
        "t: c4 = ok",
        "t! c5 = not found",
        "t: c6 = ok",
        "t: c7 = ok",
    )
    lines = [record.line for record in file_log(transcript)]
    assert lines == ["new.py (created, 2 edits, turn 2)", "seen.py (turn 2)", "b.py"]
    assert touched_files(view_of(transcript)) == (("b.py",), ("new.py", "seen.py"))


def test_a_read_after_a_change_leaves_the_turn_of_the_change():
    lines = ("u: go", "a: x | edit(a.py) as c1", "t: c1 = ok", "u: on", "a: x | read(a.py) as c2", "t: c2 = x")
    assert [record.line for record in file_log(talk(*lines))] == ["a.py (turn 1)"]
