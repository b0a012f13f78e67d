import json

import pytest

from refold._condense.digest.agreement import goes_on
from refold._condense.digest.answers import question_before
from refold._condense.digest.render import digest_text
from refold.testing import talk, view_of


def asked(question, answer):
    transcript = talk("u: go", f"a: {question}", f"u: {answer}")
    return question_before(transcript, transcript.messages[-1])[0]


def test_a_short_answer_has_its_question_and_a_long_or_plain_one_has_none():
    assert asked('I read it all. Shall I use the "old" store?', "yes") == "Shall I use the 'old' store?"
    assert asked("It is done.", "thanks") == ""
    assert asked("Shall I?", "No, first look at " + "all the files " * 10) == ""
    assert asked("Shall I delete it?", "what is it?") == ""
    assert asked("読みました。削除しますか？", "不要です。") == "削除しますか？"
    assert asked("読みました。削除しますか？", "不要なのですか？") == ""


def test_a_number_stands_with_the_option_that_it_names():
    assert asked("Which one do you want?\n1. Keep the store\n2. **Drop** it", "2").endswith("2. Drop it")
    assert asked("Which one do you want?\na) keep\nb) drop", "b") == "Which one do you want? b. drop"


QUESTIONS = """Two things before I start.

1. **Where** does the cache live?
   a) in Redis
   b) in each worker
2. How long do entries live?
   a) 5 minutes
   b) until the next deploy

Which do you want?"""


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ("1a 2b", "1. Where does the cache live? a) in Redis; 2. How long do entries live? b) until the next deploy"),
        ("1b, 2a", "1. Where does the cache live? b) in each worker; 2. How long do entries live? a) 5 minutes"),
        ("1 and 2", "1. Where does the cache live?; 2. How long do entries live?"),
        ("the second", "Which do you want? 2. How long do entries live?"),
        ("Der erste bitte", "Which do you want? 1. Where does the cache live?"),
        ("le deuxième", "Which do you want? 2. How long do entries live?"),
        ("la segunda opción", "Which do you want? 2. How long do entries live?"),
        ("1a 7b", ""),
    ],
)
def test_answers_to_a_list_stand_with_the_questions_and_the_options_that_they_choose(answer, chosen):
    question = asked(QUESTIONS, answer)
    assert question == chosen


def test_a_letter_stands_with_the_option_that_a_sentence_gives_it():
    question = "Soll ich (a) die alte Tabelle behalten oder (b) sie löschen?"
    assert asked(question, "b") == f"{question} (b) sie löschen"


def test_the_digest_pairs_answers_that_left_and_those_that_stay():
    transcript = talk(
        "u: start", "a: Shall I delete it all?", "u: yes", "a: Which colour is it?", "u: red", "a: ok", "u: on"
    )
    m = transcript.messages
    text = digest_text(view_of(transcript, window=20_000), m[1:4], staying=(m[0], *m[4:]))
    assert '- answer "yes" to: "Shall I delete it all?" (user turn 2)' in text
    assert '- "red" in user turn 3 answers: "Which colour is it?"' in text


def test_what_a_tool_that_asks_the_user_gave_back_is_told_and_is_no_constraint():
    transcript = talk(
        "u: start", 'a: x | AskUserQuestion({"questions": []}) as c1', 't: c1 = "Which store?"="never the old"', "u: on"
    )
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert '## What the user decided\n- turn 1, AskUserQuestion: "Which store?" → "never the old"' in text
    assert "## Standing constraints" not in text


def test_of_what_a_tool_that_asks_the_user_gave_back_the_questions_and_answers_are_told():
    given = 'You have answers: "Which padding?"="Both" selected preview: +--+, "Where?"="All". You can continue now.'
    transcript = talk("u: start", 'a: x | AskUserQuestion({"questions": []}) as c1', f"t: c1 = {given}", "u: on")
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert '- turn 1, AskUserQuestion: "Which padding?" → "Both"\n' in text
    assert '- turn 1, AskUserQuestion: "Where?" → "All"\n' in text


def test_of_an_answer_in_other_words_nothing_is_left_out():
    given = 'set "mode"="fast" and use it everywhere'
    transcript = talk("u: start", 'a: x | AskUserQuestion({"questions": []}) as c1', f"t: c1 = {given}", "u: on")
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert f"- turn 1, AskUserQuestion: {given}\n" in text
    quoted = 'User has answered your questions: "Delete "all" data?"="No". You can continue.'
    transcript = talk("u: start", 'a: x | AskUserQuestion({"questions": []}) as c1', f"t: c1 = {quoted}", "u: on")
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert '- turn 1, AskUserQuestion: "Delete \'all\' data?" → "No"\n' in text


def test_answers_that_name_questions_by_an_id_stand_with_their_words_and_with_what_was_said_later():
    options = [{"label": "Add an input", "description": "Add `oidc-audience` for the issuer."}]
    question = {"id": "shape", "question": "Which shape should the API have?", "options": options}
    asked = json.dumps({"questions": [question, {"id": "style", "question": "Which style?"}]})
    given = json.dumps({"answers": {"shape": {"answers": ["Add an input"]}, "style": {"answers": ["user_note: Bold"]}}})
    lines = ("u: start", f"a: x | request_user_input({asked}) as c1", f"t: c1 = {given}", "a: Planned.")
    later = "do not add oidc-audience as an option"
    transcript = talk(*lines, f"u: {later}", "a: ok", "u: on")
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1], staying=transcript.messages)
    meant = "(Add `oidc-audience` for the issuer.)"
    chosen = f'- turn 1, request_user_input: "Which shape should the API have?" → "Add an input" {meant}'
    assert f'{chosen} (but then user turn 2: "{later}")\n' in text
    assert '- turn 1, request_user_input: "Which style?" → "Bold"\n' in text
    assert f"- user turn 2: {later}\n" in text
    unchanged = talk(*lines, "u: now write the notes", "a: ok", "u: on")
    assert f"{chosen}\n" in digest_text(view_of(unchanged, window=20_000), unchanged.messages[:-1])


