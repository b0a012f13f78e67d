import json
import pkgutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refold.errors import UnreadableTranscript
from refold.transcripts import _readers as readers
from refold.transcripts import detect, kinds, read
from refold.transcripts._skipped import SkippedItems, spans
from tests.depth import deep

CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def raw(value):
    return json.dumps(value).encode()


def test_every_module_of_the_folder_is_a_kind():
    names = {module.name.replace("_", "-") for module in pkgutil.iter_modules(readers.__path__)}
    assert set(kinds()) == names
    assert kinds() == tuple(sorted(names))
    assert {"claude-code", "codex", "pi", "opencode", "gemini-cli", "swe-agent", "mini-swe-agent", "openhands"} <= names


def test_a_path_is_read_and_kept_in_the_conversation(tmp_path):
    path = tmp_path / "chat.txt"
    path.write_bytes(raw(CHAT))
    (item,) = read(path)
    assert (item.path, item.kind, item.messages) == (str(path), "plain", CHAT)
    assert detect(path) == "plain"


def test_what_is_no_transcript_is_refused_with_what_was_found_and_what_is_known():
    with pytest.raises(UnreadableTranscript, match=r"object with the keys name, version; known are .*claude-code"):
        read(raw({"name": "x", "version": 1}))
    with pytest.raises(UnreadableTranscript, match="a list of 2, the first with the keys a"):
        read(raw([{"a": 1}, {"a": 2}]))
    with pytest.raises(UnreadableTranscript, match="a list of 1, the first with the keys role, its role 'wizard'"):
        read(raw([{"role": "wizard"}]))
    with pytest.raises(UnreadableTranscript, match="3 JSON values, the first with the keys b"):
        detect(b'1\n{"b": 1}\n[]')
    with pytest.raises(UnreadableTranscript, match="one number"):
        read(b"12")


def test_a_wrong_kind_is_refused_with_the_likely_one():
    with pytest.raises(UnreadableTranscript, match="this is not codex: it looks like plain"):
        read(raw(CHAT), kind="codex")
    with pytest.raises(UnreadableTranscript, match="this is not codex: it holds a list of 1"):
        read(raw([{"a": 1}]), kind="codex")


def test_an_unknown_kind_is_refused_before_the_file_is_opened():
    with pytest.raises(UnreadableTranscript, match=r"no kind 'codec'; did you mean codex\?; known are amp"):
        read("/nowhere", kind="codec")


def test_a_named_kind_is_read_as_that_kind():
    assert read(raw(CHAT), kind="plain")[0].messages == CHAT


def test_a_file_of_a_known_kind_without_a_message_is_refused():
    with pytest.raises(UnreadableTranscript, match="read as codex, it holds no message"):
        read(raw({"type": "session_meta", "payload": {}}))


def test_a_field_of_the_wrong_type_is_refused_with_the_kind():
    with pytest.raises(UnreadableTranscript, match="looks like droid, but a field is not what that kind has there"):
        read(b'{"type": "session_start"}\n{"type": "message", "message": {"content": "no role"}}')


def test_a_message_that_is_no_object_is_refused_and_left_out_leniently_with_usage_kept_in_place():
    call = {
        "messages": [*CHAT, 7, {"role": "user", "content": "more"}],
        "response": {
            "choices": [{"message": {"role": "assistant", "content": "ok"}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        },
    }
    with pytest.raises(UnreadableTranscript, match="message 2 of main is a int"):
        read(raw(call))
    (item,) = read(raw(call), lenient=True)
    assert [message["content"] for message in item.messages] == ["hi", "hello", "more", "ok"]
    assert item.usage[0].covers == 3
    assert item.notes == ("message 2 of main is a int, not an object, skipped (1 in all)",)


def test_notes_on_skipped_lines_stand_with_the_first_conversation():
    (item,) = read(b'{"role": "user", "content": "a"}\noops\n', lenient=True)
    assert item.notes == ("1 × line that is not JSON, skipped (line 2)",)


def test_detection_passes_over_damaged_lines():
    assert detect(b'{"role": "user", "content": "a"}\noops\n') == "plain"


def test_line_numbers_are_shown_as_ranges_with_the_tail_cut():
    assert spans([4]) == "line 4"
    assert spans([1, 2, 3, 7]) == "lines 1-3, 7"
    assert spans(list(range(1, 40, 2))).endswith("11, …")


def test_the_tally_counts_by_reason_in_order_of_meeting():
    aside = SkippedItems()
    for reason, number in (("b", 3), ("a", 0), ("b", 4)):
        aside.add(reason, number)
    assert aside.notes() == ("2 × b (lines 3-4)", "1 × a")


WORDS = ["role", "type", "content", "messages", "message", "user", "assistant", "payload", "parts", "info", "tool_use"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=deep(60, 600), deadline=None, derandomize=True)
@given(st.lists(VALUES, min_size=1, max_size=4), st.booleans())
def test_any_json_is_read_or_refused_with_the_typed_error(values, lenient):
    for source in (raw(values), b"\n".join(map(raw, values))):
        try:
            found = read(source, lenient=lenient)
        except UnreadableTranscript:
            continue
        assert found
        assert all(isinstance(message, dict) for item in found for message in item.messages)
