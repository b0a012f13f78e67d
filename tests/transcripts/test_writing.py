"""Compactions written into session files: read back, and held against what the agents themselves write."""

import json
from datetime import UTC, datetime

import pytest

import refold
from refold import transcripts
from refold.errors import UnreadableTranscript, UsageError
from tests.shared import SESSIONS
from tests.transcripts.blocks import in_blocks

FILES = {"claude-code": "session.jsonl", "codex": "rollout.jsonl", "pi": "session.jsonl"}
AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
GOAL = 300  # tokens, of about 600 to 1,200


def source(kind):
    return (SESSIONS / kind / FILES[kind]).read_bytes()


def rows(content):
    return [json.loads(line) for line in content.splitlines()]


def compacted(content, goal=GOAL):
    recorded = transcripts.continued(content)
    return refold.compact(
        recorded.messages, format=recorded.format, system=recorded.system, window=200_000, goal=goal, force=True
    )


def written(content, result):
    return transcripts.with_compaction(
        content, result.messages, plan=result.plan.id, before=result.sizes.before, after=result.sizes.after, at=AT
    )


@pytest.fixture(params=FILES)
def kind(request):
    return request.param


@pytest.fixture
def result(kind):
    return compacted(source(kind))


@pytest.fixture
def content(kind, result):
    return written(source(kind), result)


def new_rows(kind, content):
    return rows(content[len(source(kind)) :])


def test_all_that_was_in_the_file_stays_and_the_new_lines_follow(kind, content):
    assert content.startswith(source(kind))
    assert content.endswith(b"\n")
    assert new_rows(kind, content)


@pytest.mark.parametrize("kind", ["claude-code", "pi"], indirect=True)
def test_the_written_file_is_read_back_as_the_compacted_conversation(content, result):
    again = transcripts.continued(content)
    assert result.sizes.after < result.sizes.before
    assert in_blocks(again.messages) == in_blocks(result.messages)
    assert not refold.violations(again.messages, format=again.format)


def test_codex_gets_the_compacted_items_as_a_replacement_history_in_its_own_shape():
    result = compacted(source("codex"))
    line = next(row for row in new_rows("codex", written(source("codex"), result)) if row["type"] == "compacted")
    history = line["payload"]["replacement_history"]
    assert len(history) == len(result.messages)
    for item, message in zip(history, result.messages, strict=True):
        assert item["type"] == message.get("type", "message")
        if item["type"] == "message":
            said = message["content"]
            assert isinstance(item["content"], list)  # a string there makes the client pass over the line
            assert [block["text"] for block in item["content"]] == (
                [said] if isinstance(said, str) else [block["text"] for block in said]
            )
        else:
            assert {name: item[name] for name in message} == message


def test_no_new_line_has_a_field_that_the_agent_does_not_write_itself(kind, content):
    ours = {"claude-code": {"refold"}, "codex": set(), "pi": set()}[kind]
    known = {(where, name) for where, name in fields(rows(source(kind)))}
    foreign = {(where, name) for where, name in fields(new_rows(kind, content))} - known
    assert {name for _, name in foreign} <= ours, foreign


def fields(values):
    """The names of fields of lines and of what is inside of them, each with the kind of line; not those of arguments."""
    for row in values:
        where = f"{row.get('type')}/{row.get('subtype') or ''}"
        for name, value in row.items():
            yield where, name
            if name in ("message", "payload", "compactMetadata") and isinstance(value, dict):
                yield from ((f"{where}/{value.get('role') or value.get('type')}", inner) for inner in value)


