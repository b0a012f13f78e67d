import pytest

import refold
from refold import formats
from refold.core.messages import Image, Message, MessageId, Text
from refold.replay._bounds import bounds
from refold.replay._judge import (
    age_gap,
    ages_of,
    artifact_trail,
    constraints_kept,
    copy_precision,
    edit_anchors,
    lines_kept,
    needed_atoms,
    recall,
    repeated,
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


def test_a_constraint_in_a_digest_that_was_joined_with_a_users_message_is_kept():
    long = [{"role": "user", "content": "Mend it. Never touch the vault."}]
    for number in range(12):
        used = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": f"f_{number}.py"}}
        shown = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"row_{number} " * 200}
        long += [{"role": "assistant", "content": [used]}, {"role": "user", "content": [shown]}]
        long += [{"role": "assistant", "content": "Fine."}, {"role": "user", "content": f"Go on, {number}. " * 30}]
    made = refold.compact(long, format="anthropic", budget=900, force=True)
    shape = formats.find("anthropic")
    kept = formats.read(shape, made.messages).messages
    assert any(isinstance(part, Text) and part.ours for message in kept for part in message.parts)
    assert constraints_kept(formats.read(shape, long).messages, kept) == 1


def test_ages_tell_how_far_what_was_kept_is_from_what_was_needed():
    history = talk(*[f"u: part_{number}" for number in range(10)]).messages
    ages = ages_of(history)
    assert (ages["part_0"], ages["part_9"]) == (0, 9)
    needed = {"part_0": 1.0, "part_1": 1.0}
    assert age_gap(needed, ages, history[:2]) == 0
    assert age_gap(needed, ages, history[8:]) == 1
    assert age_gap(needed, ages, history[:1]) == pytest.approx(0.5)
    assert (age_gap({}, ages, history), age_gap(needed, ages, ())) == (0, 1)


def test_lines_that_stand_twice_are_a_share_of_all_runs():
    block = "\n".join(f"line {number}" for number in range(6))
    once = talk("a: x | read(f) as c1", f"t: c1 = {block}").messages
    assert repeated(once) == 0
    assert repeated([*once, once[1]]) == 0.5
    assert repeated(()) == 0


def test_an_identifier_that_stands_nowhere_in_the_source_lowers_the_copy_precision():
    assert copy_precision(HISTORY, HISTORY) == 1
    made = talk("u: load_items and made_up_name").messages
    assert copy_precision(HISTORY, made) == 0.5


def test_what_a_placeholder_says_of_an_image_is_no_invention():
    shown = Message(MessageId("i"), "user", (Image("image/png", 10, 30, 216),))
    told = talk("u: [image left out: image/png 30x216] JSON with main_ledger").messages
    assert copy_precision([*HISTORY, shown], told) == 1
    assert copy_precision(HISTORY, told) < 1


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


def test_long_lines_are_chosen_in_pieces():
    row = ", ".join(f'"name_{number}": {number}' for number in range(2_000))
    history = talk("a: x | read(f.json) as c1", f"t: c1 = {row}").messages
    needed = {f"name_{number}": 1.0 for number in (3, 700, 1_900)}
    assert bounds(needed, history, 500).oracle == 1
