import json

import pytest

from refold._counting import counter_for
from refold.core.messages import texts
from refold.stages.fit import Fit
from refold.testing import talk, view_of

WORDS = (
    "lexer ledger parser printer mailer cache clock queue router reader writer shelf lamp window garden bridge river "
    "mountain forest meadow harbor island castle tower village market street corner square station"
)


def filling(number):
    """Return lines with identifiers of their own, which are worth as much as a number in a line that is asked for."""
    return "\n".join(
        f"    step_{number}_{line} = call_{line}(place_{number}, {number * 50 + line})" for line in range(50)
    )


def fitted(outputs, request, share=0.1):
    """Return the text of a conversation of outputs and a last request, compacted to a share of its size."""
    lines = ["u: Look around."]
    for number, output in enumerate([*outputs, *map(filling, range(20))]):
        lines += [f"a: next | look(place{number}) as c{number}", f"t: c{number} = {output}"]
    view = view_of(talk(*lines, f"u: {request}"), window=10**7, goal=10**6)
    view = view_of(talk(*lines, f"u: {request}"), window=10**7, goal=int(view.tokens * share))
    return "\n".join(text for message in view.after(Fit().edits(view)).messages for text in texts(message))


def around(*lines):
    return "\n".join([filling(98), *lines, filling(99)])


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("12:00:01 INFO billing is listening at 40417", "Where does billing listen, or is listening?"),
        ("Kassel; 17,2; 403,9", "Wie hoch ist die Zahl von Kassel?"),
        ("支付服务已启动，监听端口：40417", "支付服务的监听端口是多少？"),
        ("Сервис оплаты слушает порт 40417", "Какой порт слушает сервис оплаты?"),
        ("    maxRetryCount: 17", "What is the retry count at most?"),
    ],
)
def test_a_line_with_the_rare_words_of_the_newest_request_is_kept(line, question):
    assert line in fitted([around(line)], question)
    assert line not in fitted([around(line)], "Go on.")


@pytest.mark.parametrize("request_", ["Where is the tripod?", "Go on."])
def test_a_short_output_with_the_rare_words_of_the_newest_request_is_kept_with_its_call(request_):
    lines = ["u: Look around."]
    for name in WORDS.split():
        lines += [
            f"a: next | look(around) as c{name}",
            f"t: c{name} = the {name} is made of wood and stands in the sun",
        ]
    lines[3:3] = ["a: next | look(around) as c0", "t: c0 = the tripod stands in the attic"]
    view = view_of(talk(*lines, f"u: {request_}"), window=10**7, goal=300, counter=counter_for("gpt-4o"))
    text = "\n".join(text for message in view.after(Fit().edits(view)).messages for text in texts(message))
    assert ("the tripod stands in the attic" in text) == ("tripod" in request_)


def test_words_of_an_output_that_was_seen_again_and_again_stay_rare():
    seen = around("the lamp stands in the harbor")
    assert "the lamp stands in the harbor" in fitted([seen] * 60, "Where is the lamp?", 0.2)


