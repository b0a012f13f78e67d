import re

from msgspec.structs import replace

from refold.core.budget import Share
from refold.core.edits import fold
from refold.core.messages import Image, Message, Patch, Text, ToolResult
from refold.core.transcript import Transcript
from refold.stages.truncate_new import TruncateNew
from refold.testing import talk, view_of

LINES = [f"line {n} calls helper_{n}(value)" for n in range(2_000)]
LONG = "\n".join(LINES)
STAGE = TruncateNew(tokens=10_000)


def view(*lines, output=LONG, window=1_000_000, **given):
    said = lines or ("u: Where is it?", "a: searching | bash(grep) as c1", f"t: c1 = {output}")
    return view_of(talk(*said), window=window, goal=Share(0.5), **given)


def shown(view):
    return [part.text for message in view.messages for part in message.parts if isinstance(part, ToolResult)]


def cut(view, stage=STAGE):
    return shown(view.after(stage.edits(view)))


def test_a_new_output_above_the_limit_keeps_whole_lines_of_head_and_tail_within_half_of_it():
    (text,) = cut(view())
    opening, *lines = text.split("\n")
    assert len(text) <= 5_000
    assert lines[0] == LINES[0]
    assert lines[-1] == LINES[-1]
    kept = [line for line in lines if not line.startswith("[…")]
    assert set(kept) <= set(LINES)
    assert "2,000 lines" in opening


def test_the_opening_names_the_id_by_which_the_whole_is_recalled():
    start = view()
    (text,) = cut(start)
    id = start.messages[2].id
    assert f"recall {id}" in text.split("\n")[0]
    assert start.after(STAGE.edits(start)).original(id).results[0].text == LONG


def test_lines_that_tell_of_errors_stay():
    lines = [*LINES[:700], "ValueError: the vault is closed", *LINES[700:]]
    (text,) = cut(view(output="\n".join(lines)))
    assert "ValueError: the vault is closed" in text.split("\n")


def test_lines_with_what_the_call_the_answer_and_the_request_name_stay():
    hidden = "\n".join([*LINES[:900], "load_items()", *LINES[900:1100], "open_vault()", *LINES[1100:], "find_keys()"])
    said = view(
        "u: Why does store.load_items fail?",
        'a: looking for open_vault | bash({"command": "grep -n find_keys src"}) as c1',
        f"t: c1 = {hidden}",
    )
    (text,) = cut(said)
    assert all(word in text.split("\n") for word in ("load_items()", "open_vault()", "find_keys()"))


def test_an_output_of_the_limit_stays_as_it_is():
    assert STAGE.edits(view(output=LONG[:9_000])) == ()
    assert STAGE.edits(view("u: go", "a: x | bash(a) as c1 | bash(b) as c2",
                            f"t: c1 = {LONG[:9_900]}", f"t: c2 = {LONG[:9_900]}")) == ()  # fmt: skip


def test_an_output_that_was_answered_stays_as_it_is():
    assert STAGE.edits(view("u: go", "a: x | bash(a) as c1", f"t: c1 = {LONG}", "a: I see")) == ()


def test_what_a_person_wrote_stays_as_it_is():
    assert STAGE.edits(view(f"u: {LONG}")) == ()


def test_pictures_of_an_output_stay():
    said = talk("u: go", "a: x | bash(a) as c1")
    at = ("content", 0)
    content = (Text(LONG, (*at, "content", 0)), Image("image/png", at=(*at, "content", 1)))
    shot = Message("b2:shot", "tool", (ToolResult("c1", content, at=at),))
    start = view_of(Transcript((*said.messages, shot)), window=1_000_000, goal=Share(0.5))
    made = start.after(STAGE.edits(start)).messages[-1].results[0].content
    assert made[1] == content[1]
    assert len(made[0].text) <= 5_000


def test_of_two_new_outputs_only_the_large_one_changes():
    start = view("u: go", "a: x | bash(a) as c1 | bash(b) as c2", f"t: c1 = {LONG}", "t: c2 = done")
    after = start.after(STAGE.edits(start))
    assert shown(after)[1] == "done"
    assert after.messages[3] is start.messages[3]


def test_one_endless_line_is_cut_between_words():
    words = "alpha beta_gamma delta/epsilon.py " * 2_000
    (text,) = cut(view(output=words))
    assert len(text) <= 5_000
    assert "characters left out" in text
    left_out = r"\[… [\d,]+ characters left out …\]"
    assert set(re.sub(left_out, "", text.split("\n")[1]).split()) <= set(words.split())


def test_on_a_small_window_the_limit_is_a_fifth_of_it():
    assert STAGE.wakes(view(window=20_000).budget) == 4_000
    assert STAGE.wakes(view(window=10**6).budget) == 10_000
    (text,) = cut(view(output=LONG[:5_000], window=20_000))
    assert len(text) <= 2_000


def test_a_view_that_is_to_be_filled_loses_nothing_beforehand():
    start = view()
    assert STAGE.edits(replace(start, goal=Share(1.0))) == ()


