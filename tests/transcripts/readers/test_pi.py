import json

from refold import violations
from refold.transcripts import read, with_compaction

HEADER = {"type": "session", "id": "s", "cwd": "/w", "version": 3}


def lines(*rows):
    return "\n".join(map(json.dumps, rows)).encode()


def said(role, content, **more):
    return {"type": "message", "message": {"role": role, "content": content, **more}}


def call(id):
    return {"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "a"}}


def answer(*blocks, **more):
    usage = {"input": 10, "output": 2, "cacheRead": 30, "cacheWrite": 4}
    return said("assistant", list(blocks), model="m", usage=usage, **{"stopReason": "toolUse", **more})


def result(id, text, **more):
    return said("toolResult", [{"type": "text", "text": text}], toolCallId=id, toolName="read", **more)


def test_blocks_become_anthropic_ones_and_parallel_results_one_message():
    (item,) = read(
        lines(
            HEADER,
            said("user", [{"type": "text", "text": "go"}, {"type": "image", "data": "QQ==", "mimeType": "image/png"}]),
            answer({"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}, call("c1"), call("c2")),
            result("c1", "one"),
            result("c2", "two", isError=True),
        )
    )
    assert (item.kind, item.format, item.model) == ("pi", "anthropic", "m")
    assert item.messages[0]["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": "QQ=="}
    assert item.messages[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
        {"type": "tool_use", "id": "c2", "name": "read", "input": {"path": "a"}},
    ]
    assert item.messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "one"}]},
        {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "two"}], "is_error": True},
    ]
    assert [(u.covers, u.prompt, u.completion, u.cache_read, u.cache_write) for u in item.usage] == [(1, 44, 2, 30, 4)]


def of_openai():
    """A session with a model of OpenAI: ids of two parts, thinking with a seal of its own, and some that has none."""
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": '{"id":"rs_1","type":"reasoning"}'}
    unsigned = {"type": "thinking", "thinking": "cut off", "thinkingSignature": ""}
    entries = [
        said("user", "go"),
        answer(thinking, call("call_1|fc_1")),
        result("call_1|fc_1", "one"),
        answer(unsigned, {"type": "text", "text": "next"}, call("call_2|fc_2")),
        result("call_2|fc_2", "two"),
        answer({"type": "text", "text": "done"}, stopReason="stop"),
    ]
    tree = [
        {**entry, "id": f"{at:08x}", "parentId": f"{at - 1:08x}" if at else None} for at, entry in enumerate(entries)
    ]
    return lines(HEADER, *tree)


def test_a_session_with_openais_models_is_valid_in_the_format_it_is_read_in():
    (item,) = read(of_openai())
    assert violations(item.messages, format=item.format) == ()
    blocks = [block for message in item.messages[1:] for block in message["content"]]
    assert [block.get("id") or block.get("tool_use_id") for block in blocks if block["type"].startswith("tool")] == [
        "call_1_fc_1",
        "call_1_fc_1",
        "call_2_fc_2",
        "call_2_fc_2",
    ]
    assert [block["thinking"] for block in blocks if block["type"] == "thinking"] == ["hm"]
    assert "1 × answer whose thinking has no signature, kept without it (line 5)" in item.notes


def test_a_compaction_of_it_is_written_back_with_pis_own_ids_and_thinking():
    (item,) = read(of_openai())
    shorter = {**item.messages[4]["content"][0], "content": [{"type": "text", "text": "short"}]}
    answered = item.messages[1]["content"]
    changed = {"role": "assistant", "content": [answered[0], {**answered[1], "input": {"path": "b"}}]}
    messages = [*item.messages[:1], changed, *item.messages[2:4], {"role": "user", "content": [shorter]}]
    new = with_compaction(of_openai(), messages, plan="p", before=9, after=5)
    said = [entry["message"] for entry in map(json.loads, new.splitlines()[7:])]
    before = [entry.get("message") for entry in map(json.loads, of_openai().splitlines())]
    assert said[1]["content"] == [before[2]["content"][0], {**call("call_1|fc_1"), "arguments": {"path": "b"}}]
    assert said[2] == {**before[3], "timestamp": said[2]["timestamp"]}
    assert said[3]["content"] == before[4]["content"]
    assert (said[4]["toolCallId"], said[4]["content"][0]["text"]) == ("call_2|fc_2", "short")


def test_entries_that_are_no_messages_are_counted_and_compactions_marked():
    (item,) = read(
        lines(
            HEADER,
            said("user", "go"),
            answer(stopReason="aborted"),
            {"type": "compaction", "summary": "s", "tokensBefore": 99},
            {"type": "model_change", "modelId": "x"},
            said("bashExecution", None, command="ls", output="a", exitCode=2),
            said("bashExecution", None, command="pwd", output="/", excludeFromContext=True),
            answer(call("c9"), stopReason="error"),
        )
    )
    assert [message["role"] for message in item.messages] == ["user", "user", "assistant"]
    assert "`ls`" in item.messages[1]["content"]
    assert "code 2" in item.messages[1]["content"]
    assert item.boundaries == (1,)
    assert item.notes == (
        "line 4: compacted before message 1 (99 tokens)",
        "1 × line of type session (line 1)",
        "1 × answer without content (aborted) (line 3)",
        "1 × line of type model_change (line 5)",
        "1 × command of the user, kept from the model (line 7)",
        "1 × answer that was cut off (error), kept with its open calls (line 8)",
    )


def test_what_an_extension_says_to_the_model_is_part_of_the_conversation():
    (item,) = read(
        lines(
            HEADER,
            said("user", "go"),
            answer(call("c1")),
            result("c1", "one"),
            {"type": "custom_message", "customType": "lint", "content": "Lint a.md.", "display": True},
            {"type": "custom_message", "customType": "look", "content": [{"type": "text", "text": "Look."}]},
            {"type": "custom", "customType": "state", "data": {"text": "kept from the model"}},
        )
    )
    assert [message["content"] for message in item.messages[3:]] == [
        [{"type": "text", "text": "Lint a.md."}],
        [{"type": "text", "text": "Look."}],
    ]
    assert item.notes == ("1 × line of type session (line 1)", "1 × line of type custom (line 7)")


def test_in_a_tree_the_path_to_the_newest_entry_is_the_conversation():
    def at(row, id, parent):
        return {**row, "id": id, "parentId": parent}

    (item,) = read(
        lines(
            HEADER,
            at(said("user", "one"), "1", None),
            at(said("user", "left"), "2", "1"),
            at(said("user", "two"), "3", "1"),
        )
    )
    assert [message["content"] for message in item.messages] == ["one", "two"]
    assert "1 × entry on a branch that was left (line 3)" in item.notes
