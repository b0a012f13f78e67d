import json

from refold import violations
from refold.transcripts import read


def raw(value):
    return json.dumps(value).encode()


def lines(*rows):
    return "\n".join(map(json.dumps, rows)).encode()


def test_an_amp_thread():
    (item,) = read(
        raw(
            {
                "v": 1,
                "messages": [
                    {"role": "user", "messageId": 0, "content": [{"type": "text", "text": "go"}]},
                    {
                        "role": "assistant",
                        "messageId": 1,
                        "content": [
                            {"type": "thinking", "thinking": "hm", "signature": "s", "provider": "x"},
                            {"type": "tool_use", "complete": True, "id": "c1", "name": "Read", "input": {"p": 1}},
                            {"type": "tool_use", "complete": True, "id": "c2", "name": "Read", "input": {}},
                        ],
                        "usage": {
                            "model": "m",
                            "maxInputTokens": 168,
                            "inputTokens": 1,
                            "outputTokens": 2,
                            "totalInputTokens": 50,
                        },
                    },
                    {
                        "role": "user",
                        "messageId": 2,
                        "content": [
                            {
                                "type": "tool_result",
                                "toolUseID": "c1",
                                "run": {"status": "done", "result": {"content": "é"}},
                            },
                            {"type": "tool_result", "toolUseID": "c2", "run": {"status": "error", "error": "no"}},
                        ],
                    },
                    {"role": "assistant", "messageId": 3, "content": []},
                ],
            }
        )
    )
    assert (item.kind, item.format, item.model, item.window) == ("amp", "anthropic", "m", 168)
    assert item.messages[1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert item.messages[1]["content"][1] == {"type": "tool_use", "id": "c1", "name": "Read", "input": {"p": 1}}
    assert item.messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": '{"content": "é"}'},
        {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True},
    ]
    assert [(u.covers, u.prompt) for u in item.usage] == [(1, 50)]
    assert item.notes == ("1 × message of role assistant without content",)


def test_a_continue_session():
    call = {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
    states = [
        {"toolCallId": "c1", "status": "done", "output": [{"content": "a"}, {"content": "b"}]},
        {"toolCallId": "c2", "status": "canceled"},
    ]
    (item,) = read(
        raw(
            {
                "sessionId": "s",
                "usage": {"promptTokens": 9},
                "history": [
                    {"message": {"role": "user", "content": "go"}, "contextItems": [{}]},
                    {"message": {"role": "thinking", "content": "hm"}, "contextItems": []},
                    {
                        "message": {
                            "role": "assistant",
                            "content": "",
                            "toolCalls": [call],
                            "usage": {"prompt_tokens": 90, "completion_tokens": 3, "model": "m"},
                        },
                        "contextItems": [],
                        "toolCallStates": states,
                    },
                ],
            }
        )
    )
    assert (item.kind, item.model) == ("continue-cli", "m")
    assert [(u.covers, u.prompt, u.completion) for u in item.usage] == [(1, 90, 3)]
    assert item.messages == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a\n\nb"},
    ]
    assert [note.split(" ", 2)[2].split(",")[0] for note in item.notes] == [
        "context item", "message of role thinking", "call without a result (canceled)", "usage",
    ]  # fmt: skip


