import json

from refold._condense.shorten import shorten, shorten_arguments


def test_a_text_that_fits_is_left_alone():
    assert shorten("a\nb", 10, len) == "a\nb"


def test_head_and_tail_stay_as_whole_lines_and_a_marker_says_how_much_is_gone():
    text = "\n".join(f"line number {n}" for n in range(100))
    short = shorten(text, 400, len)
    assert 300 < len(short) <= 400
    lines = short.split("\n")
    assert lines[0] == "line number 0"
    assert lines[-1] == "line number 99"
    marker = next(line for line in lines if line.startswith("[…"))
    assert marker == f"[… {100 - (len(lines) - 1)} of 100 lines left out …]"
    assert all(line in text.split("\n") for line in lines if line != marker)


def test_error_lines_of_the_middle_and_sentences_to_keep_survive():
    lines = [f"line number {n}" for n in range(100)]
    lines[50] = "ValueError: it broke"
    short = shorten("\n".join(lines) + "\nNever push.\n" + "tail line\n" * 100, 300, len, keep=("Never push.",))
    assert "ValueError: it broke" in short.split("\n")
    assert "Never push." in short.split("\n")


def test_lines_that_stay_since_they_are_pinned_do_not_count_as_left_out():
    pinned = [f"Never push part {number}." for number in range(40)]
    lines = [*(f"line number {number}" for number in range(100)), *pinned, *("tail line" for _ in range(100))]
    short = shorten("\n".join(lines), 400, len, keep=tuple(pinned))
    shown = [line for line in short.split("\n") if not line.startswith("[…")]
    assert set(pinned) <= set(shown)
    assert f"[… {240 - len(shown)} of 240 lines left out …]" in short


def test_one_very_long_line_is_cut_between_words():
    short = shorten("alpha_beta " * 5_000, 300, len)
    assert len(short) <= 300
    assert set(short.split("\n")[0].split()) == {"alpha_beta"}


def test_arguments_stay_json_with_their_other_values():
    arguments = json.dumps({"path": "a.py", "content": "x = 1\n" * 6_500, "flag": True, "many": list(range(500))})
    short = shorten_arguments(arguments, 200)
    decoded = json.loads(short)
    assert len(short) < 600
    assert decoded["path"] == "a.py"
    assert decoded["flag"] is True
    assert decoded["content"].startswith("x = 1\n")
    assert "lines left out" in decoded["content"]


def test_free_text_is_cut_as_text_and_broken_json_is_left_alone():
    text = "*** Begin Patch\n" + "+ line\n" * 5_000
    assert shorten_arguments(text, 200) == text
    assert len(shorten_arguments(text, 200, free_text=True)) <= 200


def test_a_line_that_just_fits_without_its_line_end_is_cut_like_any_other():
    text = "\n".join(["head"] * 200 + ["x" * 450])
    for limit in range(1_000, 1_400):
        assert len(shorten(text, limit, len)) <= limit


def test_the_changed_lines_of_a_long_edit_are_never_what_is_left_out():
    around = [f"    keep_{n} = load({n})" for n in range(30)]
    old, new = ("\n".join([*around[:15], line, *around[15:]]) for line in ("    size = 4", "    size = 9"))
    short = json.loads(shorten_arguments(json.dumps({"path": "a.py", "old_string": old, "new_string": new}), 300))
    assert "\n    size = 4\n" in short["old_string"]
    assert "\n    size = 9\n" in short["new_string"]
    assert len(short["new_string"]) < 400
