"""What agents print as JSON lines when they run without a screen."""

import json

import refold
from refold.transcripts import read


def lines(*rows):
    return "\n".join(map(json.dumps, rows)).encode()


def done(kind, **fields):
    return {"type": "item.completed", "item": {"id": "item_0", "type": kind, **fields}}


def calls_of(item):
    """The calls of a conversation of Codex with their outputs."""
    outputs = {row["call_id"]: row["output"] for row in item.messages if row["type"] == "function_call_output"}
    return [
        (row["name"], json.loads(row["arguments"]), outputs[row["call_id"]])
        for row in item.messages
        if row["type"] == "function_call"
    ]


def test_items_of_codex_become_calls_with_their_outputs():
    tasks = {"type": "todo_list", "items": [{"text": "look", "completed": True}, {"text": "mend", "completed": False}]}
    (item,) = read(
        lines(
            {"type": "thread.started", "thread_id": "t"},
            {"type": "item.started", "item": {"id": "item_9", **tasks}},
            done("command_execution", command="/bin/bash -lc 'cat a.py'", aggregated_output="x = 1\n", exit_code=0),
            done("command_execution", command="bash -lc 'unclosed", aggregated_output="wrong\n", exit_code=2),
            done("file_change", changes=[{"path": "a.py", "kind": "update"}], status="completed"),
            done("mcp_tool_call", server="s", tool="find", arguments={"q": 1}, result={"content": [{"text": "found"}]}),
            done("mcp_tool_call", server="s", tool="find", arguments={"q": 2}, error={"message": "no such thing"}),
            done("web_search", query="how"),
            {"type": "item.completed", "item": {"id": "item_9", **tasks}},
            done("agent_message", text="It is mended."),
        )
    )
    plan = [{"step": "look", "status": "completed"}, {"step": "mend", "status": "pending"}]
    assert calls_of(item) == [
        ("update_plan", {"plan": plan}, "Plan updated"),
        ("exec_command", {"cmd": "cat a.py"}, "x = 1\n"),
        ("exec_command", {"cmd": "bash -lc 'unclosed"}, "wrong\nProcess exited with code 2"),
        ("apply_patch", {"changes": [{"path": "a.py", "kind": "update"}]}, "completed"),
        ("s__find", {"q": 1}, "found"),
        ("s__find", {"q": 2}, "no such thing"),
        ("web_search", {"query": "how"}, ""),
    ]
    assert item.messages[-1]["content"][0]["text"] == "It is mended."
    assert refold.violations(item.messages, format="openai-responses") == ()


def test_what_is_no_part_of_the_conversation_is_told():
    (item,) = read(
        lines(
            {"type": "thread.started", "thread_id": "t"}, done("reasoning", text="hm"), done("agent_message", text="a")
        )
    )
    assert item.notes[1:] == ("1 × line of type item.completed with an item of type reasoning (line 2)",)


def test_a_resumed_thread_of_codex_goes_on_and_another_is_a_conversation_of_its_own():
    def begun(name):
        return {"type": "thread.started", "thread_id": name}

    said = [done("agent_message", text=text) for text in ("one", "two", "three")]
    found = read(lines(begun("a"), said[0], begun("b"), said[1], begun("a"), said[2]))
    assert [(item.name, len(item.messages)) for item in found] == [("main", 2), ("b", 1)]


INIT = {"type": "init", "session_id": "s", "model": "gemini-2.5-pro"}


def said(role, text, **more):
    return {"type": "message", "role": role, "content": text, **more}


def test_pieces_of_gemini_cli_become_contents_of_both_sides():
    (item,) = read(
        lines(
            said("user", "What the wrapper asks."),
            INIT,
            said("assistant", "I lo", delta=True),
            said("assistant", "ok.", delta=True),
            {"type": "tool_use", "tool_name": "ls", "tool_id": "1", "parameters": {"dir": "."}},
            {"type": "tool_use", "tool_name": "cat", "tool_id": "2", "parameters": {"file": "b"}},
            {"type": "tool_result", "tool_id": "1", "status": "success", "output": "a"},
            {"type": "tool_result", "tool_id": "2", "status": "error", "error": {"message": "no file b"}},
            said("assistant", "There is no b.", delta=True),
            {"type": "result", "status": "success", "stats": {"input_tokens": 9}},
        )
    )
    assert item.messages == [
        {"role": "user", "parts": [{"text": "What the wrapper asks."}]},
        {
            "role": "model",
            "parts": [
                {"text": "I look."},
                {"functionCall": {"id": "1", "name": "ls", "args": {"dir": "."}}},
                {"functionCall": {"id": "2", "name": "cat", "args": {"file": "b"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "1", "name": "ls", "response": {"output": "a"}}},
                {"functionResponse": {"id": "2", "name": "cat", "response": {"error": "no file b"}}},
            ],
        },
        {"role": "model", "parts": [{"text": "There is no b."}]},
    ]
    assert item.model == "gemini-2.5-pro"
    assert item.notes[1:] == ("1 × line of type result (line 10)",)


def test_a_resumed_session_of_gemini_cli_goes_on_and_another_is_a_conversation_of_its_own():
    other = {**INIT, "session_id": "other"}
    found = read(lines(INIT, said("user", "one"), other, said("user", "two"), INIT, said("user", "three")))
    assert [(item.name, len(item.messages)) for item in found] == [("main", 2), ("other", 1)]
