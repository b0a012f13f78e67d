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


def test_a_number_stands_with_the_option_that_it_names():
    assert asked("Which one do you want?\n1. Keep the store\n2. **Drop** it", "2").endswith("2. Drop** it")
    assert asked("Which one do you want?\na) keep\nb) drop", "b") == "Which one do you want? b. drop"


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
    assert '## Decisions and reasons\n- AskUserQuestion: "Which store?"="never the old"' in text
    assert "## Standing constraints" not in text
