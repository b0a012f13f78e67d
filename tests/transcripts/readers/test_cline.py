import json

import refold
from refold.transcripts import read

TASK = [{"type": "text", "text": "<task>\nMend it\n</task>"}, {"type": "text", "text": "<environment_details>\n"}]
SENT = [
    {"role": "user", "content": TASK, "ts": 1},
    {"role": "assistant", "content": [{"type": "text", "text": "<read_file><path>a.py</path></read_file>"}]},
    {"role": "user", "content": [{"type": "text", "text": "[read_file for 'a.py'] Result:\nx = 1"}]},
]
SHOWN = [
    {"ts": 1, "type": "say", "say": "task", "text": "Mend it"},
    {"ts": 2, "type": "say", "say": "api_req_started", "text": json.dumps(
        {"request": "…", "tokensIn": 100, "tokensOut": 20, "cacheWrites": 5, "cacheReads": 7}
    )},
    {"ts": 3, "type": "say", "say": "text", "text": "I look at it."},
    {"ts": 4, "type": "ask", "ask": "tool", "text": '{"tool": "readFile", "path": "a.py"}'},
    {"ts": 5, "type": "say", "say": "checkpoint_created"},
]  # fmt: skip
SESSION = {
    "version": 1, "agent": "lead", "sessionId": "s", "messages": [
        {"id": "1", "role": "user", "content": [{"type": "text", "text": "go"}], "ts": 1},
        {
            "id": "2", "role": "assistant", "ts": 2, "modelInfo": {"id": "m", "provider": "p"},
            "content": [{"type": "tool_use", "id": name, "name": "read_files", "input": {}} for name in ("a", "b")],
            "metrics": {"inputTokens": 100, "outputTokens": 5, "cacheReadTokens": 60, "cacheWriteTokens": 0},
        },
        {"id": "3", "role": "user", "ts": 3, "content": [
            {"type": "tool_result", "tool_use_id": "a", "name": "read_files", "content": [
                {"query": "x", "result": "ä", "success": True}
            ]},
        ]},
        {"id": "4", "role": "user", "ts": 4, "content": [
            {"type": "tool_result", "tool_use_id": "b", "name": "read_files", "content": [
                {"query": "y", "result": "", "success": False}
            ]},
        ]},
        {"id": "5", "role": "assistant", "ts": 5, "content": "done"},
    ],
}  # fmt: skip


def test_the_messages_of_a_task_are_anthropics_without_clines_own_fields():
    (found,) = read(json.dumps(SENT).encode())
    assert (found.kind, found.format) == ("cline", "anthropic")
    assert found.messages == [{"role": "user", "content": TASK}, *SENT[1:]]
    assert refold.violations(found.messages, format=found.format) == ()


def test_what_the_screen_shows_is_a_conversation_in_words_with_its_reports():
    (found,) = read(json.dumps(SHOWN).encode())
    assert found.kind == "cline"
    assert [message["role"] for message in found.messages] == ["user", "assistant", "assistant"]
    (report,) = found.usage
    assert (report.covers, report.prompt, report.completion, report.cache_read) == (1, 112, 20, 7)


def test_a_tasks_folder_is_read_by_the_messages_in_it(tmp_path):
    (tmp_path / "api_conversation_history.json").write_text(json.dumps(SENT))
    (tmp_path / "ui_messages.json").write_text(json.dumps(SHOWN))
    (found,) = read(tmp_path)
    assert found.messages[0]["content"] == TASK


def test_a_session_of_the_command_line_has_its_results_as_they_are_sent_and_the_usage_of_each_call():
    (found,) = read(json.dumps(SESSION).encode())
    assert (found.kind, found.format, found.model) == ("cline", "anthropic", "m")
    assert [message["role"] for message in found.messages] == ["user", "assistant", "user", "assistant"]
    assert found.messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": '[{"query":"x","result":"ä","success":true}]'},
        {
            "type": "tool_result", "tool_use_id": "b", "content": '[{"query":"y","result":"","success":false}]',
            "is_error": True,
        },
    ]  # fmt: skip
    (report,) = found.usage
    assert (report.covers, report.prompt, report.completion, report.cache_read) == (1, 100, 5, 60)
    assert refold.violations(found.messages, format=found.format) == ()
