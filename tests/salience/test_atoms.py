from msgspec.structs import replace

from refold._salience.atoms import END, atoms_of, kind_of, names_of
from refold._salience.features import running_tally, tallied
from refold._salience.mentions import mentions_of
from refold.core.transcript import Transcript
from refold.testing import talk


def test_paths_dotted_names_compound_names_and_numbers_are_atoms_and_plain_words_are_not():
    found = atoms_of("see src/store/load.py and os.path in load_items, PgStore at 8080 of the plain words")
    assert found == {"src/store/load.py", "os.path", "load_items", "PgStore", "8080"}


def test_an_atom_is_kept_whole_whatever_signs_stand_around_it():
    assert atoms_of('"load_items(" [src/a_b.py:12] <Store.get>') == {"load_items", "src/a_b.py", "12", "Store.get"}


def test_letters_beyond_ascii_do_not_hide_atoms():
    assert atoms_of("größe → src/a.py … load_items") == {"src/a.py", "load_items"}


def test_the_kind_of_an_atom_follows_from_its_shape():
    assert [kind_of(atom) for atom in ("a/b.py", "os.path", "load_items", "4096", "word")] == [
        "path", "dotted", "name", "number", "",
    ]  # fmt: skip


def test_names_of_a_path_hold_the_file_it_ends_in():
    assert names_of("src/load_items.py") == {"src/load_items.py", "load_items.py", "load_items"}


def test_the_mentions_of_a_message_are_told_apart_by_who_wrote_them_and_found_once():
    asked, called, shown = talk(
        "u: mend get_total", "a: I look at sum_up | read(src/a.py) as c1", "t: c1 = def get_rate\nKeyError: no_rate"
    ).messages
    assert mentions_of(asked).by_user == {"get_total"}
    assert mentions_of(called).in_text == {"sum_up"}
    assert "src/a.py" in mentions_of(called).called
    assert mentions_of(shown).by_tool == {"get_rate", "KeyError", "no_rate"}
    assert mentions_of(shown).failed == {"KeyError", "no_rate"}
    assert mentions_of(shown) is mentions_of(shown)


def test_between_the_ends_of_a_very_long_output_names_count_that_errors_or_other_messages_have():
    filler = "plain words alone\n" * (END // 10)
    text = f"first_name\n{filler}lonely_name and asked_name\nKeyError: wrong_name\n{filler}last_name"
    *_, output = messages = talk("u: what of asked_name?", "a: look | dump() as c1", f"t: c1 = {text}").messages
    assert mentions_of(output).every == {"first_name", "KeyError", "wrong_name", "last_name"}
    notes = tallied(messages).notes
    assert "lonely_name" not in notes
    assert notes["asked_name"][:2] == (0, 2)


def test_what_is_taken_down_as_messages_arrive_is_what_a_pass_takes_down():
    lines = [
        "u: mend get_total",
        "a: see sum_up | read(src/a.py) as c1",
        "t: c1 = def get_rate\nget_total",
        "u: on to sum_up",
    ]
    transcript = talk(*lines)
    running = running_tally(transcript.messages[0])
    for length in (1, 3):
        running.advance(Transcript(transcript.messages[:length]), length)
    assert len(running.noted(transcript)[1]) == 3
    assert tallied(transcript.messages, running.noted(transcript)) == tallied(transcript.messages)
    assert tallied(transcript.messages, running.noted(transcript)) == tallied(
        transcript.messages
    )  # a pass adds to a copy


def test_what_was_taken_down_of_messages_that_are_replaced_is_taken_down_anew():
    transcript = talk("u: mend get_total", "a: see sum_up", "u: on")
    first, _, last = transcript.messages
    running = running_tally(first)
    running.advance(transcript, 3)
    other = Transcript((first, replace(last, id="another")))
    assert running.noted(other) == ({}, [])
    running.advance(other, 2)
    assert tallied(other.messages, running.noted(other)) == tallied(other.messages)
