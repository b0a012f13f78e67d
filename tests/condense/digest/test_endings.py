import pytest

from refold._condense.digest.conclusions import verdicts
from refold._condense.digest.endings import outcome_lines, rejected_turns, rejections, rejects
from refold._condense.digest.render import digest_text
from refold.testing import talk, view_of


@pytest.mark.parametrize(
    "words",
    [
        "no, that's not it, both use the dark theme",
        "No, that's horrible.\ntools belong in core. Or do you have other suggestions?",
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
        "No. What would you do?",
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
    assert outcome_lines(transcript, transcript.messages[1:]) == outcome_lines(transcript, transcript.messages[-1:])
    assert outcome_lines(transcript, transcript.messages) == ()  # request and answer stay, word for word


def test_of_an_answer_that_stays_whole_nothing_is_told_where_no_work_was_done():
    transcript = talk("u: go", "a: Ready.", "u: why is it so?", "a: `load` caches it.", "u: and now?")
    assert outcome_lines(transcript, transcript.messages[1:]) == ("turn 1: go → Ready.",)
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


def test_what_ended_two_orders_and_is_rejected_is_told_of_both():
    transcript = talk(
        "u: make the grays differ",
        "a: looking | bash(ls) as c1",
        "t: c1 = themes",
        "u: and use values in hex",
        "a: I set `gray` to `#808080`.",
        "u: no, that's wrong",
    )
    (line,) = rejections(transcript)
    assert line.startswith("turn 1 to 2: I set `gray` to `#808080`. (rejected in user turn 3")


def test_what_answers_thanks_is_no_ending_of_the_request_before():
    transcript = talk("u: make it faster", "a: The loop takes 3 s.", "u: thanks", "a: It was the lock.", "u: on")
    assert outcome_lines(transcript, ()) == ("turn 1: make it faster → The loop takes 3 s.",)


def test_a_turn_after_which_the_fault_was_still_there_is_not_told_as_rejected():
    transcript = talk("u: go", "a: I set `gray` to `#808080`.", "u: it still looks the same", "a: ok", "u: and now?")
    assert outcome_lines(transcript, ())[-1] == "turn 1: go → it did not help, says user turn 2"


def test_a_question_in_the_middle_of_work_is_answered_by_what_comes_right_behind_it():
    work = ("a: x | edit(a.py) as c1", "t: c1 = ok")
    after = ("a: The next step is large.", "u: on")
    asked = ("u: build it", *work, "u: why does `stop` clear the list?")
    told = talk(*asked, "a: Right, `stop` should keep it. | edit(b.py) as c2", "t: c2 = ok", *after)
    assert outcome_lines(told, ()) == ("turn 2: why does `stop` clear the list? → Right, `stop` should keep it.",)
    silent = talk(*asked, "a: hm | edit(b.py) as c2", "t: c2 = ok", *after)
    assert outcome_lines(silent, ()) == ("turn 2: why does `stop` clear the list? → changed `b.py`",)


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


def test_what_a_yes_leads_to_is_the_end_of_the_yes_with_the_proposal_and_not_of_the_question_before():
    asked = ("u: should the forms be yaml?", "a: They could be. I would convert the forms to `.yml` files.")
    transcript = talk(*asked, "u: ok do it", "a: x | edit(a.yml) as c", "t: c = ok", "a: Converted `a.md`.", "u: on")
    assert outcome_lines(transcript, ()) == (
        'turn 2: ok do it (to: "I would convert the forms to `.yml` files.") → Converted `a.md`.',
        "turn 1: should the forms be yaml? → I would convert the forms to `.yml` files.",
    )
    silent = talk("u: move the forms", "a: `a.md` is moved.", "u: continue", "a: Moved `b.md` too.", "u: and now?")
    assert outcome_lines(silent, ())[0] == (
        "turn 2: continue (goes on with turn 1: move the forms) → Moved `b.md` too."
    )


def test_an_order_that_came_before_the_answer_to_another_shares_its_end():
    work = ("a: x | edit(a.py) as c1", "t: c1 = ok")
    transcript = talk("u: write the docs", *work, "u: rename `wire` too", *work, "a: Renamed `wire`.", "u: and now?")
    assert outcome_lines(transcript, ()) == (
        "turn 1: write the docs; before its answer, turn 2: rename `wire` too → Renamed `wire`.",
    )
    more = talk("u: write the docs", *work, "u: rename `wire`", *work, "u: no tabs", *work, "a: Wrote `a.md`.", "u: on")
    assert outcome_lines(more, ()) == (
        "turn 1: write the docs; before its answer, 2 more, the last turn 3: no tabs → Wrote `a.md`.",
    )


def test_work_that_a_question_came_into_has_its_own_end_only_if_it_went_on():
    work = ("a: Working | edit(a.py) as c1", "t: c1 = ok")
    asked = ("u: build the form", *work, "u: why does `stop` clear the list?")
    went_on = talk(*asked, "a: Since `stop` is final. | edit(b.py) as c2", "t: c2 = ok", "a: Built `form`.", "u: on")
    assert outcome_lines(went_on, ()) == (
        "turn 2: why does `stop` clear the list? → Since `stop` is final.",
        "turn 1: build the form → Built `form`.",
    )
    ended = talk(*asked, "a: Since `stop` is final.", "u: on")
    assert outcome_lines(ended, ()) == ("turn 2: why does `stop` clear the list? → Since `stop` is final.",)


def test_a_command_typed_alone_for_the_harness_is_no_request():
    transcript = talk("u: /model", "u: build the form", "a: Built `form`.", "u: on")
    assert outcome_lines(transcript, ()) == ("turn 2: build the form → Built `form`.",)


def test_what_is_told_less_of_since_its_answer_stays_ends_with_no_beginning_of_an_item():
    items = "\n".join(f"- Part {n}: `file_{n}.md` holds it" for n in range(4))
    work = ("a: x | edit(a.md) as c", "t: c = ok", f"a: Added the whole of the pack of specs to `specs`:\n{items}")
    transcript = talk("u: add the specs", *work, "u: and now?")
    (line,) = outcome_lines(transcript, transcript.messages[1:])
    assert line.endswith(("holds it", "`specs`"))


def test_a_request_that_a_later_turn_replaced_says_so():
    before, after = "The window of the report holds 90 days.", "Not 90 but 30 days, for the window of the report."
    transcript = talk(f"u: {before}", "a: The `window` is 90 days now.", f"u: {after}", "a: ok")
    line = outcome_lines(transcript, ())[-1]
    assert line.startswith(f"turn 1: {before} (replaced in user turn 2) → ")


def test_what_is_told_of_an_answer_that_stays_ends_with_a_sentence_or_a_clause():
    answer = "Changed `load` to read the index, which is small. The three scripts that ran before it are gone, since "
    answer += "each of them wrote the same table again, and nothing else read what they had written."
    work = ("u: make it fast", "a: x | edit(a.py) as c", "t: c = ok")
    transcript = talk(*work, f"a: {answer}", "u: next")
    assert outcome_lines(transcript, transcript.messages[1:]) == (
        "turn 1: make it fast → Changed `load` to read the index, which is small.",
    )
    long = f"Changed `load` to read the index in one pass over the rows of the table, {answer[answer.index('since') :]}"
    transcript = talk(*work, f"a: {long}", "u: next")
    (line,) = outcome_lines(transcript, transcript.messages[1:])
    begins = "turn 1: make it fast → "
    assert (
        line
        == f"{begins}Changed `load` to read the index in one pass over the rows of the table, since each of them wrote the same table again …"
    )


def test_a_plan_that_a_later_one_replaced_says_so_and_what_it_says_is_no_finding():
    def plan(name):
        words = f"Going with `{name}` instead of a list, because it is faster. `{name}` holds all rows."
        return f"a: <proposed_plan>\n# Use `{name}`\n\n{words}\n</proposed_plan>"

    transcript = talk("u: plan it", plan("index_a"), "u: use a tree", plan("tree_b"), "u: and now?")
    later, first = outcome_lines(transcript, ())
    assert first.endswith("(replaced by the plan of turn 2)")
    assert "replaced" not in later
    assert verdicts(transcript, transcript.messages, ()) == ()


def test_where_the_next_turn_rejects_a_part_the_outcome_is_told_with_its_words():
    said = "it didnt need the height to be so increased..but i want the width to be full"
    transcript = talk("u: make `box` bigger", "a: `box` is 94 wide and 40 high now.", f"u: {said}")
    (line,) = outcome_lines(transcript, ())
    assert line == f"turn 1: make `box` bigger → `box` is 94 wide and 40 high now. (user turn 2 to that: {said})"
    assert rejections(transcript) == ()


def test_to_try_again_what_was_set_up_anew_rejects_nothing():
    assert not rejects(talk("u: can you try again and test the endpoint, i restarted it").messages[0])
