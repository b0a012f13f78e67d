import json

import pytest

from refold import formats
from refold.core._speakers import words_of_user
from refold.transcripts import detect, read


def lines(*rows):
    return "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows).encode()


def said(role, content, uuid, parent=None, **more):
    message = {"role": role, "content": content}
    for key in ("id", "usage", "model"):
        if key in more:
            message[key] = more.pop(key)
    return {"type": role, "uuid": uuid, "parentUuid": parent, "isSidechain": False, "message": message, **more}


def use(id):
    return {"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "a.py"}}


def result(id, text="ok"):
    return {"type": "tool_result", "tool_use_id": id, "content": text}


def usage(fresh, read=0, written=0, out=1):
    return {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": out,
    }


def test_an_answer_in_several_lines_is_one_message_and_parallel_results_are_one_after_it():
    (item,) = read(
        lines(
            said("user", "look", "u1"),
            said("assistant", [{"type": "text", "text": "two files"}], "a1", "u1", id="m1", usage=usage(5, 90, 5)),
            said("assistant", [use("c1")], "a2", "a1", id="m1", usage=usage(5, 90, 5, 40)),
            said("user", [result("c1")], "r1", "a2", toolUseResult={"stdout": "ok"}),
            said("assistant", [use("c2")], "a3", "a2", id="m1", usage=usage(5, 90, 5, 70)),
            said("user", [result("c2", "two")], "r2", "a3"),
            said(
                "assistant", [{"type": "text", "text": "done"}], "a4", "r2", id="m2", model="claude-x", usage=usage(200)
            ),
        )
    )
    assert (item.kind, item.format, item.name, item.model) == ("claude-code", "anthropic", "main", "claude-x")
    assert item.messages == [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [{"type": "text", "text": "two files"}, use("c1"), use("c2")]},
        {"role": "user", "content": [result("c1"), result("c2", "two")]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]
    assert [(u.covers, u.prompt, u.completion, u.cache_read, u.cache_write) for u in item.usage] == [
        (1, 100, 70, 90, 5),
        (3, 200, 1, 0, 0),
    ]


def test_results_come_before_words_that_interrupted_them():
    (item,) = read(
        lines(
            said("user", "go", "u1"),
            said("assistant", [use("c1"), use("c2")], "a1", "u1", id="m1"),
            said("user", [result("c1")], "r1", "a1"),
            said("user", "wait", "u2", "r1"),
            said("user", [result("c2"), {"type": "text", "text": "note"}], "r2", "a1"),
        )
    )
    assert item.messages[2]["content"] == [result("c1"), result("c2"), {"type": "text", "text": "note"}]
    assert item.messages[3] == {"role": "user", "content": "wait"}


def test_the_newest_branch_is_the_conversation_and_the_other_is_noted():
    (item,) = read(
        lines(
            said("user", "first try", "u1"),
            said("assistant", "one", "a1", "u1", id="m1"),
            said("user", "wrong turn", "u2", "a1"),
            said("assistant", "lost", "a2", "u2", id="m2"),
            said("user", "again", "u3", "a1"),
        )
    )
    assert [message["content"] for message in item.messages] == [
        "first try",
        [{"type": "text", "text": "one"}],
        "again",
    ]
    assert item.notes == ("2 × message on a branch that was abandoned (lines 3-4)",)


def test_a_compaction_keeps_the_whole_transcript_and_says_where_it_was():
    (item,) = read(
        lines(
            said("user", "before", "u1"),
            said("assistant", "answer", "a1", "u1", id="m1"),
            {
                "type": "system", "subtype": "compact_boundary", "uuid": "s1", "parentUuid": None,
                "logicalParentUuid": "a1", "compactMetadata": {"trigger": "auto", "preTokens": 900},
            },
            said("user", "the summary", "u2", "s1", isCompactSummary=True),
        )
    )  # fmt: skip
    assert [message["role"] for message in item.messages] == ["user", "assistant", "user"]
    assert item.boundaries == (2,)
    assert item.notes == ("line 3: compacted before message 2 (auto, 900 tokens)",)


def test_sidechains_are_conversations_of_their_own_whatever_the_order_of_their_lines():
    side = {"isSidechain": True}
    main, one, two = read(
        lines(
            said("user", "main", "u1"),
            said("assistant", "answer one", "s2", "s1", id="x1", **side),
            said("user", "task one", "s1", **side),
            said("user", "task two", "t1", agentId="a7", **side),
            said("assistant", "done", "a1", "u1", id="m1"),
        )
    )
    assert (main.name, one.name, two.name) == ("main", "sidechain s1", "sidechain a7")
    assert [message["role"] for message in one.messages] == ["user", "assistant"]
    assert len(main.messages) == 2


def test_a_file_of_a_sub_agent_alone_is_read():
    (item,) = read(lines(said("user", "task", "s1", isSidechain=True, agentId="a7"), {"type": "mode"}))
    assert item.name == "sidechain a7"
    assert item.notes == ("1 × line of type mode (line 2)",)


def test_messages_nested_in_progress_lines_are_a_conversation_and_counted():
    def progress(message):
        return {"type": "progress", "data": {"type": "agent_progress", "agentId": "b2", "message": message}}

    main, agent, cut = read(
        lines(
            said("user", "go", "u1"),
            progress(said("user", "task", "p1")),
            progress(said("assistant", [use("c1")], "p2", id="x1", usage=usage(7))),
            {"type": "progress", "data": {"type": "bash_progress"}},
            {
                "type": "progress",
                "data": {"type": "agent_progress", "agentId": "z", "message": said("assistant", "hm", "q")},
            },
        )
    )
    assert main.notes == (
        "3 × progress line that holds a message of a sub-agent, given apart (lines 2-3, 5)",
        "1 × line of type progress/bash_progress (line 4)",
    )
    assert (agent.name, len(agent.messages), agent.usage[0].prompt) == ("agent b2", 2, 7)
    assert cut.notes == ("the request that opened this conversation is not in the file",)


def test_lines_the_client_wrote_are_kept_and_their_usage_is_not():
    (item,) = read(
        lines(
            said("user", "hi", "u1"),
            said("assistant", "API error", "a1", "u1", id="m1", model="<synthetic>", usage=usage(10)),
        )
    )
    assert len(item.messages) == 2
    assert (item.usage, item.model) == ((), None)
    assert "written by the client" in item.notes[0]


COMMAND = "<command-message>tidy</command-message>\n<command-name>/tidy</command-name>\n<command-args>the tests</command-args>"
TEXT = "## Rules\n\nDo not touch generated files.\n\n<system-reminder>\nToday is Monday.\n</system-reminder>\n\nNever push."


@pytest.mark.parametrize("body", [TEXT, [{"type": "text", "text": TEXT}]])
def test_the_text_of_a_slash_command_is_sent_with_it_and_only_what_was_typed_is_the_users(body):
    (item,) = read(
        lines(
            said("user", COMMAND, "u1"),
            said("user", body, "u2", "u1", isMeta=True),
            said("assistant", [{"type": "text", "text": "Tidied."}], "a1", "u2", usage=usage(5)),
            said("user", "Now push.", "u3", "a1"),
        )
    )
    assert [each["content"] for each in item.messages if each["role"] == "user"] == [
        [{"type": "text", "text": COMMAND}, {"type": "text", "text": TEXT}],
        "Now push.",
    ]
    assert [report.covers for report in item.usage] == [1]
    command, _, later = formats.read(formats.find("anthropic"), item.messages).messages
    assert words_of_user(command) == "/tidy\nthe tests"
    assert words_of_user(later) == "Now push."


def test_what_the_client_adds_behind_other_messages_stays_a_message_of_its_own():
    (item,) = read(lines(said("user", "Go.", "u1"), said("user", "Note:\nnone.", "u2", "u1", isMeta=True)))
    assert [each["content"] for each in item.messages] == ["Go.", "Note:\nnone."]


def test_lines_of_other_types_and_values_are_counted_with_their_numbers():
    (item,) = read(
        lines(
            {"type": "summary", "summary": "s", "leafUuid": "x"},
            said("user", "hi", "u1"),
            "42",
            {"type": "system", "subtype": "turn_duration"},
            {"type": "user", "message": {"role": "user"}},
            said("user", "hi", "u1"),
        )
    )
    assert item.messages == [{"role": "user", "content": "hi"}]
    assert item.notes == (
        "1 × int where an object should be (line 3)",
        "1 × line that repeats an earlier one (line 6)",
        "1 × line of type summary (line 1)",
        "1 × line of type system/turn_duration (line 4)",
        "1 × line of type user (line 5)",
    )


def test_a_call_that_was_open_when_the_session_was_cut_stays_open():
    (item,) = read(lines(said("user", "hi", "u1"), said("assistant", [use("c1")], "a1", "u1", id="m1")))
    assert item.messages[-1]["content"] == [use("c1")]


def test_lines_without_a_tree_are_taken_in_order():
    rows = [
        {"type": role, "message": {"role": role, "content": str(n)}} for n, role in enumerate(("user", "assistant"))
    ]
    assert [message["role"] for message in read(lines(*rows))[0].messages] == ["user", "assistant"]
    assert read(json.dumps({"loglines": rows}).encode())[0].messages == read(lines(*rows))[0].messages


def test_a_client_trace_is_unwrapped():
    rows = [
        {"seq": 1, "content": {"role": "user", "content": {"type": "text", "text": "hi"}}},
        {
            "seq": 2,
            "content": {"role": "agent", "content": {"type": "output", "data": said("assistant", "yo", "a1", id="m")}},
        },
    ]
    (item,) = read(json.dumps(rows).encode())
    assert [message["role"] for message in item.messages] == ["user", "assistant"]


@pytest.mark.parametrize("damage", ['{"type": "user", "mess', "not json at all"])
def test_a_damaged_line_is_skipped_leniently_and_the_rest_is_read(damage):
    raw = lines(said("user", "one", "u1"), damage, said("user", "two", "u2", "lost"))
    (item,) = read(raw, lenient=True)
    assert [message["content"] for message in item.messages] == ["one", "two"]
    assert item.notes == ("1 × line that is not JSON, skipped (line 2)",)
    assert detect(raw) == "claude-code"


def test_a_tree_that_bites_its_tail_is_read():
    raw = lines(said("user", "one", "u1", "u2"), said("assistant", "two", "u2", "u1", id="m"))
    assert len(read(raw)[0].messages) == 2


def test_a_long_chain_is_read_without_recursion():
    rows = [said("user" if n % 2 == 0 else "assistant", str(n), f"n{n}", f"n{n - 1}", id=f"m{n}") for n in range(5000)]
    assert len(read(lines(*reversed(rows)))[0].messages) == 5000
