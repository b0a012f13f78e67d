import json

import pytest

import refold
from refold import formats, transcripts
from refold.testing.provider import ReceivedRequest
from tools.resume_sessions import checked

LOG = "\n".join(f"step {number} of the build passed" for number in range(300))


def conversation():
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "cat build.log"}}
    return [
        {"role": "user", "content": "Look at the log."},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": LOG}]},
        {"role": "assistant", "content": "It passed."},
    ]


def shortened():
    messages = json.loads(json.dumps(conversation()))
    messages[2]["content"][0]["content"] = "[shortened]"
    return messages


def again():
    """The log once more, by a call that the compacted conversation does not have."""
    return json.loads(json.dumps(conversation()).replace("toolu_1", "toolu_2"))


def request(messages):
    body = {
        "model": "claude-opus-4-5",
        "max_tokens": 100,
        "messages": [*messages, {"role": "user", "content": "Well?"}],
    }
    read = formats.read(formats.find("anthropic"), body["messages"]).messages
    return ReceivedRequest(1, "anthropic", body=body, tokens=50, messages=tuple(read))


def judged(sent):
    compacted = formats.read(formats.find("anthropic"), shortened()).messages
    original = transcripts.RecordedConversation("claude-code", "anthropic", conversation())
    return checked(request(sent), compacted, original, 1_000)


def test_a_first_request_that_is_the_compacted_conversation_passes():
    assert judged(shortened()).startswith("valid; 5 parts of 5")
    assert refold.violations(shortened(), format="anthropic") == ()


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (conversation(), "lacks"),
        (shortened()[:3], "lacks"),
        ([*shortened(), *again()], "has what the compacted conversation has not"),
        (shortened()[:2], "not valid"),
    ],
    ids=["the-original", "cut", "both", "a-call-without-result"],
)
def test_a_first_request_that_is_not_is_refused(sent, words):
    with pytest.raises(ValueError, match=words):
        judged(sent)
