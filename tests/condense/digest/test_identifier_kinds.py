import pytest

from refold._condense.digest.identifier_kinds import Folders, argument_names, counted, kind_of, without_codes
from refold.core.messages import ToolCall


@pytest.mark.parametrize(
    "word",
    [
        "L10",
        "L10-L20",
        "10-20",
        "0m",
        "31m",
        "340p",
        "450ms",
        "e123",
        "ref_12",
        "f1e23",
        "2026-01-15T10",
        "e.g",
        "u0003",
        "load_itemsの上限は7367です",
    ],
)
def test_words_that_lead_nowhere_are_no_identifiers(word):
    assert kind_of(word) is None


@pytest.mark.parametrize(
    ("word", "lead", "kind"),
    [
        ("src/store.py", "", "path"), ("store.py", "", "path"), ("home/me", "/", "path"), ("and/or", "", "words"),
        ("github.com/me/it", "//", "url"), ("github.com/me/it", "", "url"), ("store.load_items", "", "dotted"),
        ("load_items", "", "name"), ("HTTPServer", "", "name"), ("TS2339", "", "name"), ("3fa85c1", "", "id"),
        ("toolu_01Xy7Zk2Qw9", "", "id"), ("8080", "", "number"), ("12", "", None), ("plain", "", None),
    ],
)  # fmt: skip
def test_an_identifier_is_of_one_kind(word, lead, kind):
    assert kind_of(word, lead) == kind


def test_plain_words_with_a_slash_are_a_path_where_another_path_goes_through_them():
    folders = Folders(["src/app/main.py", "other/src/docs/a.md"])
    assert "src/app" in folders
    assert "src/docs" in folders
    assert "and/or" not in folders


def test_a_number_is_told_with_what_it_counts_and_a_position_counts_nothing():
    assert counted("listens on port 8080 now", "8080") == "port 8080"
    assert counted('{"timeout": 300}', "300") == "timeout 300"
    assert counted("in all 278 tests passed", "278") == "278 tests"
    assert not counted("src/a.py:136:def load", "136")
    assert not counted("  136\tdef load", "136")
    assert not counted("see line 136", "136")
    assert not counted('{"depth": 300}', "300", {"depth"})


def test_names_of_arguments_are_found_at_any_depth_but_not_in_texts():
    call = ToolCall("c", "edit", '{"file_path": "a.py", "edits": [{"old_string": "{\\"not_this\\": 1}"}]}')
    assert argument_names(call) == {"file_path", "edits", "old_string"}


def test_codes_of_terminals_json_and_addresses_part_words():
    assert without_codes("\x1b[32mPASS\x1b[0m a\\nb %2Fcase").split() == ["PASS", "a", "b", "case"]
    text = "plain words"
    assert without_codes(text) is text