def test_a_plan_that_was_accepted_and_what_the_user_said_in_place_of_letting_a_call_run_are_decisions():
    plan = json.dumps({"plan": "# Plan: An index of names\n\nSteps."})
    said = "The tool use was rejected. To tell you how to proceed, the user said:\nKeep the old names.\n\nNote: ask."
    transcript = talk(
        "u: start",
        f"a: x | ExitPlanMode({plan}) as c1",
        "t! c1 = " + said,
        'a: z | AskUserQuestion({"questions": []}) as c3',
        "t! c3 = To tell you how to proceed, the user said:\nThe user wants to clarify these questions.",
        f"a: y | ExitPlanMode({plan}) as c2",
        "t: c2 = User has approved your plan.",
        "u: on",
    )
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert (
        '- turn 1, ExitPlanMode refused: "Keep the old names."\n- turn 1: plan "An index of names" accepted\n' in text
    )


def test_an_option_that_stands_in_a_heading_is_told_for_its_letter_in_a_line_of_its_own():
    options = "Three ways.\n\n### Option A: a store on disk\n\nFast.\n\n### Option B: a server\n\nWhich way do we go?"
    assert asked(options, "A\nthe images belong elsewhere") == "Which way do we go? a. a store on disk"


def test_an_offer_is_answered_by_yes_or_no_and_a_question_by_a_word_of_it_or_a_few_words_right_behind_it():
    offer = "It is done. Want me to test the theme colors?"
    assert asked(offer, "the code block color was #b5bd68") == ""
    assert asked(offer, "no, the block should stay") == "Want me to test the theme colors?"
    long = "Does the background change? " + "I looked at all of it again. " * 4
    assert asked(long, "rename it") == ""
    assert asked(long, "the background is grey") == "Does the background change?"


@pytest.mark.parametrize(
    ("said", "proposed"),
    [
        ("I looked at it. I'd add a test for the vault. It is small.", "I'd add a test for the vault."),
        ("Next I can rename it. Shall I?", "Next I can rename it."),
        ("It is done.", ""),
    ],
)
def test_a_turn_that_only_agrees_stands_with_the_sentence_that_proposes_what_it_agrees_to(said, proposed):
    assert asked(said, "yes please, go ahead") == proposed


@pytest.mark.parametrize(
    "words", ["continue", "Yes, please do.", "ok go on", "ja, mach weiter", "oui, vas-y", "sí, adelante", "sim, continua",
              "да, продолжай", "はい、お願いします", "好的，继续", "네, 계속해주세요"]
)  # fmt: skip
def test_words_that_only_tell_to_go_on_are_known_in_ten_languages(words):
    assert goes_on(talk("u: go", f"u: {words}").messages[1])


@pytest.mark.parametrize("words", ["continue with the parser", "yes, but rename it first", "fix it", "..."])
def test_words_that_ask_for_something_of_their_own_do_more_than_go_on(words):
    assert not goes_on(talk("u: go", f"u: {words}").messages[1])


def test_a_turn_that_only_goes_on_is_left_out_where_nothing_was_proposed():
    transcript = talk("u: start", "a: It is done.", "u: continue", "a: Shall I rename it?", "u: yes", "a: ok", "u: on")
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert '"continue"' not in text
    assert '- answer "yes" to: "Shall I rename it?" (user turn 3)' in text


@pytest.mark.parametrize("words", ["Thanks!", "thank you very much", "wow, it works", "Perfect, great work."])
def test_thanks_and_praise_ask_for_nothing_and_agree_to_nothing(words):
    transcript = talk("u: go", "a: It is mended. I can also rename the file.", f"u: {words}")
    assert goes_on(transcript.messages[-1])
    assert question_before(transcript, transcript.messages[-1]) == ("", None)


@pytest.mark.parametrize("words", ["thanks, now the tests", "use it all", "nice, but it fails on Windows"])
def test_thanks_with_a_request_are_a_request(words):
    assert not goes_on(talk(f"u: {words}").messages[0])


def test_permissions_that_a_tool_asked_for_are_told_once_with_their_number():
    answers = ("Authorize the first test", "Keep the old store", "Authorize the second test", "Authorize the third")
    calls = [
        line
        for at, answer in enumerate(answers)
        for line in (f'a: x | ask_user({{"question": "May I?"}}) as c{at}', f"t: c{at} = User selected: {answer}")
    ]
    transcript = talk("u: start", *calls, "u: on")
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert [line for line in text.splitlines() if line.startswith("- turn 1, ask_user: ")] == [
        '- turn 1, ask_user: "May I?" → "User selected: Keep the old store"',
        '- turn 1, ask_user: "May I?" → "User selected: Authorize the third" (the newest of 3 permissions)',
    ]


def test_an_answer_that_a_turn_says_once_more_is_not_taken_back_by_it():
    said = "Use no library for the cache."
    asked = json.dumps({"question": "How should the cache be built?"})
    transcript = talk(
        "u: start", f"a: x | ask_user({asked}) as c", f"t: c = User wrote: {said}", f"u: {said}", "a: ok", "u: on"
    )
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert f'- turn 1, ask_user: "How should the cache be built?" → "User wrote: {said}"\n' in text
