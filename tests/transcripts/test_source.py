import json

import pytest

from refold.errors import UnreadableTranscript
from refold.transcripts._source import load


def test_one_value_over_several_lines_is_one_value():
    document = load(b'\n{\n  "a": [\n    1\n  ]\n}\n')
    assert document.value == {"a": [1]}
    assert document.numbers == [2]


def test_a_value_a_line_keeps_its_line_number_past_blank_lines():
    document = load(b'{"a": 1}\n\n  \r\n{"a": 2}\r\n')
    assert document.lines == [(1, {"a": 1}), (4, {"a": 2})]
    assert document.value is None


def test_a_list_counts_as_lines():
    assert load(b'[{"a": 1}, 2]').lines == [(0, {"a": 1}), (0, 2)]
    assert load(b'[{"a": 1}, 2]').objects == [(0, {"a": 1})]


def test_pretty_printed_objects_one_after_another_are_read_with_the_line_they_start_on():
    text = "\n".join(json.dumps({"n": n}, indent=2) for n in range(3))
    document = load(text.encode())
    assert document.lines == [(1, {"n": 0}), (4, {"n": 1}), (7, {"n": 2})]


def test_objects_without_a_line_break_between_them_are_told_apart():
    assert load(b'{"n": 1}{"n": 2} {"n": 3}').values == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_byte_order_mark_is_tolerated():
    assert load(b'\xef\xbb\xbf{"a": "\xc3\xa9"}').value == {"a": "é"}
    assert load('{"a": "é"}'.encode("utf-16")).value == {"a": "é"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": "\\ud800"}', "\ud800"),
        (b'{"a": ' + b"9" * 30 + b"}", int("9" * 30)),
        (b'{"a": Infinity}', float("inf")),
    ],
)
def test_what_only_the_lax_decoder_takes_is_read(text, value):
    assert load(text).value == {"a": value}
    assert load(b'{"b": 1}\n' + text).values[1] == {"a": value}


def test_a_damaged_line_is_named_with_its_number_and_column():
    with pytest.raises(UnreadableTranscript, match=r"<bytes>:2:7: broken JSON .*leniently"):
        load(b'{"a": 1}\n{"a": }\n{"a": 3}\n')


def test_a_damaged_first_line_is_named():
    with pytest.raises(UnreadableTranscript, match=r"<bytes>:1:\d+: broken JSON"):
        load(b'{"a": "cut o\n{"a": 2}\n{"a": 3}\n')


def test_damage_inside_a_document_over_many_lines_is_named_where_it_is():
    with pytest.raises(UnreadableTranscript, match=r"<bytes>:4:3: broken JSON"):
        load(b'{\n  "a": 1,\n  "b": 2\n  "c": 3\n}\n')
    with pytest.raises(UnreadableTranscript, match=r"<bytes>:4:"):
        load(b'{"x": {\n  "a": 1,\n  "b": 2,\n  c: 3\n}}\n')


def test_a_cut_last_line_is_named_and_skipped_only_leniently():
    raw = b'{"a": 1}\n{"a": 2}\n{"a": "thr'
    with pytest.raises(UnreadableTranscript, match=r"<bytes>:3:"):
        load(raw)
    document = load(raw, lenient=True)
    assert document.values == [{"a": 1}, {"a": 2}]
    assert document.notes == ("1 × line that is not JSON, skipped (line 3)",)


def test_objects_between_log_lines_are_found_leniently():
    raw = b'[12:00] start {"x": 1}\n{\n "a": 1\n}\n[12:01] 7 more\n8 words\n{"a": 2}\n'
    document = load(raw, lenient=True)
    assert document.lines == [(2, {"a": 1}), (7, {"a": 2})]
    assert document.notes == ("3 × line that is not JSON, skipped (lines 1, 5-6)",)


def test_bytes_that_are_not_utf8_are_named_by_their_offset_and_replaced_leniently():
    raw = b'{"a": 1}\n{"a": "\xff"}'
    with pytest.raises(UnreadableTranscript, match=r"<bytes>:2:8: byte 16 is not UTF-8"):
        load(raw)
    document = load(raw, lenient=True)
    assert document.values[1] == {"a": "\ufffd"}
    assert "byte 16" in document.notes[0]


@pytest.mark.parametrize("raw", [b"", b" \n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(raw):
    with pytest.raises(UnreadableTranscript, match="empty"):
        load(raw)


def test_a_file_without_any_json_is_refused_even_leniently():
    with pytest.raises(UnreadableTranscript, match=r"<bytes>:1:1: broken JSON"):
        load(b"hello\nworld\n", lenient=True)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(UnreadableTranscript, match=r"nowhere\.jsonl: no such file"):
        load(tmp_path / "nowhere.jsonl")
    with pytest.raises(UnreadableTranscript, match="this is a folder"):
        load(tmp_path)
    with pytest.raises(UnreadableTranscript, match="cannot be opened"):
        load("a\0b")


def test_nesting_too_deep_for_any_decoder_is_broken_json_and_no_crash():
    with pytest.raises(UnreadableTranscript, match="broken JSON"):
        load(b"[" * 200_000)


def test_the_path_is_kept_as_it_was_given(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"[1]")
    assert load(path).path == str(path)
    assert load(str(path)).values == [[1]]


def test_what_a_broken_list_still_holds_is_saved_leniently():
    raw = b'[\n  {"a": 1},\n  {"b": oops},\n  {"c": 3}\n]\n'
    with pytest.raises(UnreadableTranscript, match=r"<bytes>:3:9: broken JSON"):
        load(raw)
    document = load(raw, lenient=True)
    assert document.lines == [(2, {"a": 1}), (4, {"c": 3})]
    assert document.notes == ("3 × line that is not JSON, skipped (lines 1, 3, 5)",)
