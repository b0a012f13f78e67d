import json

import pytest

from refold.errors import SessionNotFound, UnreadableTranscript, WriteConflict
from refold.sessions import MemoryStore, export_session, import_session
from tests.sessions.talks import session, summarize, talk, user


@pytest.fixture
def opened(store):
    opened = session(store)
    opened.append(talk(30))
    opened.view()
    opened.report({"prompt_tokens": 3_300, "completion_tokens": 3})
    opened.compact(summarize=summarize)
    opened.append(['{"role": "user",\n "content": "over two lines \\ud83d", "n": 1.10}'])
    opened.rewind(0)
    return opened


def test_an_exported_session_goes_on_where_it_was_in_any_store(opened):
    lines = list(export_session(opened.store, opened.id))
    assert all("\n" not in line for line in lines)
    other = MemoryStore()
    assert import_session(other, lines) == opened.id
    again = session(other, opened.id)
    assert again.view() == opened.view()
    assert again.ids == opened.ids
    assert again.billed == opened.billed
    again.forward()
    opened.forward()
    assert again.view() == opened.view()
    assert again.search("word7")[0].message == opened.search("word7")[0].message
    id = opened.ids[-1]
    assert other.natives([id]) == opened.store.natives([id])


def test_an_exported_line_holds_the_native_message(opened):
    header, settings, first, *_ = export_session(opened.store, opened.id)
    assert json.loads(header)["format"] == "openai-chat"
    assert json.loads(settings)["entry"]["settings"]["window"] == opened.context_window
    assert json.loads(first) == {"id": opened.ids[0], "message": talk(1)[0]}


def test_an_export_holds_the_sessions_before_it(store):
    opened = session(store, policy="vibe", window=3_000)
    opened.append(talk(30))
    opened.compact(force=True, summarize=summarize)
    opened.append([user("on")])
    other = MemoryStore()
    import_session(other, export_session(store, opened.id))
    again = session(other, opened.id, policy="vibe", window=3_000)
    assert again.view() == opened.view()
    assert again.messages == opened.messages
    assert again.lineage == (opened.id,)


def test_an_id_that_is_taken_is_not_written_over(opened):
    lines = list(export_session(opened.store, opened.id))
    new = import_session(opened.store, lines)
    assert new != opened.id
    assert session(opened.store, new).view() == opened.view()
    with pytest.raises(WriteConflict, match="already"):
        import_session(opened.store, lines, id=opened.id)
    assert import_session(opened.store, lines, id="mine") == "mine"


@pytest.mark.parametrize(
    ("place", "change", "number"),
    [
        (0, lambda line: "", 2),
        (0, lambda line: line.replace('"refold_session": 2', '"refold_session": 3'), 1),
        (0, lambda line: "[]", 1),
        (4, lambda line: line[:-5], 5),
        (4, lambda line: line.replace("Step", "Stop").replace("word0", "word1"), 5),
        (-1, lambda line: line.replace("rewound", "rewinded"), 126),
        (-1, lambda line: '{"entry":{"type":"appended","ids":["x"]}}', 126),
        (-1, lambda line: "7", 126),
    ],
)
def test_a_damaged_line_is_named_with_its_number_and_nothing_is_written(opened, place, change, number):
    lines = list(export_session(opened.store, opened.id))
    lines[place] = change(lines[place])
    other = MemoryStore()
    with pytest.raises(UnreadableTranscript, match=rf"line {number} "):
        import_session(other, lines)
    assert other.sessions() == ()


def test_nothing_is_no_session(store):
    with pytest.raises(UnreadableTranscript, match="line 1"):
        import_session(store, [])
    with pytest.raises(SessionNotFound):
        list(export_session(store, "nobody"))
