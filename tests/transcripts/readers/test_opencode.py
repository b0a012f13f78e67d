import json

from refold import violations
from refold.transcripts import read


def session(*messages):
    return json.dumps({"info": {"id": "ses"}, "messages": list(messages)}).encode()


def user(*parts):
    return {"info": {"role": "user"}, "parts": list(parts)}


def answer(*parts, **info):
    return {"info": {"role": "assistant", "modelID": "m", **info}, "parts": list(parts)}


def tool(id, **state):
    return {"type": "tool", "callID": id, "tool": "read", "state": {"input": {"p": 1}, **state}}


def text(words, **more):
    return {"type": "text", "text": words, **more}


TOKENS = {"input": 10, "output": 2, "cache": {"read": 5, "write": 1}}


def test_a_part_that_is_call_and_result_is_split_in_two_messages():
    (item,) = read(
        session(
            user(text("go")),
            answer(
                {"type": "step-start"},
                {"type": "reasoning", "text": "hm", "metadata": {"anthropic": {"signature": "s"}}},
                tool("c1", status="completed", output="one"),
                tool("c2", status="error", error="no"),
                {"type": "step-finish", "tokens": TOKENS},
                tokens=TOKENS,
            ),
        )
    )
    assert (item.kind, item.format, item.model) == ("opencode", "anthropic", "m")
    assert [block["type"] for block in item.messages[1]["content"]] == ["thinking", "tool_use", "tool_use"]
    assert item.messages[1]["content"][0]["signature"] == "s"
    assert item.messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True},
    ]
    assert [(u.covers, u.prompt, u.completion) for u in item.usage] == [(1, 16, 2)]


def test_reasoning_that_is_not_claudes_is_noted_and_the_messages_are_valid():
    (item,) = read(
        session(
            user(text("go")),
            answer(
                {"type": "reasoning", "text": "", "metadata": {"openai": {"itemId": "rs_1"}}},
                {"type": "reasoning", "text": "hm"},
                {"type": "reasoning", "text": "so", "metadata": {"bedrock": {"signature": "s"}}},
                tool("c1", status="completed", output="one"),
            ),
        )
    )
    assert violations(item.messages, format=item.format) == ()
    assert item.messages[1]["content"][0] == {"type": "thinking", "thinking": "so", "signature": "s"}
    assert "2 × reasoning without Anthropic's signature, which its messages cannot hold" in item.notes


def test_an_answer_of_several_steps_is_several_messages_with_a_report_each():
    step = {"type": "step-finish", "tokens": TOKENS}
    (item,) = read(
        session(
            user(text("go")),
            answer(
                {"type": "step-start"},
                tool("c1", status="completed", output="1"),
                step,
                {"type": "step-start"},
                text("done"),
                step,
            ),
        )
    )
    assert [message["role"] for message in item.messages] == ["user", "assistant", "user", "assistant"]
    assert [u.covers for u in item.usage] == [1, 3]


def test_usage_beside_the_message_counts_where_steps_report_none():
    (item,) = read(session(user(text("go")), answer(text("hi"), tokens=TOKENS)))
    assert [(u.covers, u.prompt) for u in item.usage] == [(1, 16)]


def test_a_running_call_stays_open_and_other_parts_are_counted():
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,QQ=="}
    (item,) = read(
        session(
            user(text("see"), picture, {"type": "subtask"}, text("hidden", ignored=True)),
            answer(tool("c1", status="running"), {"type": "patch"}, error={"name": "Aborted"}),
            {"nothing": 1},
        )
    )
    assert item.messages[0]["content"][1]["source"]["data"] == "QQ=="
    assert len(item.messages) == 2
    assert item.notes == (
        "1 × user part of type subtask",
        "1 × user part of type text, which is not sent",
        "1 × part of type patch",
        "1 × call without a result (running), kept open",
        "1 × answer that ended in Aborted",
        "1 × entry without info and parts",
    )


def test_repeated_call_ids_are_told_apart():
    (item,) = read(session(user(text("go")), answer(tool("x", output="1"), tool("x", output="2"))))
    assert [block["id"] for block in item.messages[1]["content"]] == ["x", "x_2"]
    assert [block["tool_use_id"] for block in item.messages[2]["content"]] == ["x", "x_2"]


def test_a_summary_is_a_boundary_and_pictures_of_a_tool_are_kept():
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,QQ=="}
    (item,) = read(
        session(
            user(text("go")), answer(text("sum"), summary=True), answer(tool("c", output="p", attachments=[picture]))
        )
    )
    assert item.boundaries == (1,)
    assert [block["type"] for block in item.messages[-1]["content"][0]["content"]] == ["text", "image"]