def test_an_older_look_that_what_stays_mostly_repeats_has_no_worth_for_its_words():
    def page(doors):
        rows = [f"On shelf {letter} there are {letter * 3} and {letter * 4}." for letter in "abcdefghijklmnop"]
        return f"You stand in the harbor beside the lamp. The doors are {doors}. {' '.join(rows)}"

    lines = ["u: Look around."]
    for number, output in enumerate([page("closed"), *map(filling, range(20)), page("open")]):
        lines += [f"a: next | look(place{number}) as c{number}", f"t: c{number} = {output}"]
    lines += ["a: That is all.", "u: Where is the lamp of the harbor?"]
    size = view_of(talk(*lines), window=10**7, goal=10**6).tokens
    view = view_of(talk(*lines), window=10**7, goal=size // 8)
    text = "\n".join(text for message in view.after(Fit().edits(view)).messages for text in texts(message))
    assert page("open") in text
    assert page("closed") not in text


def test_the_line_behind_what_is_asked_for_is_kept():
    lines = [f"{'x' * 200} holder {name}\n{'y' * 200} balance {number}" for number, name in enumerate(("Ann", "Bob"))]
    assert "balance 1" in fitted([around(*lines)], "What has holder Bob?", 0.3)


def test_a_line_that_reports_a_grave_error_is_kept_though_nobody_asks():
    assert "FATAL the last page is torn" in fitted([around("12:00 FATAL the last page is torn")], "Go on.")


def test_lines_that_report_errors_all_the_time_are_no_news():
    many = "\n".join(f"12:00 ERROR page {number} is slow again and will be tried once more" for number in range(500))
    text = fitted([many], "Go on.")
    assert text.count("is slow again") < 100


def test_the_one_element_of_forty_that_is_asked_for_is_kept():
    tickets = [{"name": f"ticket {n}", "words": "nothing of note " * 5, "urgency": "low"} for n in range(40)]
    tickets[17] |= {"urgency": "critical"}
    text = fitted([json.dumps({"ok": True, "tickets": tickets})], "Which ticket is critical?", 0.05)
    assert json.dumps(tickets[17]) in text


def test_what_a_request_asks_for_has_a_bounded_room():
    zebras = "\n".join(f"the zebra of farm {'abcdefghij'[line % 10] * 9} is striped in black" for line in range(40))
    text = fitted([around(zebras)], "Which zebra is striped?", 0.2)
    assert 0 < text.count("the zebra of farm") < 20


def test_of_two_values_of_what_is_asked_for_the_newest_is_kept_and_the_older_one_leaves():
    old, new = (around(f"2026-03-0{day} INFO connection limit of billing is {day}417") for day in (4, 7))
    text = fitted([old, filling(50), new], "What is the connection limit of billing?", 0.3)
    assert "limit of billing is 7417" in text
    assert "limit of billing is 4417" not in text


def test_values_that_come_again_and_again_are_a_series():
    outputs = [around(f"12:0{minute} queue length of billing {minute}417") for minute in range(1, 6)]
    text = fitted(outputs, "How did the queue length of billing grow?", 0.3)
    assert all(f"queue length of billing {minute}417" in text for minute in range(1, 6))


def told(request, *after, share=0.06):
    """Return the text of a conversation in which the assistant made a plan long ago, compacted to a share of its size."""
    plan = "\n\n".join(
        f"Part {number}: the {name} is read page by page, slowly, and what goes wrong there is told to the caller at once."
        for number, name in enumerate(WORDS.split())
    )
    lines = ["u: Look around.", f"a: {plan}", "u: Thanks."]
    for number in range(20):
        lines += [f"a: next | look(place{number}) as c{number}", f"t: c{number} = {filling(number)}"]
    lines += ["a: That is it.", f"u: {request}", *after]
    size = view_of(talk(*lines), window=10**7, goal=10**6).tokens
    view = view_of(talk(*lines), window=10**7, goal=int(size * share))
    return "\n".join(text for message in view.after(Fit().edits(view)).messages for text in texts(message))


def test_what_the_assistant_said_long_ago_of_what_is_asked_for_is_kept():
    assert "Part 16: the river is read" not in told("Now write the tests.")
    assert "Part 16: the river is read" in told("Now write the river.")


def test_a_turn_that_only_says_to_go_on_asks_for_what_the_turn_before_it_asked():
    assert "Part 16: the river is read" in told("Now write the river.", "a: I begin.", "u: continue")


def test_what_was_looked_up_for_a_turn_that_has_ended_is_kept_where_the_next_one_asks_for_it():
    row = "Kassel; 17,2; 403,9"
    lines = ["u: Look around."]
    for number, output in enumerate([around(row), *map(filling, range(20))]):
        lines += [f"a: next | search_tables(place{number}) as c{number}", f"t: c{number} = {output}"]
    lines += ["a: I have seen all of it.", "u: Wie hoch ist die Zahl von Kassel?"]
    view = view_of(talk(*lines), window=10**7, goal=10**6)
    view = view_of(talk(*lines), window=10**7, goal=int(view.tokens * 0.04))
    assert row in "\n".join(text for message in view.after(Fit().edits(view)).messages for text in texts(message))
