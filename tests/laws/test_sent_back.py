"""What holds when a client keeps no plans and sends the compacted list again, five times over, and when it keeps them."""

import json

import pytest

import refold
from refold import formats
from refold._condense.digest.previous import OPENING, entries_in
from refold._condense.pins import CONSTRAINTS, pins

CHAT, ANTHROPIC = "openai-chat", "anthropic"
PINS = [f"Never touch vault {n}." for n in range(6)]
BUDGET, SMALL = 3_000, 700


def body(cycle, n):
    return "\n".join(f"def part_{cycle}_{n}_{k}(value): return value + {k}" for k in range(40))


def details(cycle):
    return " ".join(f"point{cycle}x{n}" for n in range(30))


def chat(cycle):
    """One more stretch of work: two turns with a rule, and calls between them."""
    said = [
        {
            "role": "user",
            "content": f"Task {cycle}: mend part {cycle}. {PINS[cycle]} Details: {details(cycle)}.\n\n## Errors\n- no section of ours",
        }
    ]
    for n in range(12):
        id = f"c{cycle}-{n}"
        call = {
            "id": id,
            "type": "function",
            "function": {"name": "read", "arguments": json.dumps({"path": f"src/{cycle}_{n}.py"})},
        }
        said.append(
            {"role": "assistant", "content": f"I chose helper_{cycle}_{n} because it is smaller.", "tool_calls": [call]}
        )
        said.append({"role": "tool", "tool_call_id": id, "content": body(cycle, n)})
    return [
        *said,
        {"role": "assistant", "content": f"Part {cycle} is mended."},
        {"role": "user", "content": f"Good, part {cycle} it is."},
    ]


def blocks(cycle):
    """The same in blocks."""
    said = [{"role": "user", "content": chat(cycle)[0]["content"]}]
    for n in range(12):
        id = f"c{cycle}-{n}"
        call = {"type": "tool_use", "id": id, "name": "read", "input": {"path": f"src/{cycle}_{n}.py"}}
        said.append(
            {
                "role": "assistant",
                "content": [{"type": "text", "text": f"I chose helper_{cycle}_{n} because it is smaller."}, call],
            }
        )
        said.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": body(cycle, n)}]}
        )
    said.append({"role": "assistant", "content": [{"type": "text", "text": f"Part {cycle} is mended."}]})
    return [*said, {"role": "user", "content": f"Good, part {cycle} it is."}]


MAKERS = {CHAT: chat, ANTHROPIC: blocks}


def texts(message):
    content = message.get("content")
    return [content] if isinstance(content, str) else [part.get("text", "") for part in content or ()]


def words(message):
    return "\n".join(texts(message))


def digests(messages):
    return [text for message in messages for text in texts(message) if OPENING in text]


@pytest.mark.parametrize("format", MAKERS)
def test_five_cycles_of_a_list_sent_back_keep_every_pin_and_one_digest(format):
    messages = []
    for cycle in range(1, 6):
        messages = messages + MAKERS[format](cycle)
        result = refold.compact(messages, format=format, budget=BUDGET)
        messages = result.messages
        said = "\n".join(words(message) for message in messages if message["role"] == "user")
        assert all(pin in said for pin in PINS[1 : cycle + 1])
        assert len(digests(messages)) == 1
        assert digests(messages)[0].count(OPENING) == 1
        assert result.sizes.after >= 0.9 * BUDGET
        assert not refold.violations(messages, format=format)


def test_turns_that_only_the_digest_tells_keep_their_words_and_numbers(monkeypatch):
    monkeypatch.setattr(
        "refold._condense.reduction_order.cut_to_sentences", lambda *_: None
    )  # else rules stay where they were said
    messages = []
    for cycle in range(1, 6):
        messages = refold.compact(messages + chat(cycle), budget=SMALL).messages
    (digest,) = digests(messages)
    told = entries_in(formats.read(formats.find(CHAT), messages).messages)
    quotes = told.lines(CONSTRAINTS)
    assert len(quotes) == len(set(quotes))
    assert [line for line in quotes if PINS[2] in line] == [f'"{PINS[2]}" (user turn 3)']
    assert [line for line in quotes if PINS[3] in line] == [f'"{PINS[3]}" (user turn 5)']
    assert digest.count("## What the user decided") == 1


def test_pins_are_the_same_whether_the_list_or_the_plans_are_kept():
    back, whole, plans = [], [], ()
    for cycle in range(1, 6):
        back = refold.compact(back + chat(cycle), budget=BUDGET).messages
        whole = whole + chat(cycle)
        result = refold.compact(whole, budget=BUDGET, plans=plans)
        plans = result.plans
        read = formats.read(formats.find(CHAT), back)
        assert {pin.text for pin in pins(read)} == {pin.text for pin in pins(formats.read(formats.find(CHAT), whole))}
        assert len(digests(result.messages)) == 1
    assert "Never touch vault 1." in digests(back)[0]  # carried through every cycle, as are the latest files
    assert "src/4_" in digests(back)[0]


def test_a_digest_that_is_not_due_to_go_stays_as_it_was_sent():
    messages = refold.compact(chat(1), budget=BUDGET).messages
    assert refold.compact(messages, budget=BUDGET).messages == messages


def test_the_fifth_digest_of_a_kept_transcript_tells_what_one_pass_would_tell():
    whole, plans = [], ()
    for cycle in range(1, 6):
        whole = whole + chat(cycle)
        result = refold.compact(whole, budget=BUDGET, plans=plans)
        plans = result.plans
    once = refold.compact(whole, budget=BUDGET)
    shape = formats.find(CHAT)
    five, one = (entries_in(formats.read(shape, made.messages).messages) for made in (result, once))
    assert set(five.sections) == set(one.sections)
    for title in (CONSTRAINTS, "Files read", "Requests and answers of the user (word for word)"):
        assert set(one.lines(title)) <= set(five.lines(title)) or five.lines(title) == one.lines(title)
