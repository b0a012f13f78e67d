"""Other people's recorded files against the list that came with them; collected where there are such files."""

import csv
import json
import re

import pytest

import refold
from refold.errors import UnreadableTranscript
from refold.transcripts import continued, detect, read, with_compaction
from refold.transcripts._reading import _matches, _readers
from refold.transcripts._source import load
from tests.shared import SHARED
from tests.transcripts.blocks import in_blocks

DATA = SHARED / "data"
ROWS = list(csv.DictReader((DATA / "MANIFEST.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t"))

REFUSED = {
    "odd/lemmy/empty.jsonl": "empty",
    "odd/happy/duplicate-assistant-response-2.jsonl": "broken JSON",  # a client's log with objects between its lines
}
# the list of files counts something else than the messages of conversations here
COUNTED_OTHERWISE = {
    "gemini-cli": "a call and its result are one item of the file, the notices for the screen are items",
    "opencode": "a call and its result are one part of an answer, so results are no messages there",
    "openhands": "events",
    "http-recordings": "no request is in the files, so no message was counted",
    "entire-compact": "not counted",
    "openai-responses": "one request; stream items",
}
NOT_COUNTED = {  # files of which the list says 0 or less than there is, because it does not count their shape
    "mini-swe-agent/mini-swe-agent/github_issue.traj.json",
    "mini-swe-agent/mini-swe-agent/local.traj.json",
    "odd/claude-code-transcripts/sample_session.jsonl",  # lines without ids were taken for one answer
    "odd/happy/trace_0.json",  # wrapped lines, some in both directions
    "other-agents/git-ai/continue-cli.json",  # results stand beside the message with the call
    "other-agents/git-ai/copilot_session_simple.json",
    "other-agents/git-ai/windsurf.jsonl",
    "tau-bench/tau-bench/airline-few-shot.jsonl",
}
WRITABLE = ("claude-code", "codex", "pi")
WITHOUT_IDS = {"pi/pi-mono/before-compaction.jsonl", "pi/pi-mono/large-session.jsonl"}
USAGE_OF = ("claude-code", "codex", "pi", "opencode", "gemini-cli", "mini-swe-agent", "litellm-calls")


FILES = [pytest.param(row, id=row["file"]) for row in ROWS]
READ = [pytest.param(row, id=row["file"]) for row in ROWS if row["file"] not in REFUSED]
COUNTED = [
    pytest.param(row, id=row["file"])
    for row in ROWS
    if row["file"] not in {*NOT_COUNTED, *REFUSED} and row["format"] not in COUNTED_OTHERWISE
]


def conversations(row):
    try:
        return read(DATA / row["file"])
    except UnreadableTranscript as error:
        if not re.search(REFUSED.get(row["file"], "never"), str(error)):
            raise
        return []


def as_listed(row, found):
    """The number of messages as the list of files counts them: results of parallel calls one by one, empty answers too."""
    messages = [message for item in found for message in item.messages]
    match row["format"]:
        case "claude-code" | "pi":
            main = found[0]
            empty = sum(int(note.split()[0]) for note in main.notes if "answer without content" in note)
            return sum(map(results_one_by_one, main.messages)) + empty + sum(map(is_command_with_text, main.messages))
        case "anthropic-api" if len(found) > 1:  # answers that were streamed are not counted
            sent = sum(item.usage[0].covers if item.usage else len(item.messages) for item in found)
            whole = sum(b'"body_raw"' not in line for line in (DATA / row["file"]).read_bytes().splitlines())
            return sent + whole
        case _:
            return len(messages)


def is_command_with_text(message):
    """Tell whether a message is a slash command with the text that it stands for: two lines of a session."""
    content = message["content"] if isinstance(message["content"], list) else []
    texts = [block["text"] for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return message["role"] == "user" and len(texts) > 1 and texts[0].startswith(("<command-message>", "<command-name>"))


def results_one_by_one(message):
    content = message["content"] if isinstance(message["content"], list) else []
    return max(1, sum(isinstance(block, dict) and block.get("type") == "tool_result" for block in content))


@pytest.mark.parametrize("row", FILES)
def test_every_recorded_file_is_read_or_refused_with_the_typed_error(row):
    found = conversations(row)
    assert bool(found) == (row["file"] not in REFUSED)
    for item in found:
        assert item.messages
        assert all(isinstance(message, dict) for message in item.messages)
        assert item.format in {"openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"}
        assert all(0 <= report.covers <= len(item.messages) for report in item.usage)
        assert [report.covers for report in item.usage] == sorted(report.covers for report in item.usage)
    assert len({item.name for item in found}) == len(found)


@pytest.mark.parametrize("row", COUNTED)
def test_the_number_of_messages_agrees_with_the_list_of_files(row):
    assert as_listed(row, conversations(row)) == int(row["messages"])


@pytest.mark.parametrize("row", [param for param in FILES if param.values[0]["format"] in USAGE_OF])
def test_the_largest_input_agrees_with_the_list_of_files(row):
    listed = re.search(r"largest input (\d+)", row["notes"])
    found = [report.prompt for item in conversations(row) for report in item.usage]
    assert max(found, default=0) == (int(listed[1]) if listed else 0)


@pytest.mark.parametrize("row", READ)
def test_no_two_kinds_claim_a_file(row):
    document = load(DATA / row["file"])
    claims = [kind for kind, reader in _readers().items() if kind != "plain" and _matches(reader, document)]
    assert len(claims) <= 1
    assert detect(DATA / row["file"]) == (claims or ["plain"])[0]


@pytest.mark.parametrize(
    "row", [param for param in FILES if param.values[0]["format"] in ("claude-code", "pi", "opencode")]
)
def test_every_result_follows_the_answer_that_holds_its_call(row):
    for item in conversations(row):
        for before, message in zip([None, *item.messages], item.messages, strict=False):
            blocks = (
                [block for block in message["content"] if isinstance(block, dict)]
                if isinstance(message["content"], list)
                else []
            )
            results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
            asked = [block.get("id") for block in before["content"]] if results and before else []
            assert set(results) <= set(asked)


def test_a_log_with_objects_between_its_lines_is_read_leniently():
    path = DATA / "odd/happy/duplicate-assistant-response-2.jsonl"
    (item,) = read(path, lenient=True)
    assert item.kind == "claude-code"
    assert any("not JSON, skipped" in note for note in item.notes)
    assert any("repeats an earlier one" in note for note in item.notes)


def smaller_sessions():
    """Sessions of agents whose files can be written back, small enough to be compacted in a moment."""
    for row in ROWS:
        path = DATA / row["file"]
        if row["format"] in WRITABLE and path.stat().st_size < 1_200_000 and row["file"] not in WITHOUT_IDS:
            yield pytest.param(path, id=row["file"])


@pytest.mark.parametrize("path", list(smaller_sessions()))
def test_a_session_that_was_compacted_and_written_back_is_read_as_what_the_compaction_left(path):
    source = path.read_bytes()
    begun = continued(source)
    goal = max(refold.count(begun.messages, format=begun.format) // 3, 1_500)
    result = refold.compact(begun.messages, format=begun.format, window=1_000_000, goal=goal, force=True)
    content = with_compaction(source, result.messages, plan=result.plan.id, before=2, after=1)
    assert content.startswith(source)
    if begun.kind == "codex":
        *_, line = (row for row in map(json.loads, content.splitlines()) if row.get("type") == "compacted")
        assert len(line["payload"]["replacement_history"]) == len(result.messages)
        return
    assert in_blocks(continued(content).messages) == in_blocks(result.messages)
