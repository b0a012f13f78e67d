import pytest

from refold._condense.digest.exchanges import accepted, outcome_lines, rejected_turns, rejections, rejects, rulings
from refold._condense.digest.render import digest_text
from refold.testing import talk, view_of


@pytest.mark.parametrize(
    "words",
    [
        "no, that's not it, both use the dark theme",
        "still looks the same",
        "I meant the other repository",
        "you broke the component. i undid your changes, try again",
        "hm, that doesn't work",
        "the gray levels still look the same in the editor",
        "nein, das ist falsch",
        "non, toujours pas",
        "no funciona",
        "не работает",
        "違います",
        "还是不行",
    ],
)
def test_a_turn_that_rejects_what_was_done_is_known_by_how_it_begins(words):
    assert rejects(talk(f"u: {words}").messages[0])


@pytest.mark.parametrize(
    "words",
    [
        "no need to wait",
        "No, this is fine.",
        "now add a test",
        "notes are in docs/a.md",
        "yes",
        "nice work",
        "no, the second part still holds for the cache as well, right?",
    ],
)
def test_a_turn_that_goes_on_rejects_nothing(words):
    assert not rejects(talk(f"u: {words}").messages[0])


def test_an_answer_is_told_with_the_request_that_it_answers():
    transcript = talk(
        "u: make muted a little brighter",
        "a: x | edit(dark.json) as c",
        "t: c = ok",
        "a: Done! Changed `gray` from `#6c6c6c` to `#808080`. Want me to do more?",
        "u: next",
    )
    assert outcome_lines(transcript, transcript.messages[-1:]) == (
        "turn 1: make muted a little brighter → Changed `gray` from `#6c6c6c` to `#808080`.",
    )
    assert outcome_lines(transcript, transcript.messages) == outcome_lines(transcript, transcript.messages[-1:])


def test_of_an_answer_that_stays_whole_nothing_is_told_where_no_work_was_done():
    transcript = talk("u: go", "a: Ready.", "u: why is it so?", "a: `load` caches it.", "u: and now?")
    assert outcome_lines(transcript, transcript.messages) == ("turn 1: go → Ready.",)
    assert outcome_lines(transcript, transcript.messages[-1:]) == (
        "turn 2: why is it so? → `load` caches it.",
        "turn 1: go → Ready.",
    )


def test_what_the_next_turn_rejects_was_tried_and_nothing_concluded_in_it_counts():
    transcript = talk(
        "u: why do the colors differ?",
        "a: The `TERM` variable is xterm in one of them.",
        "u: no, that's not it",
        "a: The `contrast` setting is 4.5 in one editor.",
        "u: good, go on",
    )
    assert rejected_turns(transcript) == {1}
    assert rejections(transcript) == (
        "turn 1: The `TERM` variable is xterm in one of them. (rejected in user turn 2: no, that's not it)",
    )
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert text.count("`TERM` variable") == 1
    assert "turn 2: no, that's not it → The `contrast` setting is 4.5 in one editor." in text


def test_a_no_to_a_question_rejects_nothing_and_is_a_ruling():
    transcript = talk(
        "u: review it",
        "a: I reviewed it. Should I also handle stashed files in the overlap check?",
        "u: No, that has too much risk of a false positive and we do not want it in this release at all.",
        "a: Fine.",
        "u: on",
    )
    assert list(rulings(view_of(transcript, window=20_000), transcript.messages)) == [
        "user turn 2: No, that has too much risk of a false positive and we do not want it in this release at all. "
        '(to: "Should I also handle stashed files in the overlap check?")'
    ]


@pytest.mark.parametrize(
    "words",
    [
        "i cannot see any sessions there. Is it only me?\nno such file",
        "you must never write to the cache, right?",
        "should the names only be short",
        "is this clear? Never write to the cache.",
        "what about this?\n```\nUse tabs, never use blanks.\n```",
    ],
)
def test_what_a_user_sees_or_asks_or_pastes_is_no_ruling(words):
    transcript = talk("u: go", "a: ok", f"u: {words}", "a: ok", "u: on")
    assert list(rulings(view_of(transcript, window=20_000), transcript.messages)) == []


def test_short_sentences_that_set_how_things_are_to_be_are_gathered_from_turns_that_stay():
    transcript = talk(
        "u: start",
        "a: ok",
        "u: use rgb values in the themes, no indices! should we test it? can you only look",
        "a: ok",
        "u: link text should be the same as accent",
        "a: ok",
        "u: the new release has themes so we need to use that",
        "a: ok",
        "u: on",
    )
    assert list(rulings(view_of(transcript, window=20_000), transcript.messages)) == [
        "user turn 4: the new release has themes so we need to use that",
        "user turn 3: link text should be the same as accent",
        "user turn 2: use rgb values in the themes, no indices! should we test it? can you only look",
    ]


def test_a_short_turn_that_decides_is_quoted_whole_with_the_question_that_it_answers():
    words = "Keep them apart, please. I want you to build 1. and 2. (the small ones) now, never 3."
    transcript = talk(
        "u: plan it",
        "a: There are three layers.\n- Together or apart?\n- Which do you want? I would take 1.",
        f"u: {words}",
        "a: x",
        "u: on",
    )
    assert list(rulings(view_of(transcript, window=20_000), transcript.messages)) == [
        f'user turn 2: {words} (to: "Together or apart? / Which do you want?")'
    ]


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


