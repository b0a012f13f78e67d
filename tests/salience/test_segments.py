from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from refold._salience.segments import LONGEST, chosen_lines, segments, split

TEXTS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=700), max_size=30).map(
    "\n".join
)


@given(TEXTS)
def test_segments_are_all_lines_once_and_in_order(text):
    found = segments(text)
    assert [line for piece in split(text) for line in piece.split("\n")] == text.split("\n")
    assert all(one.stop == other.start for one, other in pairwise(found))


@given(TEXTS)
def test_a_segment_of_several_lines_is_short(text):
    assert all(segment.chars <= LONGEST + 1 for segment in segments(text) if segment.stop - segment.start > 1)


@given(TEXTS)
def test_all_segments_shown_are_the_text(text):
    assert chosen_lines(text, segments(text)) == text


def test_what_is_left_out_is_marked_with_its_lines_and_the_order_is_kept():
    text = "\n".join(f"{number:02} {'x' * 100}" for number in range(9))
    found = segments(text)
    lines = chosen_lines(text, [found[3], found[1]]).split("\n")
    assert lines[0] == "[… 2 lines left out …]"
    assert [line[:2] for line in lines[1:5]] == ["02", "03", "[…", "06"]
    assert lines[-1] == "[… 1 line left out …]"
