import json

from refold.transcripts import read


def lines(*rows):
    return "\n".join(map(json.dumps, rows)).encode()


def item(**payload):
    return {"timestamp": "t", "type": "response_item", "payload": payload}


def event(kind, **payload):
    return {"timestamp": "t", "type": "event_msg", "payload": {"type": kind, **payload}}


def tokens(prompt, total, cached=0):
    last = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": 3}
    info = {"last_token_usage": last, "total_token_usage": {"total_tokens": total}, "model_context_window": 1000}
    return event("token_count", info=info)


USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
CALL = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
META = {"type": "session_meta", "payload": {"id": "s", "base_instructions": {"text": "be codex"}}}


def test_items_are_the_conversation_and_events_are_only_counted():
    (found,) = read(
        lines(
            META,
            {"type": "turn_context", "payload": {"model": "gpt-x"}},
            item(**USER, internal_chat_message_metadata_passthrough={"turn_id": "1"}),
            event("user_message", message="go"),
            item(**CALL),
            item(**OUTPUT),
            tokens(100, 103, 40),
            tokens(100, 103, 40),
            item(**ANSWER),
            event("agent_message", message="done"),
            tokens(120, 226),
        )
    )
    assert (found.kind, found.format, found.system, found.model, found.window) == (
        "codex", "openai-responses", "be codex", "gpt-x", 1000,
    )  # fmt: skip
    assert found.messages == [USER, CALL, OUTPUT, ANSWER]
    assert [(u.covers, u.prompt, u.completion, u.cache_read) for u in found.usage] == [(1, 100, 3, 40), (3, 120, 3, 0)]
    assert found.notes == (
        "1 × line of type session_meta (line 1)",
        "1 × line of type turn_context (line 2)",
        "1 × line of type event_msg/user_message (line 4)",
        "3 × line of type event_msg/token_count (lines 7-8, 11)",
        "1 × line of type event_msg/agent_message (line 10)",
    )


def test_an_interrupted_answer_does_not_lend_its_place_to_the_next_report():
    (found,) = read(lines(META, item(**USER), item(**ANSWER), item(**USER), item(**ANSWER), tokens(50, 53)))
    assert found.usage[0].covers == 3


def test_a_compaction_is_noted_and_what_was_said_stays():
    compacted = {"type": "compacted", "payload": {"message": "", "replacement_history": [USER]}}
    (found,) = read(lines(META, item(**USER), item(**ANSWER), compacted, item(**USER)))
    assert len(found.messages) == 3
    assert found.boundaries == (2,)
    assert found.notes[0] == "line 4: compacted before item 2; 1 items took the place of all before"


def test_items_the_client_keeps_to_itself_are_set_aside():
    (found,) = read(lines(META, item(**USER), item(type="ghost_snapshot", ghost_commit={}), 5))
    assert found.messages == [USER]
    assert "1 × item of type ghost_snapshot, which the client does not send (line 3)" in found.notes
    assert "1 × int where an object should be (line 4)" in found.notes


def test_an_old_rollout_of_bare_items_is_read():
    header = {"id": "s", "timestamp": "t", "instructions": "old", "git": {}}
    (found,) = read(lines(header, {"record_type": "state"}, USER, CALL))
    assert (found.kind, found.system, found.messages) == ("codex", "old", [USER, CALL])


def said(role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


ROLLED_BACK = event("thread_rolled_back", num_turns=1)


def test_turns_that_were_rolled_back_are_no_part_of_the_conversation():
    first, again = [said("user", "one"), said("assistant", "1")], said("user", "three")
    update, second = said("user", "<environment_context>\n"), [said("user", "two"), CALL, OUTPUT, ANSWER]
    rows = [META, *map(item_of, [*first, update, *second]), tokens(50, 60), ROLLED_BACK, item_of(again)]
    (found,) = read(lines(*rows))
    assert found.messages == [*first, again]
    assert found.usage == ()
    assert any("1 turns were rolled back, 5 items left out" in note for note in found.notes)


def test_a_rollback_of_more_turns_than_there_are_keeps_what_stood_before_the_first():
    before, rest = said("developer", "rules"), [said("user", "one"), ANSWER, said("user", "two"), ANSWER]
    rows = [META, *map(item_of, [before, *rest]), event("thread_rolled_back", num_turns=9), item_of(USER)]
    (found,) = read(lines(*rows))
    assert found.messages == [before, USER]


def item_of(payload):
    return item(**payload)
