"""Tables of measurements in the docs are written from rows, between their marks."""

import json

import pytest

from benchmarks import doc_tables, pages


def test_a_table_stands_between_its_marks_and_nothing_else_changes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n\n<!-- measured:one -->\nold\n<!-- /measured -->\n\n<!-- measured:two -->\n<!-- /measured -->\n"
    )
    doc_tables.write(page, {"one": doc_tables.table(["", "share"], [["refold", "0.50"]])})
    table = "|  | share |\n|---|---:|\n| refold | 0.50 |"
    assert page.read_text() == (
        f"# One\n\n<!-- measured:one -->\n{table}\n<!-- /measured -->\n\n<!-- measured:two -->\n<!-- /measured -->\n"
    )


def test_a_page_without_the_marks_is_refused_and_stays(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n")
    with pytest.raises(SystemExit, match="has no place for one"):
        doc_tables.write(page, {"one": "table"})
    assert page.read_text() == "# One\n"


def test_rows_of_a_later_file_replace_those_of_an_earlier_one(tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text("\n".join(json.dumps({"policy": name, "won": 1}) for name in ("refold", "tail")))
    second.write_text(json.dumps({"policy": "refold", "won": 2}))
    rows = pages.of_files([first, second], lambda row: (row["policy"],))
    assert rows == [{"policy": "refold", "won": 2}, {"policy": "tail", "won": 1}]


def test_a_file_without_rows_is_refused_by_its_place(tmp_path):
    broken, empty = tmp_path / "broken.jsonl", tmp_path / "empty.jsonl"
    broken.write_text('{"policy": "refold"}\n{"policy"')
    empty.touch()
    for path, words in ((broken, r"broken.jsonl:2: "), (empty, "no rows"), (tmp_path / "none.jsonl", "No such file")):
        with pytest.raises(SystemExit, match=words):
            pages.of_files([path], lambda row: (row["policy"],))


def test_an_interval_is_over_sessions_and_not_over_cuts():
    assert pages.interval([("one", 0.5), ("one", 0.7)]) == "0.60"
    four = [(session, 0.5 + 0.1 * (place % 2)) for place, session in enumerate("abcd")]
    assert pages.interval(four) == "0.55 ±0.09"
    assert pages.interval(four + four) == "0.55 ±0.09"
    assert pages.interval(four[:3]) == "0.53"
    assert pages.interval([(session, 1.0) for session in "abcd"]) == "1"


def test_the_policies_stand_before_the_rivals_and_a_peer_comes_last():
    assert pages.ordered(["peer:tessera compact", "tail", "wolffish", "refold"]) == [
        "refold", "wolffish", "tail", "peer:tessera compact",
    ]  # fmt: skip