def test_a_copilot_session():
    node = {
        "type": 1,
        "children": [
            {"type": 2, "text": "one", "lineBreakBefore": None},
            {"type": 1, "children": [{"type": 2, "text": "two"}]},
        ],
    }
    rounds = [
        {
            "response": "looking",
            "toolCalls": [{"id": "c1", "name": "grep", "arguments": '{"q":1}'}, {"id": "c2", "name": "x"}],
        },
        {"response": "done", "toolCalls": []},
    ]
    metadata = {
        "renderedUserMessage": [{"type": 1, "text": "<context/>go"}, {"type": 3, "cacheType": "ephemeral"}],
        "toolCallRounds": rounds,
        "toolCallResults": {"c1": {"content": [{"value": {"node": node}}, {"value": "plain"}]}},
    }
    (item,) = read(
        raw(
            {
                "responderUsername": "GitHub Copilot",
                "requests": [
                    {
                        "message": {"text": "go"},
                        "result": {"metadata": metadata},
                        "modelId": "copilot/m",
                        "response": [{"kind": "undoStop"}],
                    },
                    {"message": {"text": "and"}, "response": [{"value": "a"}, {"value": "b"}]},
                ],
            }
        )
    )
    assert (item.kind, item.format, item.model) == ("copilot", "openai-chat", "m")
    assert [message["role"] for message in item.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert item.messages[0]["content"] == "<context/>go"
    assert item.messages[1]["tool_calls"][0]["function"] == {"name": "grep", "arguments": '{"q":1}'}
    assert item.messages[2]["content"] == "onetwo\nplain"
    assert item.messages[-1]["content"] == "ab"
    assert item.notes == ("1 × call without a result, kept open", "1 × part of type undoStop, drawn on the screen")


def test_a_droid_session():
    use = {"type": "tool_use", "id": "c1", "name": "Read", "input": {}}
    (item,) = read(
        lines(
            {"type": "session_start", "id": "s"},
            {"type": "message", "message": {"role": "user", "content": "go"}},
            {"type": "message", "message": {"role": "assistant", "content": [use]}},
            {"type": "todo_state"},
            {
                "type": "message",
                "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]},
            },
        )
    )
    assert (item.kind, item.format, len(item.messages)) == ("droid", "anthropic", 3)
    assert item.notes == ("1 × line of type session_start (line 1)", "1 × line of type todo_state (line 4)")


def test_a_cursor_transcript_keeps_calls_without_ids():
    (item,) = read(
        lines(
            {"role": "user", "message": {"content": [{"type": "text", "text": "go"}]}},
            {
                "role": "assistant",
                "message": {
                    "content": [{"type": "text", "text": "ok"}, {"type": "tool_use", "name": "Read", "input": {"p": 1}}]
                },
            },
            {"role": "user", "message": {"content": "more"}},
            {"role": "assistant", "message": {"content": [{"type": "mystery"}]}},
        )
    )
    assert (item.kind, item.format) == ("cursor", "gemini")
    assert item.messages == [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"text": "ok"}, {"functionCall": {"name": "Read", "args": {"p": 1}}}]},
        {"role": "user", "parts": [{"text": "more"}]},
    ]
    assert item.notes == (
        "1 × call whose result the file does not keep, kept open (line 2)",
        "1 × block of type mystery (line 4)",
    )


def test_a_windsurf_trajectory():
    (item,) = read(
        lines(
            {"type": "user_input", "status": "done", "user_input": {"user_response": "go"}},
            {"type": "planner_response", "status": "done", "planner_response": {"response": "looking"}},
            {"type": "view_file", "status": "done", "view_file": {"path": "a", "content": "text"}},
            {"type": "run_command", "status": "error", "run_command": {"command": "ls", "output": "x", "exit_code": 1}},
            {"type": "other", "status": "done"},
        )
    )
    assert (item.kind, item.format) == ("windsurf", "gemini")
    assert item.messages[1:] == [
        {
            "role": "model",
            "parts": [{"text": "looking"}, {"functionCall": {"name": "view_file", "args": {"path": "a"}}}],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "view_file", "response": {"status": "done", "content": "text"}}}],
        },
        {"role": "model", "parts": [{"functionCall": {"name": "run_command", "args": {"command": "ls"}}}]},
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "run_command",
                        "response": {"status": "error", "output": "x", "exit_code": 1},
                    }
                }
            ],
        },
    ]
    assert item.notes == ("1 × line of type other (line 5)",)


def test_a_condensed_session_of_entire():
    def line(kind, *blocks, **more):
        return {"v": 1, "agent": "claude-code", "type": kind, "content": list(blocks), **more}

    def use(id, **more):
        return {"type": "tool_use", "id": id, "name": "Read", "input": {}, **more}

    (item,) = read(
        lines(
            line("user", {"id": "x", "text": "go"}),
            line("assistant", use("c1", result={"output": "one", "status": "success"}), id="m1", input_tokens=2),
            line("assistant", use("c2", result={"output": "no", "status": "error"}), use("c3"), id="m1"),
            line("assistant", {"type": "text", "text": "done"}, id="m2"),
            line("note"),
        )
    )
    assert (item.kind, item.format, item.usage) == ("entire-compact", "anthropic", ())
    assert item.messages == [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [use("c1"), use("c2"), use("c3")]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]
    assert item.notes == (
        "1 × token figure that leaves the cache out (line 2)",
        "1 × call without a result, kept open (line 3)",
        "1 × line of type note (line 5)",
    )


