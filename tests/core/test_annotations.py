import pytest

import refold
from refold import formats
from refold._condense.digest.previous import OPENING as DIGEST
from refold._condense.quoted_requests import quoted_request
from refold._condense.view_positions import last_request
from refold.core._annotations import OPENINGS
from refold.core.messages import text_of
from refold.core.transcript import Transcript
from refold.policies import find
from refold.testing import view_of
from tests.test_api import MESSAGES

CHAT = formats.find("openai-chat")


def notes_of(messages):
    return [message.note and message.note.kind for message in formats.read(CHAT, messages).messages]


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_message_that_opens_as_ours_do_gets_its_note_back(opening):
    assert notes_of([{"role": "user", "content": f"{opening} and more"}]) == [OPENINGS[opening]]


def test_what_only_mentions_an_opening_or_comes_from_elsewhere_does_not():
    opening = "[Compaction Summary]"
    said = [
        {"role": "user", "content": f"What does {opening} mean?"},
        {"role": "assistant", "content": opening},
        {"role": "user", "content": [{"type": "text", "text": opening}, {"type": "text", "text": "and my question"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": opening},
    ]
    assert notes_of(said) == [None] * 5


def test_our_part_in_a_users_message_is_told_apart_from_their_words():
    content = [{"type": "text", "text": "Go on"}, {"type": "text", "text": "[Compaction Summary] TASK: x"}]
    message = formats.read(formats.find("anthropic"), [{"role": "user", "content": content}]).messages[0]
    assert message.note is None
    assert [part.ours for part in message.parts] == [False, True]
    assert text_of(message) == "Go on"


def test_a_message_of_parts_that_are_all_ours_is_no_request():
    summary = "[Conversation summary — everything before it was compacted]\n\nS\n\nLast request from user was: go"
    for other, kind in (("[Older messages were left out to make room]", "summary"), (DIGEST, None)):
        content = [{"type": "text", "text": other}, {"type": "text", "text": summary}]
        message = formats.read(formats.find("anthropic"), [{"role": "user", "content": content}]).messages[0]
        assert (message.note and message.note.kind) == kind
        assert quoted_request(message) == "go"
        assert last_request(view_of(Transcript((message,)))) is None


def test_files_of_a_summary_come_back():
    text = "[Conversation summary — older messages were compacted]\n\nGoal\n\n<read-files>\na.py\nb.py\n</read-files>\n\n<modified-files>\nc.py\n</modified-files>"
    note = formats.read(CHAT, [{"role": "user", "content": text}]).messages[0].note
    assert (note.read, note.modified) == (("a.py", "b.py"), ("c.py",))


@pytest.mark.parametrize("policy", ["wolffish", "neurolink", "opal", "claude-code", "vibe", "refold"])
def test_what_a_policy_inserts_is_known_again(policy):
    result = refold.compact(
        MESSAGES, policy=find(policy), budget=1_500, force=True, summarize=lambda need: "GOAL: go on"
    )
    made = [
        message.note.kind
        for edit in result.plan.edits
        if (message := getattr(edit, "message", None))
        and hasattr(message, "note")
        and message.role == "user"
        and message.note
    ]
    back = [kind for kind in notes_of(result.messages) if kind]
    assert set(back) & {"digest", "summary", "marker"} == set(made) & {"digest", "summary", "marker"}
    assert back
