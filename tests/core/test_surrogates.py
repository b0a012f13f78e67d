from refold.core._surrogates import repair_surrogates_in_message
from refold.core.messages import Message, MessageId, Text, ToolCall, ToolResult

HALF = "\ud83d"


def test_every_text_of_a_message_is_repaired_and_its_native_object_is_not():
    native = {"role": "assistant"}
    call = ToolCall(f"c{HALF}", "read", r'{"path": "\ud83d"}', at=("x",))
    result = ToolResult(f"c{HALF}", (Text(f"out{HALF}"), Text("fine")))
    made = repair_surrogates_in_message(
        Message(MessageId("m"), "assistant", (Text(f"said{HALF}"), call, result), native=native)
    )
    assert made.native is native
    assert made.parts == (
        Text("said\ufffd"),
        ToolCall("c\ufffd", "read", r'{"path": "\ufffd"}', at=("x",)),
        ToolResult("c\ufffd", (Text("out\ufffd"), Text("fine"))),
    )
