import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold._salience.atoms import names_of
from refold._salience.segments import LONG_LINE, LONGEST, Segment, excerpt, extent, segments, split, without_short_gaps

TEXTS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=900), max_size=30).map(
    "\n".join
)


@given(TEXTS)
def test_segments_are_the_whole_text_once_and_in_order(text):
    found = segments(text)
    assert "".join(text[segment.start : segment.stop] for segment in found) == text
    assert all(one.stop == other.start for one, other in pairwise(found))
    assert "".join(split(text)).replace("\n", "") == text.replace("\n", "")


@given(TEXTS)
def test_a_segment_is_short_but_for_a_single_word(text):
    for segment in segments(text):
        words = text[segment.start : segment.stop].removesuffix("\n")
        if "\n" in words:
            assert len(words) <= LONGEST
        else:
            assert len(words) <= LONG_LINE or not any(sign in words[LONGEST // 2 : -2] for sign in " ,;\t")


@given(TEXTS)
def test_the_atoms_of_a_text_are_those_of_its_segments(text):
    assert names_of(text) == frozenset().union(*(segment.atoms for segment in segments(text)))


@given(TEXTS)
def test_all_segments_shown_are_the_text(text):
    assert excerpt(text, segments(text)) == text


def test_what_is_left_out_is_marked_with_its_lines_and_the_order_is_kept():
    text = "\n".join(f"{number:02} {'x' * 100}" for number in range(12))
    found = segments(text)
    lines = excerpt(text, [found[3], found[1]]).split("\n")
    assert lines[0] == "[… 2 lines left out …]"
    assert [line[:2] for line in lines[1:5]] == ["02", "03", "[…", "06"]
    assert lines[-1] == "[… 4 lines left out …]"
    brief = excerpt(text, [found[3], found[1]], brief=True).split("\n")
    assert [line[:3] for line in brief] == ["[…]", "02 ", "03 ", "[…]", "06 ", "07 ", "[…]"]
    assert extent(text, [found[3], found[1]]) == "4 of 12 lines"


def test_blank_lines_between_two_gaps_belong_to_one_marker():
    text = "one\n\ntwo\nthree\n"
    blank, last = Segment(4, 5, frozenset()), Segment(9, 15, frozenset())
    assert excerpt(text, [blank, last]) == "[… 3 lines left out …]\nthree\n"
    assert excerpt(text, [Segment(0, 4, frozenset()), blank, last]) == "one\n\n[… 1 line left out …]\nthree\n"


def elements(number):
    return [{"id": f"T-{each}", "title": f"ticket {each}, {'word ' * 20}", "state": "open"} for each in range(number)]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("wrapped", [lambda of: of, lambda of: {"ok": True, "result": {"total": 40, "tickets": of}}])
def test_json_in_one_line_is_cut_between_its_elements(separators, wrapped):
    text = json.dumps(wrapped(elements(40)), separators=separators)
    pieces = split(text)
    assert all(len(piece) <= LONGEST for piece in pieces)
    for element in elements(40):
        written = json.dumps(element, separators=separators)
        assert any(written in piece for piece in pieces)


def test_an_element_that_is_too_long_is_cut_inside():
    text = json.dumps({"name": "a", "rows": elements(5), "note": "one sentence. " * 40, "last": 1})
    pieces = split(text)
    assert all(len(piece) <= LONGEST for piece in pieces)
    assert any(piece.startswith('{"id": "T-3"') for piece in pieces)
    assert pieces[-1].endswith('"last": 1}')


@pytest.mark.parametrize("between", ["\t", " | ", "; ", ", ", ",", " ", "。"])
def test_other_long_lines_are_cut_at_their_signs(between):
    text = between.join(f"field_{number}" for number in range(150))
    pieces = split(text)
    assert all(len(piece) <= LONGEST for piece in pieces)
    assert all(piece.endswith(between) for piece in pieces[:-1])


def test_a_part_of_a_line_is_shown_with_the_characters_that_are_left_out_around_it():
    text = "first\n" + json.dumps(elements(40)) + "\nlast\nend"
    (part,) = (segment for segment in segments(text) if '"T-17"' in text[segment.start : segment.stop])
    first, line, last, end = excerpt(text, [segments(text)[0], part, segments(text)[-1]]).split("\n")
    assert (first, last, end) == ("first", "last", "end")
    before, after = part.start - len("first\n"), text.index("\nlast") - part.stop
    assert line == (
        f"[… {before:,} characters left out …] {text[part.start : part.stop]}[… {after:,} characters left out …]"
    )
    assert extent(text, [part]) == f"{part.chars:,} of {len(text):,} characters"
    brief = excerpt(text, [part, segments(text)[-1]], brief=True)
    assert brief == f"[…]\n[…] {text[part.start : part.stop]}[…]\nlast\nend"


def test_a_gap_that_is_no_longer_than_its_marker_stays():
    text = "\n".join(["first", "}", *("a line of plain words" for _ in range(3)), "last"])
    first, _, *rest, last = [Segment(at, at + len(line) + 1, frozenset()) for at, line in placed(text)]
    assert excerpt(text, without_short_gaps(text, [first, rest[0]])) == (
        "first\n}\na line of plain words\n[… 3 lines left out …]"
    )
    assert [each.start for each in without_short_gaps(text, [last, first])] == [first.start, last.start]


def placed(text):
    """The lines of a text with where they start."""
    at = 0
    for line in text.split("\n"):
        yield at, line
        at += len(line) + 1
