"""Where an answer between has left, a mark says that the user speaks behind output, in formats that join neighbors."""

import pytest

import refold

WORK = "\n".join(f"value_{number} = compute({number})" for number in range(200))
TURNS = ("Mend the parser.", "Now rename the option.", "Also look at the tests.", "Then write the notes.")


def session(turns=TURNS, batches=4):
    """Return turns in Anthropic's shape, with calls of long output and a long answer behind each."""
    messages = []
    for turn, words in enumerate(turns):
        messages.append({"role": "user", "content": words})
        for number in range(batches):
            id = f"c{turn}_{number}"
            call = {"type": "tool_use", "id": id, "name": "read", "input": {"path": f"src/part{turn}{number}.py"}}
            result = {"type": "tool_result", "tool_use_id": id, "content": f"{turn} {number} {WORK}"}
            messages += ({"role": "assistant", "content": [call]}, {"role": "user", "content": [result]})
        messages.append({"role": "assistant", "content": f"Part {turn} is done. " + "It was long to tell. " * 200})
    return messages[:-1]


def compacted(messages, budget, format="anthropic"):
    options = {"format": format, "model": "gpt-4o", "budget": budget}  # the model by whose count the budgets are chosen
    return refold.compact(messages, policy="refold", force=True, **options).messages


def blocks(messages):
    for message in messages:
        content = message["content"]
        yield [{"type": "text", "text": content}] if isinstance(content, str) else content


def speakers(messages):
    """Return for each turn in the result what stands right before its words in the same message, or nothing."""
    before = {}
    for content in blocks(messages):
        for place, block in enumerate(content):
            if block.get("text") in TURNS:
                before[block["text"]] = content[place - 1] if place else None
    return before


def test_a_turn_that_was_joined_with_output_or_a_digest_is_marked_and_the_newest_is_called_current():
    before = speakers(compacted(session(), 2_800))
    assert before[TURNS[0]] is None
    assert [before[turn]["text"] for turn in TURNS[1:3]] == ["[The user speaks: turn 2]", "[The user speaks: turn 3]"]
    assert before[TURNS[3]] is None  # the answer before the newest request stays
    assert speakers(compacted(session(), 500))[TURNS[3]]["text"] == "[The user speaks: turn 4, the current request]"


def test_where_messages_stay_apart_or_nothing_left_no_turn_is_marked():
    messages = session()
    assert compacted(messages, 10**6) == messages
    plain = [{"role": "user", "content": "Mend it."}]
    for number in range(12):
        plain += (
            {"role": "assistant", "content": f"Step {number}. " + "It was long to tell. " * 100},
            {"role": "user", "content": f"Go on with part {number}."},
        )
    assert "[The user speaks" not in str(compacted(plain, 1_500, "openai-chat"))


def test_a_mark_that_a_client_sends_back_is_neither_the_users_word_nor_written_twice():
    once = compacted(session(), 3_000)
    twice = compacted([*once, {"role": "assistant", "content": "I go on. " * 3_000}], 2_900)
    texts = [str(block.get("text")) for content in blocks(twice) for block in content]
    assert '"[The user speaks' not in "\n".join(texts)
    marks = [text for text in texts if text.startswith("[The user speaks")]
    assert marks
    assert len(marks) == len(set(marks))


def test_turns_whose_answers_left_are_marked_one_by_one():
    later = [{"role": "assistant", "content": "I look."}, *session(("Go on with it.",))]
    before = speakers(compacted([*session(batches=0), *later], 1_150))
    assert [before[turn]["text"] for turn in TURNS[2:]] == ["[The user speaks: turn 3]", "[The user speaks: turn 4]"]


def loading(text, skill_call="Skill"):
    """Return a session in which the text of a harness stands behind a call of the assistant."""
    call = {"type": "tool_use", "id": "s", "name": skill_call, "input": {"skill": "release"}}
    result = {"type": "tool_result", "tool_use_id": "s", "content": "Launching skill: release"}
    first, *rest = session()
    loaded = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return [first, *loaded, {"role": "user", "content": text}, *rest]


@pytest.mark.parametrize(
    ("text", "name", "budget"),
    [
        (
            f"Base directory for this skill: /skills/release\n\n{'Never build without tests. ' * 20}",
            "a command or skill",
            3_600,
        ),
        (
            f"This session is being continued from a previous conversation that ran out of context. {'x ' * 260}",
            "summary",
            3_600,
        ),
    ],
)
def test_a_text_of_the_harness_that_follows_words_of_the_user_is_marked_as_not_the_users(text, name, budget):
    once = compacted(loading(text), budget)  # that the call before the text leaves with
    texts = [block.get("text", "") for content in blocks(once) for block in content]
    at = next(place for place, each in enumerate(texts) if each.startswith(text[:30]))
    assert texts[at - 1].startswith("[Not the user: ")
    assert name in texts[at - 1]
    again = compacted([*once, {"role": "assistant", "content": "I go on. " * 3_000}], budget - 100)
    assert str(again).count("[Not the user: ") <= 1


def test_a_turn_right_behind_output_that_was_cut_is_marked():
    messages = session(TURNS[:2], 1)
    messages[3:4] = []  # the answer that ended the first turn: the second came into the work
    mark = "[The user speaks: turn 2, the current request]"
    assert speakers(compacted(messages, 3_000))[TURNS[1]]["text"] == mark
    assert speakers(compacted(messages, 6_000))[TURNS[1]] is None  # the output is whole
