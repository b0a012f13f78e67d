from refold._salience.statements import statements_in, statements_of
from refold.testing import talk


def test_lines_are_statements_and_brackets_alone_are_none():
    assert statements_of("{\n  first line\n}\nsecond line\n") == {"first line", "second line"}


def test_a_long_line_is_taken_by_its_sentences_and_clauses():
    line = "You are in the kitchen. In one part of the room you see a stove, and a table that has some sugar on it."
    assert "You are in the kitchen" in statements_of(line)
    assert statements_of(line) & statements_of(
        "a long way from here there is a house with a table, You are in the kitchen"
    )


def test_a_message_says_what_stands_in_its_words_and_outputs():
    _, call, output = talk("u: Look.", "a: I look around | look(here) as c1", "t: c1 = nothing to be seen").messages
    assert statements_in(call) == {"I look around"}
    assert statements_in(output) == {"nothing to be seen"}
