import json

from refold.sessions import Session, export_session, open_store
from refold.transcripts import detect, read

TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]


def grown(store, turns):
    session = Session(store, "logs", model="gpt-4o", window=8_000, tools=TOOLS)
    for turn in range(turns):
        session.append([{"role": "user", "content": f"Turn {turn}: " + "count the errors of the log " * 100}])
        session.append([{"role": "assistant", "content": "There are two.\n"}])
        session.report({"prompt_tokens": 700 * (turn + 1), "completion_tokens": 5})
    return session


def exported(store):
    return "\n".join(export_session(store, "logs")).encode()


def test_an_exported_session_is_read_with_settings_usage_and_the_places_of_its_compactions():
    store = open_store("memory")
    session = grown(store, 6)
    session.compact(force=True)
    text = exported(store)
    assert detect(text) == "refold-session"
    (item,) = read(text)
    assert item.messages == session.messages
    assert (item.format, item.model, item.window, item.tools) == ("openai-chat", "gpt-4o", 8_000, TOOLS)
    assert [report.covers for report in item.usage] == [1, 3, 5, 7, 9, 11]
    assert item.usage[-1].prompt == 4_200
    assert item.boundaries == (12,)


def test_what_was_rewound_is_not_in_the_conversation():
    store = open_store("memory")
    session = grown(store, 3)
    session.compact(force=True)
    session.rewind_messages(2)
    (item,) = read(exported(store))
    assert item.messages == session.messages
    assert (len(item.messages), len(item.usage), item.boundaries) == (2, 1, ())
    session.forward()
    assert len(session.messages) == 6
    session.append([{"role": "user", "content": "Go on."}])
    (item,) = read(exported(store))
    assert item.messages == session.messages
    assert (len(item.messages), len(item.usage), item.boundaries) == (7, 3, (6,))


def test_a_session_that_goes_on_after_a_rewind_has_the_new_messages():
    store = open_store("memory")
    session = grown(store, 3)
    session.rewind_messages(0)
    session.append([{"role": "user", "content": "Anew."}])
    (item,) = read(exported(store))
    assert item.messages == session.messages == [{"role": "user", "content": "Anew."}]


def test_a_damaged_file_with_an_id_behind_itself_ends():
    rows = [{"id": id, "message": {"role": "user", "content": id}} for id in "aba"]
    rewound = {"entry": {"type": "rewound", "to": {"tip": "b", "length": 2, "plans": []}}}
    header = {"refold_session": 1, "id": "logs", "format": "openai-chat"}
    (item,) = read("\n".join(map(json.dumps, [header, *rows, rewound])).encode())
    assert [message["content"] for message in item.messages] == ["a", "b"]