def test_a_letta_agent_file():
    messages = [
        {"id": "m0", "role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"id": "m1", "role": "assistant", "content": None, "tool_calls": [{"id": "c1"}, {"id": "c2"}]},
        {
            "id": "m2",
            "role": "tool",
            "content": None,
            "tool_returns": [{"tool_call_id": "c1", "func_response": "1"}, {"tool_call_id": "c2", "stdout": "2"}],
        },
        {"id": "m3", "role": "tool", "content": "x", "tool_call_id": "c3"},
        {"id": "m4", "role": "approval"},
    ]
    agent = {
        "name": "void", "messages": messages, "tool_ids": ["t0", "t9"], "in_context_message_ids": ["m0", "m1", "m2"],
        "llm_config": {"model": "g", "context_window": 80},
    }  # fmt: skip
    (item,) = read(raw({"agents": [agent], "tools": [{"id": "t0", "json_schema": {"name": "post"}}], "blocks": [{}]}))
    assert (item.kind, item.name, item.model, item.window) == ("letta", "void", "g", 80)
    assert item.tools == [{"type": "function", "function": {"name": "post"}}]
    assert item.messages[0] == {"role": "system", "content": "a\nb"}
    assert item.messages[2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
        {"role": "tool", "content": "x", "tool_call_id": "c3"},
    ]
    assert item.notes == (
        "1 × entry of `blocks`, which is stored beside the messages",
        "1 × message the agent no longer had in context, kept",
        "1 × message of role approval",
    )


def test_a_fast_agent_history():
    calls = {"c1": {"method": "tools/call", "params": {"name": "get", "arguments": {"a": 1}}}}
    result = {"content": [{"type": "text", "text": "x"}, {"type": "image", "data": "QQ==", "mimeType": "image/png"}]}
    reasoning = {"reasoning": [{"type": "text", "text": "hm"}], "timing": []}
    (item,) = read(
        raw(
            {
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "go"}], "is_template": False},
                    {"role": "assistant", "content": [], "tool_calls": calls, "channels": reasoning},
                    {
                        "role": "user",
                        "content": [{"type": "resource", "resource": {"text": "r"}}],
                        "tool_results": {"c1": result},
                    },
                    {"role": "assistant", "content": []},
                ]
            }
        )
    )
    call = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"a": 1}'}}
    assert item.kind == "fast-agent"
    assert item.messages[1] == {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"}
    assert item.messages[2]["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}
    assert item.messages[3] == {"role": "user", "content": [{"type": "text", "text": "r"}]}
    assert item.notes == ("1 × channel timing", "1 × message of role assistant without content")


def test_the_state_of_a_langgraph_thread():
    usage = {"input_tokens": 90, "output_tokens": 3, "input_token_details": {"cache_read": 50, "cache_creation": 7}}
    messages = [
        {"type": "human", "content": [{"type": "text", "text": "go"}]},
        {
            "type": "ai", "content": [{"type": "text", "text": "ok"}, {"type": "tool_use", "id": "c1"}],
            "tool_calls": [{"name": "get", "args": {"a": 1}, "id": "c1"}], "usage_metadata": usage,
            "additional_kwargs": {"reasoning_content": "hm"}, "response_metadata": {"model_name": "m"},
        },
        {"type": "tool", "content": "x", "tool_call_id": "c1"},
        {"type": "remove", "content": ""},
    ]  # fmt: skip
    (item,) = read(raw({"values": {"messages": messages, "title": "t"}}))
    call = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"a": 1}'}}
    assert (item.kind, item.format, item.model) == ("langgraph", "openai-chat", "m")
    assert item.messages[1:] == [
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "ok"}],
            "tool_calls": [call],
            "reasoning_content": "hm",
        },
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ]
    assert [(u.covers, u.prompt, u.completion, u.cache_read, u.cache_write) for u in item.usage] == [(1, 90, 3, 50, 7)]
    assert item.notes == ("1 × message of type remove",)


