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
