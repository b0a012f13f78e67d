import pytest

from refold._condense.digest.endings import outcome_lines
from refold.testing import talk


def ending(answer):
    transcript = talk("u: make it faster", f"a: {answer}", "u: on")
    return outcome_lines(transcript, ())


def test_items_of_lists_and_suppositions_are_no_ending():
    begins = "turn 1: make it faster → "
    assert ending("Causes:\n- The cache was cold\n- Two locks\n\nThe loop is twice as fast.") == (
        f"{begins}The loop is twice as fast.",
    )
    assert ending("If the second run is slow too, the disk is broken. It takes 3 s now.") == (
        f"{begins}It takes 3 s now.",
    )
    assert ending("Done:\n- The cache is warm.\n- One lock") == (f"{begins}The cache is warm; One lock",)
    assert ending("So far:\n\n## Summary\n- The cache is warm\n- One lock") == ()


def test_of_an_answer_that_begins_with_what_says_little_the_first_sentence_that_names_something_is_told():
    transcript = talk("u: go", "a: All tests pass. Changed `load` to read one file.", "u: and now?")
    assert outcome_lines(transcript, ()) == ("turn 1: go → Changed `load` to read one file.",)


def how_it_ended(request, *answer):
    transcript = talk(f"u: {request}", "a: " + "\n".join(answer), "u: and now?")
    return "".join(outcome_lines(transcript, ())).partition(" → ")[2]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            ("**The bug.** Both forms only swapped text.", "**The fix.** `convert` reads it twice."),
            "The fix: `convert` reads it twice.",
        ),
        (
            ("In all lists there is no page.", "Commit landed as `b51711ec`.", "No list has a page."),
            "Commit landed as `b51711ec`. No list has a page.",
        ),
        (("Updated `a.py`.", "Each color is clearly different now!"), "Updated `a.py`."),
        (
            ("Added three tokens:", "- `off` is #303030", "- `low` is #5f87af", "", "Users can see it all!"),
            "Added three tokens: `off` is #303030; `low` is #5f87af",
        ),
        (
            ("Tests pass.", "1. **Added `rest`** (`a.py:29`):", "   - Compares `hash`", "2. **Updated `carry`**:"),
            "Added `rest` (`a.py:29`); Updated `carry`",
        ),
        (
            ("Done. The sentence now reads:", "```md", "See the list.", "```", "", "`lint` passes."),
            'The sentence now reads: "See the list." `lint` passes.',
        ),
        (("Added a section with links to:", "", "`lint` passes."), "Added a section. `lint` passes."),
        (("Code: [a.py](src/a.py)", "Also: [b.py](b.py) and [c.py](c.py)", "`load` is slow."), "`load` is slow."),
        (("I pushed `main`.", "So it calls `inval"), "I pushed `main`."),
    ],
)
def test_of_work_the_sentence_tells_that_says_what_was_done_and_items_that_name_something(answer, told):
    assert how_it_ended("the form has a fault", *answer) == told


def test_a_question_is_answered_by_the_first_sentence_that_says_something():
    assert how_it_ended("is all committed?", "All committed. There is an unused `os` import.") == (
        "All committed. There is an unused `os` import."
    )
    assert how_it_ended("why is it slow?", "`load` reads it twice.", "I updated note 8.") == (
        "`load` reads it twice. I updated note 8."
    )
    assert how_it_ended("could you make it quick?", "`load` read it twice.", "I changed `load`.") == "I changed `load`."


def test_headings_are_told_with_their_first_item_only():
    answer = ("I read the project well and know how it works now.", "**What it is**", "- A tool for logs", "**Next**")
    assert how_it_ended("look at it", *answer) == (
        "I read the project well and know how it works now; What it is: A tool for logs"
    )


def test_an_outcome_is_whole_sentences_within_its_length():
    sentences = " ".join(f"Changed `load_{n}` to read one file only." for n in range(20))
    (line,) = outcome_lines(talk("u: go", f"a: {sentences}", "u: and now?"), ())
    assert line.endswith("to read one file only.")
    assert len(line) < 300


def test_with_room_for_more_an_answer_is_told_with_its_whole_list_and_the_request_in_more_words():
    request = "rename every table and every index of the store " * 4
    items = "\n".join(f"- `table_{number}` is called `store_table_{number}` now" for number in range(8))
    transcript = talk(f"u: {request}", f"a: Renamed all tables:\n{items}", "u: on")
    (line,), (full,) = outcome_lines(transcript, ()), outcome_lines(transcript, (), full=True)
    assert "… → Renamed all tables: `table_0`" in line
    assert "`table_7`" not in line
    assert f"turn 1: {request.strip()} → Renamed all tables: `table_0` is called" in full
    assert full.endswith("`table_7` is called `store_table_7` now")


def test_a_sentence_that_is_too_long_ends_at_a_clause_and_not_within_one():
    clauses = ", ".join(f"the step number {number} of the plan reads `part_{number}`" for number in range(12))
    (line,) = ending(f"Done, `load` is fast now because {clauses}.")
    assert line.endswith("` …")
    assert line.count("`") % 2 == 0


def test_a_proposal_that_an_answer_quotes_is_told_before_what_is_said_of_it():
    words = "Skills for agents that search past work, and explain code."
    told = how_it_ended("what would you write there?", "I’d use:", "", f"> {words}", "", "My vote is the first one.")
    assert told == f"I’d use: “{words}” My vote is the first one."


def test_a_frame_around_a_remark_and_the_tag_behind_a_plan_are_no_words_of_an_answer():
    remark = ("`★ Insight ─────────────────`", "The index of `names` is faster.", "`─────────────────`")
    assert how_it_ended("which one?", *remark, "That one wins.") == "The index of `names` is faster. That one wins."
    plan = ("<proposed_plan>", "# Read rows by `name`", "", "The index is made first.", "</proposed_plan>")
    assert how_it_ended("plan it", *plan) == "a plan: Read rows by `name`. The index is made first."


def test_an_answer_that_points_back_is_told_with_what_it_points_to():
    answer = ("Exactly 2 events have it:", "- `event-4`: the call", "- `event-5`: the result", "", "This is expected.")
    assert how_it_ended("is the id used twice?", *answer) == (
        "Exactly 2 events have it: `event-4`: the call; `event-5`: the result. This is expected."
    )


def test_the_conclusion_of_an_answer_with_headings_stands_before_them():
    answer = (
        "I read the project well and know how it works now.",
        "**What it is**",
        "- A tool for logs",
        "",
        "The tool is worth its keep.",
    )
    assert how_it_ended("look at it", *answer) == (
        "I read the project well and know how it works now; The tool is worth its keep; What it is: A tool for logs"
    )
