from refold._text.places import MANY, missing_from, places_of


def test_few_pieces_are_found_where_they_stand_first_and_many_behind_the_one_before():
    text = "one two one three"
    assert list(places_of(["two", "one", "four"], text)) == [("two", 4), ("one", 0), ("four", -1)]
    many = [*["one"] * MANY, "two", "one", "three", "two"]
    assert list(places_of(many, text))[-4:] == [("two", 4), ("one", 8), ("three", 12), ("two", 4)]


def test_pieces_that_a_text_does_not_contain_are_told_among_few_and_among_many():
    text = "\n".join(f"Never touch file_{number}." for number in range(200))
    pieces = [f"Never touch file_{number}." for number in range(150, 250)] + ["ouch file_17", "touch nothing at all"]
    wanted = [f"Never touch file_{number}." for number in range(200, 250)] + ["touch nothing at all"]
    assert sorted(missing_from(text, pieces)) == sorted(wanted)
    assert list(missing_from(text, pieces[-2:])) == ["touch nothing at all"]
