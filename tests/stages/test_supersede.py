from refold.core.messages import ToolResult
from refold.stages.supersede import Supersede
from refold.testing import talk, view_of

BODY = "line of the file\n" * 40


def after(*lines):
    view = view_of(talk(*lines))
    view = view.after(Supersede().edits(view))
    return [part.text for message in view.messages for part in message.parts if isinstance(part, ToolResult)]


def read(id, path="a.py", extra=""):
    return f'a: look | read({{"path": "{path}"{extra}}}) as {id}'


def test_an_older_read_of_the_same_lines_points_to_the_later_one():
    first, second = after("u: go", read("c1"), f"t: c1 = {BODY}", read("c2"), f"t: c2 = {BODY}more")
    assert first == "[output repeated: the same lines come again later] read a.py, 41 lines"
    assert second == f"{BODY}more"


def test_a_later_read_that_contains_the_range_supersedes_and_one_beside_it_does_not():
    part, beside = ', "offset": 5, "limit": 10', ', "offset": 50, "limit": 10'
    first, second, _ = after(
        "u: go", read("c1", extra=part), f"t: c1 = {BODY}", read("c2", extra=beside), f"t: c2 = {BODY}x",
        read("c3", extra=', "offset": 1, "limit": 20'), f"t: c3 = {BODY}{BODY}",
    )  # fmt: skip
    assert first.startswith("[output repeated")
    assert second == f"{BODY}x"


def test_a_change_in_between_makes_the_older_read_outdated():
    first, _, _ = after(
        "u: go", read("c1"), f"t: c1 = {BODY}", "a: change | edit(a.py) as e", "t: e = done",
        read("c2"), f"t: c2 = {BODY}changed",
    )  # fmt: skip
    assert first.startswith("[output outdated: the file was changed after this and is read again later]")


def test_a_change_that_no_read_follows_leaves_the_read_alone():
    first, _ = after("u: go", read("c1"), f"t: c1 = {BODY}", "a: change | edit(a.py) as e", "t: e = done")
    assert first == BODY


def test_a_later_read_that_failed_or_shows_much_less_supersedes_nothing():
    first, _ = after("u: go", read("c1"), f"t: c1 = {BODY}", read("c2"), "t! c2 = no such file")
    assert first == BODY
    first, _ = after("u: go", read("c1"), f"t: c1 = {BODY}", read("c2"), "t: c2 = gone")
    assert first == BODY


def test_the_same_call_with_the_same_output_is_kept_once_and_prose_about_reading_is_not_a_read():
    run = 'a: run | bash({"command": "make"}) as '
    first, second = after("u: go", f"{run}c1", f"t: c1 = {BODY}", f"{run}c2", f"t: c2 = {BODY}")
    assert first == "[output repeated: the same output of the same call comes again later] bash `make`, 41 lines"
    assert second == BODY
    first, second = after(
        "u: go",
        "a: x | note(read a.py) as c1",
        f"t: c1 = read a.py {BODY}",
        "a: x | note(b) as c2",
        f"t: c2 = read a.py {BODY}!",
    )
    assert first.startswith("read a.py")


def test_reads_of_other_files_and_short_outputs_stay():
    assert after("u: go", read("c1"), f"t: c1 = {BODY}", read("c2", "b.py"), f"t: c2 = {BODY}") == [BODY, BODY]
    assert after("u: go", read("c1"), "t: c1 = x", read("c2"), "t: c2 = x") == ["x", "x"]


def test_a_second_run_finds_nothing_more():
    view = view_of(talk("u: go", read("c1"), f"t: c1 = {BODY}", read("c2"), f"t: c2 = {BODY}"))
    view = view.after(Supersede().edits(view))
    assert Supersede().edits(view) == ()


def repeats(sizes):
    lines = ["u: go"]
    for n, size in enumerate(sizes):
        body = "line of the file\n" * size
        lines += [read(f"old{n}", f"{n}.py"), f"t: old{n} = {body}", read(f"new{n}", f"{n}.py"), f"t: new{n} = {body}x"]
    return talk(*lines, "a: done")


def superseded(transcript, goal):
    view = view_of(transcript, goal=goal)
    after = view.after(Supersede().edits(view))
    kept = [part.text for message in after.messages for part in message.parts if isinstance(part, ToolResult)]
    return [number for number, text in enumerate(kept[::2]) if text.startswith("[output")], after


def test_above_its_goal_a_view_loses_the_oldest_repeats_until_the_goal_is_met():
    transcript = repeats([40] * 8)
    whole = view_of(transcript).tokens
    gone, after = superseded(transcript, whole - 1_500)
    assert gone == [0, 1, 2]
    assert 0.9 * (whole - 1_500) <= after.tokens <= whole - 1_500


def test_a_repeat_that_would_leave_much_room_unused_goes_only_where_no_smaller_ones_do():
    transcript = repeats([300, 30, 30, 30])
    whole = view_of(transcript).tokens
    gone, after = superseded(transcript, whole - 800)
    assert gone == [1, 2]
    assert after.tokens <= whole - 800
    gone, after = superseded(transcript, whole - 2_500)
    assert gone == [0]
    assert 0.9 * (whole - 2_500) > after.tokens