def test_the_lines_of_claude_code_are_a_chain_from_the_boundary_to_the_end():
    result = compacted(source("claude-code"))
    boundary, *lines = new_rows("claude-code", written(source("claude-code"), result))
    assert boundary["subtype"] == "compact_boundary"
    assert boundary["parentUuid"] is None
    assert boundary["logicalParentUuid"] in {row.get("uuid") for row in rows(source("claude-code"))}
    chain = [boundary, *(line for line in lines if "uuid" in line)]
    assert [line["parentUuid"] for line in chain[1:]] == [line["uuid"] for line in chain[:-1]]
    assert len({line["uuid"] for line in chain}) == len(chain)
    assert [line["timestamp"] for line in chain] == sorted(line["timestamp"] for line in chain)
    assert {line["sessionId"] for line in lines} == {boundary["sessionId"]}
    assert lines[-1]["leafUuid"] == chain[-1]["uuid"]  # by which it finds where to go on
    assert boundary["compactMetadata"]["postTokens"] == result.sizes.after


def test_a_result_that_stays_keeps_what_claude_code_shows_of_it_and_one_that_was_shortened_does_not():
    whole = source("claude-code")
    messages = transcripts.read(whole)[0].messages
    shortened = json.loads(json.dumps(messages))
    shortened[2]["content"][0]["content"] = "[shortened]"
    content = transcripts.with_compaction(whole, shortened, plan="p", before=2, after=1, at=AT)
    shown = [line for line in new_rows("claude-code", content) if "toolUseResult" in line]
    kept = {line["message"]["content"][0]["tool_use_id"] for line in shown}
    results = [block for each in messages for block in each["content"] if "tool_use_id" in block]
    ids = [block["tool_use_id"] for block in results if isinstance(block, dict)]
    assert kept == set(ids) - {messages[2]["content"][0]["tool_use_id"]}


def test_the_entries_of_pi_are_a_branch_from_where_the_conversation_began():
    content = written(source("pi"), compacted(source("pi")))
    entries = new_rows("pi", content)
    before = {row["id"]: row for row in rows(source("pi")) if "parentId" in row}
    assert before[entries[0]["parentId"]]["type"] == "thinking_level_change"  # the last of the settings at the start
    assert [entry["parentId"] for entry in entries[1:]] == [entry["id"] for entry in entries[:-1]]
    assert not {entry["id"] for entry in entries} & set(before)
    spent = [entry["message"]["usage"]["cost"]["total"] for entry in entries if "usage" in entry["message"]]
    assert set(spent) == {0}  # what was paid is counted where it was paid


def test_what_an_extension_of_pi_said_first_is_on_the_new_branch_once():
    before = rows(source("pi"))
    at = next(at for at, row in enumerate(before) if row["type"] == "message")
    said = {
        "type": "custom_message",
        "id": "aaaaaaaa",
        "parentId": before[at]["parentId"],
        "content": "Lint a.md first.",
    }
    before[at : at + 1] = [said, {**before[at], "parentId": said["id"]}]
    content = b"".join(json.dumps(row).encode() + b"\n" for row in before)
    (again,) = transcripts.read(written(content, compacted(content)))
    assert json.dumps(again.messages).count("Lint a.md first.") == 1


def test_a_setting_that_was_changed_later_is_in_force_on_the_new_branch_of_pi():
    changed = {"type": "thinking_level_change", "id": "aaaaaaaa", "parentId": "67c2f0cd", "thinkingLevel": "high"}
    content = source("pi") + json.dumps({**changed, "timestamp": "2026-11-28T19:15:00.000Z"}).encode() + b"\n"
    first, second, *_ = rows(written(content, compacted(content))[len(content) :])
    assert first["thinkingLevel"] == "high"
    assert second["parentId"] == first["id"]


def test_what_stays_keeps_the_fields_of_the_agents_own(kind):
    whole = source(kind)
    recorded = transcripts.continued(whole)
    content = transcripts.with_compaction(whole, recorded.messages, plan="p", before=1, after=1, at=AT)
    new = new_rows(kind, content)
    if kind == "codex":
        history = new[0]["payload"]["replacement_history"]
        assert history == [row["payload"] for row in rows(whole) if row["type"] == "response_item"]
    elif kind == "pi":
        speaking = [row["message"] for row in rows(whole) if row["type"] == "message"]
        without = [{**message, "usage": None} if "usage" in message else message for message in speaking]
        assert [{**m, "usage": None} if "usage" in m else m for m in (row["message"] for row in new)] == without
    else:
        assert in_blocks(transcripts.continued(content).messages) == in_blocks(recorded.messages)


