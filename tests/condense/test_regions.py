from refold._condense.regions import regions
from refold.testing import talk, view_of


def test_answers_are_the_last_words_before_each_turn_and_before_the_end():
    transcript = talk(
        "u: look", "a: I look. | read(a.py) as c1", "t: c1 = x", "a: It is x.",
        "u: and b", "a: I look at b. | read(b.py) as c2", "t: c2 = y",
    )  # fmt: skip
    assert regions(view_of(transcript), 0).answers == (3, 5)


def test_the_newest_step_is_newest_also_where_the_user_spoke_after_it():
    work = [
        "a: I look. | read(a.py) as c1",
        "t: c1 = " + "x " * 900,
        "a: And b. | read(b.py) as c2",
        "t: c2 = " + "y " * 900,
    ]
    assert regions(view_of(talk("u: look", *work, "u: and?")), 10).tail == 3
    assert regions(view_of(talk("u: look", *work, "a: It is y.", "u: and?")), 10).tail == 6
