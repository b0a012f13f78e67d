"""Our own recorded sessions: what a reader finds in them against what the provider saw when they were recorded."""

import json

import pytest

import refold
from refold import formats
from refold.core.messages import ToolCall, ToolResult
from refold.transcripts import detect, kinds, read
from refold.transcripts._reading import _matches, _readers
from refold.transcripts._source import load
from tests.shared import MANIFEST, OWN, SESSIONS
from tools.recording.scrub import leaks

# file: for each conversation its messages, usage reports and boundaries
FOUND = {
    "claude-code/session.jsonl": [(20, 7, (12,))],
    "claude-code/subagent.jsonl": [(4, 2, ())],
    "cline/session.messages.json": [(10, 5, ())],
    "codex/rollout.jsonl": [(22, 7, (20,))],
    "codex-exec/exec.jsonl": [(17, 0, ())],
    "continue-cli/session.json": [(14, 6, ())],
    "copilot-cli/events.jsonl": [(16, 6, (13,))],
    "gemini-cli/session.jsonl": [(11, 5, ())],
    "gemini-cli-stream/stream.jsonl": [(10, 0, ())],
    "http-recording/exchanges.json": [(2, 1, ()), (2, 0, ())],
    "langgraph/thread.json": [(14, 6, ())],
    "litellm/calls.jsonl": [(2, 1, ()), (5, 1, ()), (7, 1, ()), (9, 1, ()), (12, 1, ())],
    "mini-swe-agent/session.traj.json": [(14, 5, ())],
    "opencode/session.json": [(14, 7, (11,))],
    "pi/session.jsonl": [(12, 6, (10,))],
    "recorded-stream/events.jsonl": [(3, 1, ())],
    "request-log/traffic.har": [(2, 1, ()), (4, 1, ()), (6, 1, ()), (8, 1, ()), (10, 1, ())],
}
LARGEST_FILE, LARGEST_FOLDER = 60_000, 600_000

each_file = pytest.mark.parametrize("path", OWN, ids=lambda path: path.relative_to(SESSIONS).as_posix())
each_agent = pytest.mark.parametrize("agent", MANIFEST)


def parts(messages, format):
    return [part for message in formats.read(formats.find(format), messages).messages for part in message.parts]


def sessions(agent):
    return [item for name in MANIFEST[agent]["files"] for item in read(SESSIONS / agent / name)]


def test_the_files_in_the_folder_are_those_of_the_manifest():
    files = {path.relative_to(SESSIONS).as_posix() for path in SESSIONS.rglob("*") if path.is_file()}
    assert files == {*FOUND, "MANIFEST.json", "README.md"}
    assert set(FOUND) == {path.relative_to(SESSIONS).as_posix() for path in OWN}


def test_the_readme_says_of_every_kind_whether_it_is_recorded():
    recorded = {entry["kind"] for entry in MANIFEST.values()}
    text = (SESSIONS / "README.md").read_text(encoding="utf-8")
    missing = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `")}
    assert missing == set(kinds()) - recorded


@each_file
def test_a_file_is_small_and_says_nothing_of_the_machine_it_was_recorded_on(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < LARGEST_FILE
    assert leaks(text, ["recording-"]) == []


def test_all_files_together_are_small():
    assert sum(path.stat().st_size for path in SESSIONS.rglob("*") if path.is_file()) < LARGEST_FOLDER


@each_file
def test_a_file_is_read_as_the_kind_it_was_recorded_as_and_no_other(path):
    claims = [kind for kind, reader in _readers().items() if kind != "plain" and _matches(reader, load(path))]
    assert claims == [MANIFEST[path.parent.name]["kind"]]
    assert detect(path) == claims[0]


@each_file
def test_every_message_report_and_boundary_is_found(path):
    found = read(path)
    assert [(len(item.messages), len(item.usage), item.boundaries) for item in found] == FOUND[
        path.relative_to(SESSIONS).as_posix()
    ]
    assert all(0 <= report.covers <= len(item.messages) for item in found for report in item.usage)


@each_file
def test_no_provider_would_refuse_what_was_read(path):
    for item in read(path):
        assert refold.violations(item.messages, format=item.format) == ()
        assert formats.detect(item.messages).name == item.format


@each_agent
def test_every_report_has_the_figures_that_the_provider_gave(agent):
    provided = [(request["tokens"], request["cached"]) for request in MANIFEST[agent]["requests"]]
    for item in sessions(agent):
        rest = iter(provided)
        assert all((report.prompt, report.cache_read) in rest for report in item.usage)


@each_agent
def test_every_call_of_the_model_is_found_once_with_its_arguments_in_order(agent):
    scripted = [call for request in MANIFEST[agent]["requests"] for call in request["calls"]]
    found = [part for item in sessions(agent) for part in parts(item.messages, item.format)]
    calls = {part.call_id: part for part in found if isinstance(part, ToolCall)}
    assert [call.name for call in calls.values()] == [name for name, _ in scripted]
    for call, (_, arguments) in zip(calls.values(), scripted, strict=True):
        assert arguments.items() <= json.loads(call.arguments).items()  # an agent may write defaults beside them


@each_agent
def test_every_call_has_one_result_unless_the_conversation_ends_with_it(agent):
    for item in sessions(agent):
        *_, last = formats.read(formats.find(item.format), item.messages).messages
        if any(isinstance(part, ToolCall) for part in last.parts):
            continue
        found = parts(item.messages, item.format)
        calls = sorted(part.call_id for part in found if isinstance(part, ToolCall))
        assert calls == sorted(part.call_id for part in found if isinstance(part, ToolResult))
