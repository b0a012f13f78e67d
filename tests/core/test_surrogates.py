import pytest

from refold.core._surrogates import whole, whole_escapes, whole_message
from refold.core.messages import Message, MessageId, Text, ToolCall, ToolResult

HALF = "\ud83d"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("é 😀", "é 😀"),
        (f"a{HALF}b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
    ],
)
def test_lone_halves_are_replaced_and_pairs_are_joined(text, expected):
    assert whole(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'{"a": "\ud83d"}', r'{"a": "\ufffd"}'),
        (r'{"a": "\uDE00x"}', r'{"a": "\ufffdx"}'),
        (r'{"a": "\ud83d\ude00"}', r'{"a": "\ud83d\ude00"}'),
        (r'{"a": "C:\\ud83d"}', r'{"a": "C:\\ud83d"}'),
        (r'{"a": "\n\u00e9"}', r'{"a": "\n\u00e9"}'),
    ],
)
def test_escapes_of_lone_halves_become_one_that_every_decoder_takes(text, expected):
    assert whole_escapes(text) == expected


def test_every_text_of_a_message_is_made_whole_and_its_native_object_is_not():
    native = {"role": "assistant"}
    call = ToolCall(f"c{HALF}", "read", r'{"path": "\ud83d"}', at=("x",))
    result = ToolResult(f"c{HALF}", (Text(f"out{HALF}"), Text("fine")))
    made = whole_message(Message(MessageId("m"), "assistant", (Text(f"said{HALF}"), call, result), native=native))
    assert made.native is native
    assert made.parts == (
        Text("said\ufffd"),
        ToolCall("c\ufffd", "read", r'{"path": "\ufffd"}', at=("x",)),
        ToolResult("c\ufffd", (Text("out\ufffd"), Text("fine"))),
    )