def test_the_agent_is_told_the_new_size(kind, content, result):
    after = result.sizes.after
    new = new_rows(kind, content)
    if kind == "codex":
        assert new[-1]["payload"]["info"]["last_token_usage"]["total_tokens"] == after
        return
    usages = [row["message"]["usage"] for row in new if "usage" in mapping(row.get("message"))]
    name = "input_tokens" if kind == "claude-code" else "totalTokens"
    assert usages[-1][name] == after
    assert not any(usage[name] for usage in usages[:-1])


def test_the_new_size_is_no_call_that_was_billed(kind, content):
    calls = {"claude-code": 7, "codex": 7, "pi": 6}[kind]
    assert len(transcripts.read(source(kind))[0].usage) == calls
    billed = transcripts.read(content)[0].usage
    assert len(billed) == (0 if kind == "pi" else calls)  # of which the new branch has none


def mapping(value):
    return value if isinstance(value, dict) else {}


def test_a_second_compaction_begins_with_what_the_first_left(kind, content, result):
    begins = transcripts.continued(content).messages
    if kind == "codex":  # the items stay what they were, and the history that replaces them is made anew
        assert begins == transcripts.read(source(kind))[0].messages
    else:
        assert in_blocks(begins) == in_blocks(result.messages)
    twice = written(content, compacted(content, goal=GOAL // 2))
    assert twice.startswith(content)
    ids = [row["uuid"] for row in rows(twice) if "uuid" in row] + [
        row["id"] for row in rows(twice) if "parentId" in row
    ]
    assert len(set(ids)) == len(ids)


def test_the_same_compaction_of_the_same_file_is_written_the_same(kind, content, result):
    assert written(source(kind), result) == content


def test_a_kind_that_is_not_written_a_session_without_messages_and_one_without_ids_are_refused():
    with pytest.raises(UnreadableTranscript, match="gemini-cli cannot be written back: claude-code, codex, pi can"):
        transcripts.continued((SESSIONS / "gemini-cli" / "session.jsonl").read_bytes())
    with pytest.raises(UsageError, match="no messages to write"):
        transcripts.with_compaction(source("pi"), [], plan="p", before=1, after=1)
    old = b"".join(
        json.dumps({name: value for name, value in row.items() if name not in ("id", "parentId")}).encode() + b"\n"
        for row in rows(source("pi"))
    )
    with pytest.raises(UnreadableTranscript, match="open it once with pi"):
        written(old, compacted(old))


def test_half_a_surrogate_pair_is_written_as_the_escape_that_it_was(kind):
    at = source(kind).rindex(b'"text":') + len(b'"text":')
    at = source(kind).index(b'"', at) + 1
    damaged = source(kind)[:at] + rb"\ud83d" + source(kind)[at:]
    content = written(damaged, compacted(damaged))
    assert content.startswith(damaged)
    assert rb"\ud83d" in content[len(damaged) :]


@pytest.mark.parametrize("change", [lambda text: text.encode("utf-16"), lambda text: json.dumps(rows(text)).encode()])
def test_a_session_to_which_no_line_can_be_added_is_refused(change):
    other = change(source("claude-code").decode())
    with pytest.raises(UnreadableTranscript, match="no line can be added"):
        transcripts.with_compaction(other, compacted(other).messages, plan="p", before=2, after=1)


def test_the_session_of_a_sub_agent_is_refused():
    content = (SESSIONS / "claude-code" / "subagent.jsonl").read_bytes()
    messages = transcripts.continued(content).messages
    with pytest.raises(UnreadableTranscript, match="does not resume"):
        transcripts.with_compaction(content, messages, plan="p", before=2, after=1)