def test_it_does_nothing_more_to_what_it_has_done_and_the_same_each_time():
    start = view()
    edits = STAGE.edits(start)
    assert edits == STAGE.edits(view())
    again = replace(start, start=fold(start.start, [edits], [None]))
    assert STAGE.edits(again) == ()


def test_it_looks_at_nothing_but_what_is_new():
    class Counting:
        per_conversation = 0
        counted = 0

        def text(self, text):
            return len(text)

        def message(self, message):
            self.counted += 1
            return sum(len(result.text) for result in message.results)

        def tools(self, text):
            return len(text)

    counter = Counting()
    old = [line for n in range(50) for line in (f"a: x | bash(a) as c{n}", f"t: c{n} = {LONG}")]
    start = view_of(talk("u: go", *old, "a: y | bash(b) as d", "t: d = done"), goal=Share(0.5), counter=counter)
    start.estimates.clear()
    for message in start.messages:
        message.__dict__.clear()
    counter.counted = 0
    assert TruncateNew(tokens=10).edits(start) == ()
    assert counter.counted == 1


def test_earlier_patches_of_a_message_stay():
    start = view("u: go", "a: x | bash(a) as c1", f"t: c1 = {LONG}")
    message = start.messages[2]
    assert message.patches == ()
    after = start.after(STAGE.edits(start)).messages[2]
    assert [type(patch) for patch in after.patches] == [Patch]


COMMANDS = TruncateNew(tokens=10_000, command_tokens=4_000)
MEDIUM = "\n".join(LINES[:250])  # more than the one limit, less than the other


def test_output_that_shows_no_file_has_a_limit_of_its_own():
    listed = view("u: Where is it?", 'a: searching | bash({"command": "make all"}) as c1', f"t: c1 = {MEDIUM}")
    read = view("u: Where is it?", 'a: reading | read_file({"path": "a.py"}) as c1', f"t: c1 = {MEDIUM}")
    (text,) = cut(listed, COMMANDS)
    assert len(text) <= 2_000
    assert shown(listed) == [MEDIUM]
    assert COMMANDS.edits(read) == ()
    assert cut(read, replace(COMMANDS, tokens=4_000)) != [MEDIUM]
    assert COMMANDS.wakes(listed.budget) == 4_000


def test_output_of_a_command_stays_where_more_of_it_is_wanted_than_would_be_kept():
    lines = "\n".join(f"src/part_{n}.py: open_vault()" for n in range(200))
    found = view(
        "u: Where is open_vault?", 'a: searching | bash({"command": "rg open_vault"}) as c1', f"t: c1 = {lines}"
    )
    assert COMMANDS.edits(found) == ()


def test_what_the_newest_request_asks_for_in_words_stays():
    lines = [*LINES[:900], "billing listens on port 7431", *LINES[900:]]
    said = view(
        "u: On which port does the billing service listen?",
        'a: looking | bash({"command": "cat services.log"}) as c1',
        "t: c1 = " + "\n".join(lines),
    )
    (text,) = cut(said)
    assert "billing listens on port 7431" in text.split("\n")


IN_PART = TruncateNew(tokens=10_000, looked_at=20_000)


def test_of_a_very_long_output_the_ends_are_read_and_lines_with_errors_or_names_between_them():
    said = ("u: Where is it?", 'a: looking | bash({"command": "grep -n find_keys src"}) as c1')
    hidden = [*LINES[:900], "find_keys()", *LINES[900:1_100], "ValueError: the vault is closed", *LINES[1_100:]]
    output = "\n".join(hidden)
    (text,) = cut(view(*said, f"t: c1 = {output}"), IN_PART)
    _, *lines = text.split("\n")
    kept = [line for line in lines if not line.startswith("[…")]
    left = [int(line.split()[1].replace(",", "")) for line in lines if line.startswith("[…")]
    assert len(text) <= 5_000
    assert (kept[0], kept[-1]) == (hidden[0], hidden[-1])
    assert {"find_keys()", "ValueError: the vault is closed"} <= set(kept)
    assert [line for line in hidden if line in set(kept)] == kept
    assert len(kept) + sum(left) == len(hidden)


def test_of_a_very_long_line_no_word_is_cut_where_the_reading_ended():
    row = ", ".join(f'"name_{n}_of_a_row": "value_{n}_of_it"' for n in range(3_000))
    (text,) = cut(view(output=row), IN_PART)
    _, shown = text.split("\n", 1)
    words = {word for piece in re.split(r"\[….*?…\]", shown) for word in re.findall(r"\w+", piece)}
    assert words <= set(re.findall(r"\w+", row))
    assert {"value_0_of_it", "value_2999_of_it"} <= words


def test_a_very_long_output_without_words_keeps_its_ends():
    (text,) = cut(view(output="x" * 90_000), IN_PART)
    assert text.count("x") > 3_000
    assert len(text) <= 5_000
