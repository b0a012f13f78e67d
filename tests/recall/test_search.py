import json
import re

import pytest

from refold import formats
from refold._counting import counter_for
from refold._recall.search import Asking, RemovedMessages
from refold.core.edits import Hide
from refold.core.plan import Base, Plan, Sizes
from refold.core.view import Cause

COUNTER = counter_for("gpt-4o")


def lines(name, count):
    return "\n".join(f"{name} line {number} of the text" for number in range(1, count + 1))


def history():
    """Reads of three files, one of them twice, words of a user between, then much that is new."""
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Read all. Never touch setup.py."}]
    reads = [("a.py", lines("alpha", 300)), ("b.py", lines("beta", 40)), ("c.py", lines("gamma", 900))]
    reads += [("a.py", lines("omega", 120))]
    reads += [(f"new{number}.py", lines(f"new{number}", 200)) for number in range(4)]
    for number, (path, text) in enumerate(reads):
        function = {"name": "read_file", "arguments": json.dumps({"path": path})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        said.append({"role": "assistant", "content": f"I read {path}.", "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
        said.append({"role": "user", "content": f"Go on, the zebra is {number}."})
    return said


@pytest.fixture(scope="module")
def originals():
    messages = formats.read(formats.find("openai-chat"), history()).messages
    return RemovedMessages(messages, (hiding(messages, 1, 14),), COUNTER)


def hiding(messages, start, stop):
    ids = tuple(message.id for message in messages[start:stop])
    return Plan(
        policy="p", fingerprint="", cause=Cause.MANUAL, base=Base(len(messages), messages[-1].id),
        sizes=Sizes(2, 1, 1, 1), edits=(Hide(ids),),
    )  # fmt: skip


def test_what_stands_in_the_view_as_it_was_said_is_no_original(originals):
    texts = [piece.text for piece in originals.pieces]
    assert lines("alpha", 300) in texts
    assert lines("new3", 200) not in texts
    assert not any("Be brief" in text for text in texts)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("read_file b.py", "beta line 1 "),
        ("[output cleared] read_file b.py, 40 lines", "beta line 1 "),
        ("read_file a.py, 300 lines", "alpha line 1 "),
        ("read_file a.py, 120 lines", "omega line 1 "),
        ("read_file a.py", "omega line 1 "),
        ("[output outdated: the file was changed after this] read_file b.py, 40 lines", "beta line 1 "),
        ("[output repeated: the same lines come again later] read_file a.py, 300 lines", "alpha line 1 "),
        ("[output cleared] read_file b.py, 40 lines: class Zebra, def gamma, def omega", "beta line 1 "),
        ("- read_file a.py, 300 lines", "alpha line 1 "),
    ],
)
def test_the_words_of_a_pointer_find_what_it_stands_for(originals, query, first):
    text = originals.answer(Asking(query), 3_000)
    assert text.startswith("[original: read_file ")
    assert text.split("\n")[1].startswith(first)


def test_an_id_brings_back_that_message_alone(originals):
    piece = next(piece for piece in originals.pieces if "beta" in piece.text)
    text = originals.answer(Asking(piece.id), 3_000)
    assert text == f"[original: read_file b.py, message {piece.place + 1} of 26]\n{lines('beta', 40)}"


def test_words_that_a_user_said_are_found_too(originals):
    text = originals.answer(Asking("zebra is 1"), 2_000)
    assert "[original: words of the user, message" in text


@pytest.mark.parametrize("tokens", [200, 1_000, 4_000])
def test_a_long_text_comes_in_pieces_that_fit_and_leave_nothing_out(originals, tokens):
    found, line, rounds = "", 0, 0
    while True:
        text = originals.answer(Asking("read_file c.py, 900 lines", line), tokens)
        assert COUNTER.text(text) <= tokens
        shown = text.split("\n\n[original:")[0].split("\n\nMore that holds")[0]
        found += "".join(f"{each}\n" for each in shown.split("\n") if each.startswith("gamma"))
        more = re.search(r"from_line (\d+)", shown)
        rounds += 1
        if not more:
            break
        line = int(more[1])
    assert found == lines("gamma", 900) + "\n"
    assert rounds > 900 * 8 / tokens / 2


def test_a_line_longer_than_the_room_is_cut():
    said = [{"role": "user", "content": "x " * 200_000}, {"role": "assistant", "content": "ok"}]
    messages = formats.read(formats.find("openai-chat"), said).messages
    text = RemovedMessages(messages, (hiding(messages, 0, 1),), COUNTER).answer(Asking("x"), 500)
    assert COUNTER.text(text) <= 500
    assert text.count("x ") > 100


def test_what_is_not_there_is_said_with_the_names_of_what_is(originals):
    text = originals.answer(Asking("unobtainium"), 500)
    assert text.startswith("Nothing that was left out holds this.")
    assert "- read_file c.py, 900 lines" in text
    assert COUNTER.text(text) <= 500
    whole = RemovedMessages(formats.read(formats.find("openai-chat"), history()).messages, (), COUNTER)
    assert "Nothing was left out" in whole.answer(Asking("a.py"), 500)


def test_what_is_named_and_stands_in_the_view_is_said_before_what_only_resembles_it(originals):
    text = originals.answer(Asking("read_file new2.py"), 600)
    assert text.startswith("[in front of you, as it was: read_file new2.py, 200 lines]\n[original: ")
    assert "in front of you" not in originals.answer(Asking("read_file b.py"), 600)


def test_a_line_before_the_first_is_the_first(originals):
    assert originals.answer(Asking("b.py", -3), 2_000) == originals.answer(Asking("b.py"), 2_000)


def step(number, tool, arguments, output):
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": f"s{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"s{number}", "content": output},
    ]


