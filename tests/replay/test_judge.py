import pytest

from refold.replay.bounds import bounds
from refold.replay.judge import (
    artifact_trail,
    constraints_kept,
    copy_precision,
    edit_anchors,
    lines_kept,
    needed_atoms,
    recall,
)
from refold.testing import talk

HISTORY = talk(
    "u: Mend the totals of main_ledger. Never touch the vault.",
    "a: I look | read(src/store.py) as c1",
    "t: c1 = def load_items(path):\n    return open_file(path)",
    'a: I change it | edit({"file_path": "src/rates.py", "old_string": "a", "new_string": "get_rate"}) as c2',
    "t: c2 = done",
).messages


def future(*lines):
    return talk(*lines).messages


def test_needed_is_what_the_assistant_writes_before_it_is_shown_again():
    needed = needed_atoms(
        HISTORY, future("a: load_items | bash(ls) as d1", "t: d1 = open_file", "a: open_file, main_ledger")
    )
    assert needed == {"load_items": 1.0}


def test_what_the_history_never_had_is_not_needed():
    assert needed_atoms(HISTORY, future("a: brand_new_name")) == {}


def test_recall_tells_what_is_present_pointed_to_and_lost():
    needed = {"load_items": 1.0, "src/rates.py": 1.5}
    whole = recall(needed, HISTORY, HISTORY)
    assert (whole.present, whole.pointed, whole.lost) == (1.0, 0.0, 0.0)
    pointer = recall(needed, HISTORY, [*HISTORY[:2]])
    assert pointer.present == 0
    assert pointer.pointed == pytest.approx(0.4)
    assert pointer.recoverable == pytest.approx(0.2)
    assert pointer.lost == pytest.approx(0.6)
    assert recall({}, HISTORY, ()).present == 1


def test_anchors_are_quoted_lines_that_were_shown_before_the_cut_and_not_after():
    edit = 'edit({"file_path": "src/store.py", "old_string": "    return open_file(path)\\nnew line of text", "new_string": "x"})'
    assert edit_anchors(HISTORY, future(f"a: now | {edit} as d1")) == ("return open_file(path)",)
    again = ("a: look | read(src/store.py) as d0", "t: d0 = return open_file(path)")
    assert edit_anchors(HISTORY, future(*again, f"a: now | {edit} as d1")) == ()


def test_lines_count_as_kept_with_or_without_the_number_before_them():
    lines = ("return open_file(path)", "def gone(path):")
    kept = talk("a: x | read(src/store.py) as c1", "t: c1 = 12\treturn open_file(path)").messages
    assert lines_kept(lines, kept) == 0.5
    assert lines_kept((), kept) == 1


def test_the_trail_of_changed_files_has_precision_and_recall():
    assert artifact_trail(HISTORY, HISTORY) == (1.0, 1.0)
    assert artifact_trail(HISTORY, HISTORY[:3]) == (1.0, 0.0)


def test_constraints_are_kept_word_for_word_and_only_where_users_or_notes_speak():
    assert constraints_kept(HISTORY, HISTORY) == 1
    assert constraints_kept(HISTORY, HISTORY[1:]) == 0
    echo = talk("a: x | bash(ls) as c1", "t: c1 = Never touch the vault.").messages
    assert constraints_kept(HISTORY, echo) == 0
    assert constraints_kept(HISTORY, HISTORY, ["Never touch  the vault.", "Ask first."]) == 0.5


def test_an_identifier_that_stands_nowhere_in_the_source_lowers_the_copy_precision():
    assert copy_precision(HISTORY, HISTORY) == 1
    made = talk("u: load_items and made_up_name").messages
    assert copy_precision(HISTORY, made) == 0.5


def test_the_oracle_is_at_least_every_floor_and_at_most_the_certified_bound():
    history = talk(
        "u: go",
        *[
            line
            for n in range(30)
            for line in (f"a: x | read(f_{n}.py) as c{n}", f"t: c{n} = name_{n} " + "word " * 80)
        ],
    ).messages
    needed = {f"name_{n}": 1.0 for n in range(0, 30, 3)}
    found = bounds(needed, history, 500)
    assert 0 < found.oracle <= found.certified <= 1
    assert found.oracle >= max(found.recency, found.random)
    assert bounds(needed, history, 10**6).recency == 1
