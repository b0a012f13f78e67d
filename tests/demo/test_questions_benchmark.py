"""The benchmark of questions: what counts as an answer that was kept."""

from random import Random

import pytest

from benchmarks.question_sessions import LANGUAGES, Question
from benchmarks.questions import SEEN, answer_kept, answers
from benchmarks.questions_unseen import LARGE, UNSEEN
from refold.formats import find, read

PORT = Question([], ("billing service",), "4312")
LIMIT = Question([], ("amber_svc",), "55", "40")


def kept(question: Question, *lines: str) -> bool:
    messages = read(find("openai-chat"), [{"role": "user", "content": "\n".join(lines)}]).messages
    return answer_kept(question, messages)


def test_the_value_stands_in_a_line_with_its_name_or_right_under_it():
    assert kept(PORT, "the billing service listens on 4312")
    assert kept(PORT, "[billing service]", "port = 4312")
    assert not kept(PORT, "billing service", "", "port = 4312")
    assert not kept(PORT, "billing service" + " " * 400 + "4312")


def test_part_of_a_number_is_no_answer():
    assert not kept(PORT, "the billing service took 14312 ms")


def test_a_list_of_names_is_no_answer():
    assert not kept(LIMIT, "amber_svc, 55, cobalt_api, teal_gate")


def test_a_value_that_was_replaced_has_left_or_is_marked():
    assert kept(LIMIT, "the limit of amber_svc is 55")
    assert not kept(LIMIT, "the limit of amber_svc is 40", "it went on", "the limit of amber_svc is 55")
    assert kept(LIMIT, "the limit of amber_svc is 40 [replaced below]", "it went on", "the limit of amber_svc is 55")


@pytest.mark.parametrize("shape", [shape for shape in SEEN | UNSEEN if shape not in LARGE])
def test_every_session_has_its_answer_in_every_language_and_is_the_same_each_time(shape: str):
    make = (SEEN | UNSEEN)[shape]
    for language in LANGUAGES:
        first = make(LANGUAGES[language], Random(7))
        assert first == make(LANGUAGES[language], Random(7))
        assert first.messages[-1]["role"] == "user"
        assert first.value not in first.messages[-1]["content"]


def test_the_newest_text_has_no_answer():
    (found,) = answers(("port", SEEN["port"], "english", 1), ["tail"], ["25%"])
    assert (found.outcome, found.kept) == ("fits", False)