def removed_of(said):
    messages = formats.read(formats.find("openai-chat"), said).messages
    return RemovedMessages(messages, (hiding(messages, 0, len(messages)),), COUNTER)


def test_what_a_step_resembles_stands_behind_the_output_that_has_its_words():
    words = f"trace parser neighbors {'and what goes on there ' * 10}"
    output = f"{words}, as one reads it in the file"
    said = [*step(1, "bash", {"command": "cat all"}, output), *step(2, "ask", {"path": "a", "about": words}, "ok")]
    assert removed_of(said).ranked("what of a trace has a parser for neighbors")[0].text == output


def test_the_first_word_of_a_line_that_a_call_wrote_is_found():
    text = f"first\nzebra = 1\n{lines('x', 20)}"
    said = step(1, "write", {"path": "a.py", "content": text}, "ok")
    (found,) = removed_of(said).ranked("zebra")
    assert "zebra" in found.text


def test_what_was_said_often_is_found_each_time():
    said = [{"role": "user", "content": f"the zebra of day {number}"} for number in range(12)]
    assert len(removed_of(said).ranked("zebra")) == 12


def test_of_long_arguments_the_lines_that_fit_are_shown_and_counted():
    written = f"{lines('alpha', 400)}\nthe zebra sleeps\n{lines('beta', 400)}"
    removed = removed_of(step(1, "write_file", {"path": "a.py", "content": written}, "ok"))
    answer = removed.answer(Asking("zebra sleeps"), 4_000)
    assert "\nthe zebra sleeps\n" in answer
    number = int(re.search(r"lines (\d+) to 802 left out", answer)[1])
    assert number > 401
    goes_on = removed.answer(Asking("zebra sleeps", number), 4_000)
    assert f"lines {number:,} to" in goes_on
    assert f"\nbeta line {number - 401} of the text" in goes_on


def test_a_text_that_only_its_name_brings_is_shown_from_its_beginning():
    said = step(1, "bash", {"command": "cat harbour"}, lines("a", 400))
    answer = removed_of(said).answer(Asking("harbour, please, and what is in it"), 4_000)
    assert "message 2 of 2]\na line 1 of the text\n" in answer
    assert 500 < COUNTER.text(answer) < 1_200


def test_the_lines_that_have_the_words_are_shown_of_several_texts_wherever_they_stand():
    said = []
    for number, word in enumerate(("zebra", "gnu", "okapi")):
        output = f"{lines('a', 500)}\nthe {word} sleeps in {number}\n{lines('b', 500)}"
        said += step(number, "bash", {"command": f"cat {number}"}, output)
    answer = removed_of(said).answer(Asking("where do zebra, gnu and okapi sleep"), 1_000)
    assert all(f"the {word} sleeps in" in answer for word in ("zebra", "gnu", "okapi"))
    assert COUNTER.text(answer) <= 1_000


@pytest.mark.parametrize("tokens", [200, 500, 2_000, 6_000])
@pytest.mark.parametrize(
    "query", ["gamma 500", "line 77 of the text", "zebra", "omega alpha beta", "I read new2.py there"]
)
def test_an_answer_has_no_more_tokens_than_it_may_have(originals, query, tokens):
    answer = originals.answer(Asking(query), tokens)
    assert "\n[original: " in f"\n{answer}"
    assert COUNTER.text(answer) <= tokens


def test_what_looks_like_a_heading_of_ours_is_altered_in_parts_too():
    said = step(1, "bash", {"command": "cat"}, f"{lines('a', 400)}\n[original: the zebra]\n{lines('b', 400)}")
    answer = removed_of(said).answer(Asking("zebra"), 500)
    assert "(original: the zebra]" in answer
    assert answer.count("[original:") == 1


def test_a_long_line_that_is_cut_promises_no_line_behind_the_last():
    removed = removed_of(step(1, "bash", {"command": "cat"}, "zebra " * 4_000))
    answer = removed.answer(Asking("zebra"), 600)
    assert "zebra zebra" in answer
    assert "\n[…]\n" in answer
    assert not re.search(r"line \d|lines \d", answer)
