"""What a digest tells where the view alone is known: the client sends back what it got, and has no originals."""

import re

import pytest

import refold
from refold._condense.digest.previous import OPENING
from refold._condense.digest.render import digest_text
from refold.core.messages import Message, MessageId, Note, Text
from refold.core.transcript import Transcript
from refold.testing import talk, view_of

TURNS = 24
BODY = "\n".join(f"value_{n} = compute({n})" for n in range(60))
WORDS = "Please look at the part of the store that it is about, and tell what there is."


def step(format, turn, says, number=0):
    path, id, body = f'{{"path": "src/{turn}.py"}}', f"c{turn}_{number}", BODY.replace("value_", f"value_{turn}_")
    if format == "openai-chat":
        call = {"id": id, "type": "function", "function": {"name": "read", "arguments": path}}
        yield {"role": "assistant", "content": says, "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": id, "content": body}
    else:
        call = {"type": "tool_use", "id": id, "name": "read", "input": {"path": f"src/{turn}.py"}}
        yield {"role": "assistant", "content": [{"type": "text", "text": says}, call]}
        yield {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": body}]}


def turn(format, number, words=f"{WORDS * 3}", answer="Did it."):
    yield {"role": "user", "content": f"Do part {number} now. {words}"}
    yield from step(format, number, f"Looking at part {number}.")
    yield {"role": "assistant", "content": f"{answer} It was part {number}."}


def compacted(messages, format, goal=9_000):
    return refold.compact(messages, format=format, window=200_000, goal=goal, force=True).messages


def digest_of(messages):
    texts = (
        text
        for message in messages
        for text in (
            [message["content"]]
            if isinstance(message["content"], str)
            else [block.get("text", "") for block in message["content"]]
        )
    )
    return next(text for text in texts if text.startswith("[Digest of earlier messages"))


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
def test_turns_keep_their_numbers_where_the_view_alone_is_sent_back(format):
    view = []
    for cycle in range(3):
        numbers = range(cycle * TURNS, (cycle + 1) * TURNS)
        view = compacted([*view, *(each for n in numbers for each in turn(format, n + 1))], format)
        digest = digest_of(view)
        assert f"## Current request of the user (user turn {numbers[-1] + 1}," in digest
    told = re.findall(r"^- turn (\d+): Do part (\d+) now", digest, re.M)
    assert told
    assert all(turn == part for turn, part in told)


CHOSE = "Deliberately chose tabs instead of spaces, since the style guide says so."
TOLD = f"""{OPENING}

## Decisions and reasons
- {CHOSE} (turn 3)

## Earlier requests and how they ended
- turn 1: Mend the door. → The door closes again.
- turn 2: Mend the roof. → The roof is tight again.

[End of the digest. Turns of the user that begin a message: 1, 4. Messages in full or shortened follow.]"""


def sent_back():
    said = talk(
        "u: Mend the door.", f"a: {CHOSE} Fixed and committed the stairs.", "u: Mend the window.",
        'a: looking | read(window.py) as c1', "t: c1 = pane = 1",
    )  # fmt: skip
    digest = Message(MessageId("sent"), "user", (Text(TOLD, at=("content",)),), Note("digest"))
    return Transcript((said.messages[0], digest, *said.messages[1:]))


def test_what_an_earlier_digest_tells_is_not_told_again_under_the_number_of_a_turn_that_stands():
    transcript = sent_back()
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[2:3], limit=2_000)
    assert text.count(CHOSE) == 1
    assert f"{CHOSE} (turn 3)" in text


def test_an_answer_behind_turns_that_have_left_is_none_to_the_turn_that_stands_before_it():
    transcript = sent_back()
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[2:3], limit=2_000)
    assert "- turn 1: Mend the door. → The door closes again." in text
    assert "- turn 2: Mend the roof. → The roof is tight again." in text
    assert "stairs" not in text[text.index("how they ended") :].partition("\n\n")[0]