def test_what_answers_thanks_is_no_ending_of_the_request_before():
    transcript = talk("u: make it faster", "a: The loop takes 3 s.", "u: thanks", "a: It was the lock.", "u: on")
    assert outcome_lines(transcript, ()) == ("turn 1: make it faster → The loop takes 3 s.",)


def ruled(*lines):
    transcript = talk(*lines, "u: and now?")
    return list(rulings(view_of(transcript, window=20_000), transcript.messages))


def test_what_a_user_quotes_of_the_assistant_is_no_decision_of_the_user():
    answer = "a: It is right. There is **no wrong** assignment, it must be so within the session."
    assert (
        ruled("u: why?", answer, "u: Explain:\nThere is no wrong assignment, it must be so within the session.") == []
    )


def test_a_decision_that_the_next_turn_takes_back_says_so():
    assert ruled("u: go", "a: ok", "u: Never touch the old files.", "a: ok", "u: actually, can you revert that?") == [
        "user turn 2: Never touch the old files. (taken back in user turn 3)"
    ]


def test_a_decision_stands_beside_a_question_of_the_same_turn():
    assert ruled("u: go", "a: ok", "u: docker isn't relevant, we use the runners. How long does it take?") == [
        "user turn 2: docker isn't relevant, we use the runners. How long does it take?"
    ]


def test_a_turn_after_which_the_fault_was_still_there_is_not_told_as_rejected():
    transcript = talk("u: go", "a: I set `gray` to `#808080`.", "u: it still looks the same", "a: ok", "u: and now?")
    assert outcome_lines(transcript, ())[-1] == "turn 1: go → it did not help, says user turn 2"


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


def test_a_question_in_the_middle_of_work_is_answered_by_what_comes_right_behind_it():
    work = ("a: x | edit(a.py) as c1", "t: c1 = ok")
    after = ("a: The next step is large.", "u: on")
    asked = ("u: build it", *work, "u: why does `stop` clear the list?")
    told = talk(*asked, "a: Right, `stop` should keep it. | edit(b.py) as c2", "t: c2 = ok", *after)
    assert outcome_lines(told, ()) == ("turn 2: why does `stop` clear the list? → Right, `stop` should keep it.",)
    silent = talk(*asked, "a: hm | edit(b.py) as c2", "t: c2 = ok", *after)
    assert outcome_lines(silent, ()) == ("turn 2: why does `stop` clear the list? → changed `b.py`",)


def test_a_proposal_that_the_user_accepts_is_told_with_its_reason_and_its_turn():
    answer = (
        "a: Two ways.\n- Why: it simplifies the whole login and the build.\n\nDo you want `v1` to be for one host only?"
    )
    transcript = talk("u: plan it", answer, "u: Yes, one only for now. Then write it all down in the specs.", "a: ok")
    assert accepted(transcript) == (
        "Do you want `v1` to be for one host only? (it simplifies the whole login and the build) → accepted in turn 2",
    )
    assert "→ accepted in turn 2" in digest_text(view_of(transcript, window=20_000), transcript.messages)
    refused = talk("u: plan it", answer, "u: No, for all of them.", "a: ok")
    assert accepted(refused) == ()
    taken_back = talk("u: plan it", answer, "u: Yes.", "a: ok", "u: actually, can you revert that?")
    assert accepted(taken_back) == ()


def test_a_proposal_that_names_nothing_is_not_told():
    assert accepted(talk("u: plan it", "a: Should I go on?", "u: yes", "a: ok")) == ()


def test_a_fault_that_a_user_reports_is_no_decision():
    assert ruled("u: go", "a: ok", "u: the form needs to be checked, it doesn't seem to work for me") == [
        "user turn 2: the form needs to be checked, it doesn't seem to work for me"
    ]
    assert ruled("u: go", "a: ok", "u: I want to see the form but it pops an error and does not change") == []


def test_many_words_in_a_row_that_the_assistant_said_before_are_a_quote():
    rule = "Each file must be written once before the next one is read again"
    assert ruled("u: go", f"a: {rule}.", f"u: So you say that {rule.lower()} by all") == []


def test_a_value_that_a_later_turn_sets_anew_is_marked():
    transcript = talk(
        "u: make it brighter",
        "a: Changed `gray` (used for text) from `#444444` to `#585858`; `dim`: `#303030`.",
        "u: more",
        "a: `gray` is now `#808080`; `dim`: `#303030`.",
        "u: and now?",
    )
    assert outcome_lines(transcript, ()) == (
        "turn 2: more → `gray` is now `#808080`; `dim`: `#303030`.",
        "turn 1: make it brighter → Changed `gray` (used for text) from `#444444` to `#585858` (replaced in turn 2); "
        "`dim`: `#303030`.",
    )


def test_a_choice_in_the_words_of_an_offer_is_a_ruling():
    transcript = talk(
        "u: which store?",
        "a: We can use sqlite instead of postgres, or keep both. Which do you want?",
        "u: use sqlite instead of postgres",
        "a: Done, it is in store.py now.",
        "u: next thing",
        "a: ok",
    )
    (ruling,) = rulings(view_of(transcript, window=20_000), transcript.messages)
    assert ruling.startswith("user turn 2: use sqlite instead of postgres")


def test_an_outcome_is_whole_sentences_within_its_length():
    sentences = " ".join(f"Changed `load_{n}` to read one file only." for n in range(20))
    (line,) = outcome_lines(talk("u: go", f"a: {sentences}", "u: and now?"), ())
    assert line.endswith("to read one file only.")
    assert len(line) < 300
