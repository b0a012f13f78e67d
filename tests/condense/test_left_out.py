import re

import refold
from refold._condense.left_out import room_for_count, with_count
from refold.core.messages import text_of
from refold.testing import talk, view_of

BODY = "\n".join(f"value_{n} = compute({n})" for n in range(60))


def steps(turn, number):
    for n in range(number):
        call = {
            "id": f"c{turn}_{n}",
            "type": "function",
            "function": {"name": "read", "arguments": f'{{"path": "{n}"}}'},
        }
        yield {"role": "assistant", "content": f"Step {n}.", "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": f"c{turn}_{n}", "content": BODY.replace("value_", f"value_{turn}_{n}_")}


def end_of_digest(messages, goal):
    result = refold.compact(messages, format="openai-chat", window=200_000, goal=goal, force=True)
    assert result.sizes.after <= goal
    text = "\n".join(str(message["content"]) for message in result.messages)
    return text[text.rindex("[End of the digest") :].partition("\n")[0]


def turn(words, number, work):
    return [
        {"role": "user", "content": words},
        *steps(number, work),
        {"role": "assistant", "content": f"Did {number}."},
    ]


def test_a_digest_ends_with_how_many_messages_left_between_those_that_follow_by_turn():
    messages = [*turn("Mend it.", 1, 60), *turn("Now mend the other one.", 2, 20), *turn("And the last.", 3, 1)]
    end = end_of_digest(messages, 9_000)
    assert end.startswith("[End of the digest. Left out in between, in messages by user turn: 1 (")
    assert " of 122), 2 (" in end
    assert ", 3 (" not in end
    assert end.endswith("]")


def test_many_turns_of_which_most_is_missing_are_counted_as_one():
    messages = [each for n in range(60) for each in turn(f"Do part {n}. {BODY}", n, 2)]
    end = end_of_digest(messages, 24_000)
    assert re.search(r"in messages by user turn: \d+ to \d\d \(\d+ of 3\d\d\)", end)


def test_where_turns_that_lost_much_and_little_alternate_all_are_counted_as_one():
    lines = [line for n in range(60) for line in (f"u: part {n}", *(f"a: step {n} {m}" for m in range(9)))]
    view = view_of(talk(*lines))
    kept = [message for message in view.messages if int(text_of(message).split()[1]) % 2]
    counted = with_count(view, "[End of the digest.]", kept, 400)
    assert "Left out in between, in messages by user turn: 1 to 60 (300 of 600)" in counted


def test_what_left_before_the_first_turn_is_told_as_such():
    lines = [
        "a: hello",
        "a: one",
        "a: two",
        *(f"a: step {n}" for n in range(9)),
        "u: go",
        *(f"a: on {n}" for n in range(9)),
    ]
    view = view_of(talk(*lines))
    counted = with_count(view, "[End of the digest.]", [view.messages[-1]], 80)
    assert "by user turn: before 1 to 1 (21 of 22)" in counted


def test_a_large_goal_keeps_room_for_the_shortest_count_where_the_system_prompt_takes_most_of_it():
    system = [{"role": "system", "content": "\n".join(f"Rule {n}: {BODY[:200]}" for n in range(100))}]
    messages = [each for n in range(30) for each in turn(f"Do part {n}. {BODY}", n, 2)]
    assert re.search(r"Left out .*\d+ to \d\d \(", end_of_digest([*system, *messages], 16_000))


def test_where_little_has_room_none_is_kept_for_the_count_and_only_what_is_left_over_is_taken():
    view = view_of(talk("u: Mend it.", *(f"a: step {n}" for n in range(30)), "u: And now?"), goal=3_000)
    assert room_for_count(view) == 0
    assert with_count(view, "[End of the digest.]", [view.messages[-1]], 20) == "[End of the digest.]"
    assert "Left out" in with_count(view, "[End of the digest.]", [view.messages[-1]], 200)