def test_dumped_langchain_objects_and_the_older_form_are_the_same_messages():
    dumped = [{"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "go"}}]
    older = [{"type": "human", "data": {"content": "go"}}]
    for value in (dumped, older):
        assert read(raw(value))[0].messages == [{"role": "user", "content": "go"}]


PATCH = "*** Begin Patch\n*** Add File: plan.md\n+# Plan\n*** End Patch"


def test_a_copilot_cli_session():
    (item,) = read(
        lines(
            {"type": "session.start", "data": {"sessionId": "s", "selectedModel": "m"}},
            {"type": "user.message", "data": {"content": "go", "transformedContent": "<date/>go"}},
            {
                "type": "assistant.message",
                "data": {
                    "content": "",
                    "reasoningText": "hm",
                    "toolRequests": [
                        {"toolCallId": "c1", "name": "view", "arguments": {"p": 1}},
                        {"toolCallId": "c2", "name": "bash", "arguments": "{}"},
                        {"toolCallId": "c3", "name": "apply_patch", "arguments": PATCH},
                    ],
                },
            },
            {"type": "tool.execution_start", "data": {"toolCallId": "c1"}},
            {"type": "tool.execution_complete", "data": {"toolCallId": "c1", "result": {"content": "text"}}},
            {"type": "tool.execution_complete", "data": {"toolCallId": "c2", "error": {"message": "no"}}},
            {"type": "tool.execution_complete", "data": {"toolCallId": "c3", "result": {"content": "Added 1 file"}}},
            {"type": "session.compaction_complete", "data": {}},
            {"type": "session.usage_record", "data": {"usage": {"inputTokens": 9, "interactionType": "title"}}},
            {
                "type": "session.usage_record",
                "data": {"usage": {"inputTokens": 90, "outputTokens": 3, "cacheReadTokens": 50}},
            },
            {"type": "assistant.message", "data": {"content": "done"}},
        )
    )
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "view", "arguments": '{"p": 1}'}},
        {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
        {"id": "c3", "type": "custom", "custom": {"name": "apply_patch", "input": PATCH}},
    ]
    assert (item.kind, item.model, item.boundaries) == ("copilot-cli", "m", (5,))
    assert [(u.covers, u.prompt, u.completion, u.cache_read) for u in item.usage] == [(5, 90, 3, 50)]
    assert violations(item.messages, format=item.format) == ()
    assert item.messages == [
        {"role": "user", "content": "<date/>go"},
        {"role": "assistant", "content": None, "tool_calls": calls, "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "c1", "content": "text"},
        {"role": "tool", "tool_call_id": "c2", "content": "no"},
        {"role": "tool", "tool_call_id": "c3", "content": "Added 1 file"},
        {"role": "assistant", "content": "done"},
    ]
    assert "1 × line of type tool.execution_start (line 4)" in item.notes


def test_a_copilot_session_of_changes_is_the_session_after_the_last_of_them():
    (item,) = read(
        lines(
            {"kind": 0, "v": {"responderUsername": "GitHub Copilot", "requests": []}},
            {
                "kind": 2,
                "k": ["requests"],
                "v": [{"message": {"text": "go"}, "response": [{"value": "a"}], "draft": 1}],
            },
            {"kind": 1, "k": ["requests", 0, "message", "text"], "v": "go on"},
            {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "b"}], "i": 0},
            {"kind": 3, "k": ["requests", 0, "draft"]},
        )
    )
    assert item.messages == [{"role": "user", "content": "go on"}, {"role": "assistant", "content": "b"}]


def test_an_older_letta_file_is_one_agent_with_its_tools():
    agent = {
        "name": "old", "agent_type": "memgpt_agent", "llm_config": {"model": "m", "context_window": 32},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "tools": [{"id": "t", "json_schema": {"name": "post"}}],
    }  # fmt: skip
    (item,) = read(raw(agent))
    assert (item.kind, item.name, item.window) == ("letta", "old", 32)
    assert item.tools == [{"type": "function", "function": {"name": "post"}}]
