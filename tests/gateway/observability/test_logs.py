import json
import re

import pytest

from refold._gateway.observability import logs
from tests.gateway.native.upstream import anthropic_turns
from tests.gateway.scripted_upstream import call, chat

SECRET = "sk-" + "proj-AbCd1234EfGh5678IjKl9012"


@pytest.fixture
def log(capsys):
    """Returns a function that starts the log and returns a function that reads its lines."""
    before, propagate, level = list(logs.LOG.handlers), logs.LOG.propagate, logs.LOG.level

    def started(level="info", form="json"):
        logs.start_log(level, form)

        def read():
            return capsys.readouterr().err.splitlines()

        return read

    yield started
    logs.LOG.handlers[:], logs.LOG.propagate = before, propagate
    logs.LOG.setLevel(level)


def test_a_request_is_one_line_of_json_with_what_was_done_and_no_text(gateway, log):
    lines = log()
    serving, _ = gateway(["fine"], window=16_000, background=False)
    call(serving.url, body=chat(9), headers={"authorization": f"Bearer {SECRET}"})
    serving.stop()
    written = lines()
    events = [json.loads(line) for line in written]
    compaction, request = [event for event in events if event["event"] in ("compaction", "request")]
    assert compaction["after"] < compaction["before"]
    assert request["level"] == "info"
    assert (request["status"], request["done"], request["model"]) == (200, "compacted", "gpt-4o")
    assert request["plans"] == 1
    assert request["input_tokens"] > 0
    assert 0 < request["seconds"] < 60
    whole = "\n".join(written)
    assert SECRET not in whole
    assert "word" not in whole


def test_a_request_without_a_conversation_is_a_line_too(gateway, log):
    lines = log()
    serving, _ = gateway(["fine"])
    call(serving.url, method="GET", path="/v1/models")
    call(serving.url, path="/v1/threads/nothing-such", body={})
    serving.stop()
    found = [line for line in map(json.loads, lines()) if line["event"] == "request"]
    assert [(line["status"], line["done"]) for line in found] == [(200, "forwarded"), (404, "forwarded")]


@pytest.mark.parametrize(("more", "asked"), [
    ({"compaction": {"type": "summarize"}}, "compaction"),
    ({"context_management": {"edits": [{"type": "compact_20260112"}]}}, "threshold"),
    ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "edits"),
    ({}, None),
])  # fmt: skip
def test_a_line_tells_what_was_asked_of_the_provider_s_own_compaction(gateway, log, more, asked):
    lines = log()
    serving, _ = gateway(["fine"])
    messages = [{"role": "user", "content": "Look."}, *anthropic_turns(0, 12)]
    body = {"model": "claude-opus-4-8", "max_tokens": 99, "messages": messages, **more}
    status, _, _ = call(serving.url, path="/v1/messages", body=body)
    serving.stop()
    (request,) = [line for line in map(json.loads, lines()) if line["event"] == "request"]
    assert (request["status"], status) == (200, 200)
    assert request.get("native") == asked


def test_errors_of_the_gateway_are_logged_by_their_code_at_the_default_level(gateway, log):
    lines = log("warning")
    serving, _ = gateway(["fine"], max_body=9_000)
    call(serving.url, body=chat(1))
    status, _, _ = call(serving.url, body=chat(9))
    serving.stop()
    assert status == 413
    (line,) = lines()
    assert json.loads(line).items() >= {"level": "warning", "event": "refused", "code": "request_too_large"}.items()


def test_a_line_stays_one_line_whatever_a_client_sends(gateway, log):
    lines = log("info", "text")
    serving, _ = gateway(["fine"])
    body = chat(1)
    body["model"] = "m\n2026-01-01T00:00:00 error forged\x1b[2J"
    call(serving.url, body=body, headers={"x-refold-bypass": "0"})
    serving.stop()
    (line,) = [line for line in lines() if " request " in line]
    assert re.match(r"20\d\d-\d\d-\d\dT[\d:.+]+ info request ", line)
    assert "forged" not in line or "\\n2026" in line
    assert "\x1b" not in line


def test_a_bug_is_logged_by_its_kind_and_place_without_its_words(log):
    lines = log("error")
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        logs.log_bug(error)
    (line,) = lines()
    assert json.loads(line).items() >= {"event": "internal error", "kind": "ValueError"}.items()
    assert "test_logs.py:" in line
    assert SECRET not in line


def test_nothing_is_logged_where_the_log_is_off(gateway, log):
    lines = log("off")
    serving, _ = gateway(["fine"], max_body=9_000)
    call(serving.url, body=chat(9))
    serving.stop()
    assert lines() == []


@pytest.mark.parametrize("form", ["text", "json"])
def test_half_a_surrogate_pair_in_the_name_of_a_model_is_written_escaped(gateway, log, form):
    lines = log(form=form)
    serving, _ = gateway(["fine"])
    body = json.dumps(chat(1, model="m\ud800")).encode()
    call(serving.url, body=body, headers={"content-type": "application/json"})
    serving.stop()
    written = lines()
    assert [line for line in written if "ud800" in line]
    assert not [line for line in written if "Traceback" in line]
