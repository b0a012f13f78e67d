import cProfile
import json

import pytest

from refold._condense.digest.file_log import file_log
from refold.testing import talk


def phrased(*edits, said="x", report=""):
    """What is told of files after edits in one turn, each a path, the old and the new text, and a report at its end."""
    calls = [
        f"edit({json.dumps({'file_path': path, 'old_string': old, 'new_string': new})}) as c{number}"
        for number, (path, old, new) in enumerate(edits)
    ]
    lines = [line for number, call in enumerate(calls) for line in (f"a: {said} | {call}", f"t: c{number} = ok")]
    log = file_log(talk("u: go", *lines, *([f"a: {report}"] if report else [])))
    return {record.path: record.phrase for record in log}


MORE = "begin(index)\nadd(index)\nend(index)\n"  # more than the line of a small edit


def edit(path):
    return (path, "x\ny\n", MORE)


@pytest.mark.parametrize(
    ("report", "phrase"),
    [
        ("Done.\n\n- `src/load.py`: the index replaces the scan", "the index replaces the scan"),
        ("Done.\n\n- **load.py** — an index in place of the scan. Tested.", "an index in place of the scan. Tested"),
        ("- [load.py](/w/src/load.py:12): an index of names", "an index of names"),
        ("**load.py**\n- an index of names", "an index of names"),
        ("I added an index of names in `src/load.py`. It is fast.", "I added an index of names"),
    ],
)
def test_a_phrase_is_what_the_report_at_the_end_of_the_turn_says_of_the_file(report, phrase):
    assert phrased(edit("src/load.py"), report=report) == {"src/load.py": phrase}


@pytest.mark.parametrize(
    "report",
    [
        "`load.py:12` saves the state",
        "Shall I add it to load.py?",
        "I changed a.py, b.py and load.py.",
        "It was added in load.py.",
        "- other/load.py: an index of names",
    ],
)
def test_what_a_report_says_beside_a_file_is_no_phrase(report):
    assert phrased(edit("src/load.py"), report=report) == {"src/load.py": "last edit `begin(index)`"}


def test_a_name_that_two_changed_files_have_means_neither():
    log = phrased(edit("a/load.py"), edit("b/load.py"), report="- load.py: an index of names")
    assert set(log.values()) == {"last edit `begin(index)`"}


def test_a_long_phrase_ends_with_a_sentence_or_a_clause():
    sentence = "an index of names replaces the scan of the list"
    log = phrased(edit("load.py"), report=f"- load.py: {sentence}. {'It takes long. ' * 3}{'x' * 90}")
    assert log == {"load.py": f"{sentence}. {'It takes long. ' * 3}".rstrip(" .")}
    log = phrased(edit("load.py"), report=f"- load.py: {sentence}, which was slow{' and slow' * 20}")
    assert log == {"load.py": sentence}
    log = phrased(
        edit("load.py"), report=f"**Index.** The scan of load.py is now an index of names, {'so it is fast ' * 9}"
    )
    assert log == {"load.py": "The scan of load.py is now an index of names"}


def test_without_a_report_the_announcement_of_the_last_edit_tells_it():
    said = "Now let me replace the scan of the list with an index:"
    assert phrased(edit("a.py"), said=said) == {"a.py": "replace the scan of the list with an index"}
    said = "Now the guard, so a missing index fails the build with a clear message:"
    assert phrased(edit("a.py"), said=said) == {
        "a.py": "the guard, so a missing index fails the build with a clear message"
    }
    said = "Meanwhile I'm editing `loading` now: the scan goes, and each lookup asks the index."
    assert phrased(edit("loading.py"), said=said) == {"loading.py": "the scan goes, and each lookup asks the index"}


def test_an_announcement_that_only_points_back_or_looks_at_something_tells_nothing():
    for said in (
        "Let me fix the remaining items:",
        "Let me fix this too since the hook might need it:",
        "Now let me check what the tests of the index say about it:",
        "Now let me update the other half of it in `b.py` and its tests:",
        "Now the page itself:",
        "Now the comments that name the action and the hardcoded coordinates in `begin`:",
    ):
        phrase = (
            phrased(edit("a.py"), said=said) if "b.py" not in said else phrased(edit("b.py"), edit("a.py"), said=said)
        )
        assert phrase["a.py"] == "last edit `begin(index)`"


def test_an_edit_that_points_at_what_was_wrong_is_told_by_that():
    said = "I see. So the `Store` doesn't clear its index. Let me fix that:"
    assert phrased(edit("a.py"), said=said) == {"a.py": 'since "the `Store` doesn\'t clear its index"'}
    said = "The whole gallery cannot go into the chunk of the page, so the hero needs a file of its own. Finding where:"
    assert phrased(edit("a.py"), said=said) == {
        "a.py": 'since "The whole gallery cannot go into the chunk of the page, so the hero needs a file of its own"'
    }
    said = "And `Index` of b.md is fine, it needs no change. Let me fix this:"
    assert phrased(edit("a.py"), said=said) == {"a.py": "last edit `begin(index)`"}


def test_what_was_said_before_two_edits_of_a_turn_is_told_and_older_words_where_nothing_tells_the_last():
    first = json.dumps({"file_path": "a.py", "old_string": "x\ny\n", "new_string": MORE})
    second = json.dumps({"file_path": "a.py", "old_string": MORE, "new_string": "x\ny\n"})
    one = (f"a: Now replace the scan by an index of names: | edit({first}) as c1", "t: c1 = ok")
    two = (f"a: Now remove the index of names again: | edit({second}) as c2", "t: c2 = ok")
    (record,) = file_log(talk("u: go", *one, *two))
    assert record.phrase == "replace the scan by an index of names; remove the index of names again"
    quiet = (f"a: Let me do it: | edit({second}) as c2", "t: c2 = ok")
    (record,) = file_log(talk("u: go", *one, "a: Done.", "u: no", *quiet))
    assert record.phrase == "last edit removes `begin(index)`"
    unread = ('a: x | bash({"command": "cat > a.py <<\'E\'\\nx\\nE"}) as c2', "t: c2 = ok")
    (record,) = file_log(talk("u: go", *one, "a: Done.", "u: no", *unread))
    assert record.phrase == "earlier: replace the scan by an index of names (turn 1)"


@pytest.mark.parametrize(
    ("command", "phrase"),
    [
        ("git add -A && git commit -m x", "committed as 'Read names from the index'"),
        ("git add a.py && git commit -m x", "committed as 'Read names from the index'"),
        ("git add b.py && git commit -m x", "last edit `begin(index)`"),
    ],
)
def test_a_file_is_told_by_the_commit_that_it_went_into(command, phrase):
    change = json.dumps({"file_path": "a.py", "old_string": "x\ny\n", "new_string": MORE})
    (record,) = file_log(
        talk(
            "u: go",
            f"a: x | edit({change}) as c1",
            "t: c1 = ok",
            f"a: x | bash({json.dumps({'command': command})}) as c2",
            "t: c2 = [main 1a2b3c4d] Read names from the index\n 1 file changed",
        )
    )
    assert record.phrase == phrase


def test_of_a_small_edit_the_phrase_is_the_line():
    assert phrased(("a.py", "def f():\n    return 1\n", "def f():\n    return 2\n")) == {
        "a.py": "`return 1` → `return 2`"
    }
    assert phrased(("a.py", "a\nlog(a)\n", "a\n")) == {"a.py": "without `log(a)`"}
    assert phrased(("a.py", "x = 1\n", "x = 1\ny = 2\n"), ("a.py", "y = 2\n", "z = 3\n")) == {"a.py": "`z = 3`"}


def test_of_settings_the_phrase_is_the_first_and_the_last_value_of_each_key():
    edits = [
        ("dark.json", f'"link": "{old}",', f'"link": "{new}",') for old, new in (("red", "blue"), ("blue", "gray"))
    ]
    assert phrased(*edits, said="ok") == {"dark.json": "link: red → gray"}
    back = ("dark.json", '"link": "gray",', '"link": "red",')
    assert phrased(*edits, back, ("dark.json", "{", '{\n "text": 1,')) == {"dark.json": "text: 1"}
    assert phrased(("a.toml", "size = 3", 'size = 4\nname = "x"')) == {"a.toml": "size: 3 → 4, name: x"}
    block = ("a.yaml", "cwd: /x\n", "cwd: /y\nenvironment:\n  setup:\n    run: copy\n")
    assert phrased(block) == {"a.yaml": "adds environment"}


def test_of_sql_the_phrase_is_the_tables():
    new = (
        "create table if not exists jobs (\n  id int\n);\nALTER TABLE users ADD name text;\nCREATE TABLE runs (id int);"
    )
    assert phrased(("1.sql", "x", new)) == {"1.sql": "creates table jobs, runs; alters table users"}


def test_what_the_report_of_a_sub_agent_says_of_a_file_is_told():
    report = "Files created:\n- `e2e/run.py` — starts the shells and waits"
    log = file_log(talk("u: go", "a: x | Task(build it) as c", f"t: c = {report}"))
    assert [record.full_line for record in log] == ["e2e/run.py (sub-agent, turn 1): starts the shells and waits"]


def test_secrets_are_told_as_changed_without_their_values():
    assert phrased((".env", "PORT=1\nNAME=a", "PORT=2\nNAME=b")) == {".env": "PORT: changed, NAME: changed"}
    changed = phrased(("a.toml", 'port = 1\napi_key = "a"', 'port = 2\napi_key = "b"'))
    assert changed == {"a.toml": "port: 1 → 2, api_key: changed"}
    added = phrased(("a.toml", 'author = "x"', 'author = "y"\nmax_tokens = 5\ntoken = "b"'))
    assert added == {"a.toml": "author: x → y, max_tokens: 5, token: set"}
    assert phrased((".env", "A=1\nAPI_KEY=secret-of-mine", "A=1")) == {".env": ""}
    assert phrased(("a.py", 'API_KEY = "secret-of-mine"', 'API_KEY = "another-secret"')) == {"a.py": ""}


def test_a_table_that_was_there_before_an_edit_is_not_created_by_it():
    before = "CREATE TABLE users (\n id int\n);\n"
    assert (
        "users"
        not in phrased(("a.sql", before, before.replace("int", "bigint") + "CREATE TABLE b (id int);\n"))["a.sql"]
    )


def test_a_file_that_was_copied_over_has_no_phrase_of_its_earlier_edits():
    call = json.dumps({"file_path": "a.json", "old_string": '"port": 1', "new_string": '"port": 2'})
    copied = json.dumps({"command": "cp b.json a.json"})
    log = file_log(
        talk("u: go", f"a: x | edit({call}) as c1", "t: c1 = ok", f"a: x | bash({copied}) as c2", "t: c2 = ")
    )
    assert [record.phrase for record in log] == [""]


def test_where_nothing_says_what_changed_the_definitions_at_which_edits_stand_are_told():
    old = "def load():\n    x = 1\n    y = 2\n\ndef gone():\n    pass\n"
    new = "def load():\n    begin(index)\n    add(index)\n    end(index)\n\ndef fresh():\n    pass\n"
    assert phrased(("a.py", old, new)) == {"a.py": "edits at `load`; last edit `begin(index)`"}
    style = (".title {\n  margin: 0;\n  top: 1px;\n}", ".title {\n  padding: 0;\n  top: 2px;\n  left: 3px;\n}")
    assert phrased(("a.css", *style))["a.css"].startswith("edits at `.title`")


def test_a_text_that_was_written_whole_is_told_by_its_title():
    written = json.dumps({"file_path": "docs/a.md", "content": "# Phase 1: the store\n\nWhat it holds."})
    (record,) = file_log(talk("u: go", f"a: x | write({written}) as c", "t: c = ok"))
    assert record.phrase == "Phase 1: the store"


@pytest.mark.parametrize(
    ("command", "phrase"),
    [
        ("cd src && sed -i 's/old/new/' load.py && ls", "`old` → `new`"),
        ("sed -n 1,9p load.py; sed -i s/a/b/ load.py", "`a` → `b`"),
        ("sed -i 's|a/b.js|a/b.js|g' load.py", ""),
        ("sed -i '/^#/d' load.py", "by `sed -i '/^#/d' load.py`"),
        ("sed -i 's/API_KEY=1/API_KEY=2/' load.py", ""),
        ("sed -i 's/AKIAIOSFODNN7EXAMPLE/x/' load.py", ""),
        ("cat > load.py <<'E'\nx\nE", ""),
    ],
)
def test_of_a_file_that_a_command_changed_it_is_told_what_that_replaced(command, phrase):
    (record,) = file_log(talk("u: go", f"a: x | bash({json.dumps({'command': command})}) as c", "t: c = ok"))
    assert record.phrase == phrase


def test_a_definition_that_only_shows_where_an_edit_belongs_is_not_told():
    before = (
        "def load():\n    x = 1\n\ndef save():\n    y = 2",
        "def load():\n    x = 1\n\nPORT = 1\n\ndef save():\n    y = 2",
    )
    assert "edits at" not in phrased(("a.py", *before)).get("a.py", "")
    behind = ("def load():\n    x = 1\n", "def load():\n    x = 1\n\n\ndef fresh():\n    y = 2\n    z = 3\n")
    assert "edits at" not in phrased(("a.py", *behind)).get("a.py", "")
    inside = (
        "def load():\n    x = 1\n\ndef save():\n    y = 2",
        "def load():\n    x = 1\n\ndef save():\n    y = 2\n    z = 3\n    a = 4",
    )
    assert phrased(("a.py", *inside))["a.py"].startswith("edits at `save`")


@pytest.mark.parametrize(
    ("path", "text", "phrase"),
    [
        ("a.py", '"""Reads the index of a store.\n\nMore."""\nimport os\nrun()\n', "Reads the index of a store"),
        (
            "a.sh",
            "#!/bin/bash\n# Builds each of the groups on a branch\nset -e\n",
            "Builds each of the groups on a branch",
        ),
        (
            "a.go",
            "// Copyright 2026 The Authors\n\n// Package store keeps rows\npackage store\n",
            "Package store keeps rows",
        ),
        ("a.c", "/* Liest den Index eines Speichers */\nint main() {}\n", "Liest den Index eines Speichers"),
        ("a.js", "// 読み込みを行う\nrun();\n", "読み込みを行う"),
        ("b.py", "import os\nrun()\n", ""),
    ],
)
def test_a_program_that_was_written_whole_is_told_by_the_comment_that_it_begins_with(path, text, phrase):
    call = f"write({json.dumps({'file_path': path, 'content': text})})"
    log = file_log(talk("u: go", f"a: x | {call} as c", "t: c = ok"))
    assert {record.path: record.phrase for record in log} == {path: phrase}


def test_an_edit_that_adds_a_comment_in_whole_sentences_is_told_by_it():
    old = "def load():\n    x = 1\n    y = 2\n"
    said = "# The file was deleted,\n    # so the default is loaded."
    new = old.replace("y = 2", f"begin(index)\n    {said}\n    y = begin(3)\n    z = add(index)")
    assert phrased(("a.py", old, new)) == {
        "a.py": 'edits at `load`; last edit says "The file was deleted, so the default is loaded"'
    }
    for no_words in (
        "# begin(the index of all);",
        "# api_key is what the store is opened with",
        "# eslint says so of it",
    ):
        assert phrased(("a.py", old, new.replace(said, no_words))) == {
            "a.py": "edits at `load`; last edit `begin(index)`"
        }


def test_a_file_that_the_user_rejects_in_the_next_turn_says_so_until_it_is_changed_again():
    def made(said, *then):
        calls = (
            f"{name}: x | write({json.dumps({'file_path': path, 'content': 'x'})}) as {call}"
            for name, path, call in (("a", "blog-cover.svg", "c1"), ("a", "blog-post.txt", "c2"))
        )
        results = ("t: c1 = ok", "t: c2 = ok")
        done = [line for pair in zip(calls, results, strict=True) for line in pair]
        return {
            record.path: record.phrase for record in file_log(talk("u: go", *done, "a: Done.", f"u: {said}", *then))
        }

    told = made("that's good enough, except that cover image is hideous. use a gradient")
    assert told == {"blog-cover.svg": 'rejected in turn 2: "that cover image is hideous"', "blog-post.txt": ""}
    assert made("the blog image is hideous")["blog-cover.svg"] == ""
    again = f"a: x | write({json.dumps({'file_path': 'blog-cover.svg', 'content': 'y'})}) as c3"
    assert made("that cover image is hideous", again, "t: c3 = ok")["blog-cover.svg"] == ""


def test_definitions_at_which_edits_of_an_earlier_turn_stand_are_not_told():
    def at(name, text):
        return json.dumps(
            {"file_path": "a.py", "old_string": f"def {name}():\n    x = 1\n", "new_string": f"def {name}():\n{text}"}
        )

    body = "    begin(index)\n    add(index)\n"
    one = (f"a: x | edit({at('load', body)}) as c1", "t: c1 = ok", "a: Done.", "u: and save")
    (record,) = file_log(talk("u: go", *one, f"a: x | edit({at('save', body)}) as c2", "t: c2 = ok"))
    assert record.phrase == "edits at `save`; last edit `begin(index)`"


def test_an_attribute_is_no_comment_and_the_mark_of_one_no_part_of_it():
    derived = ("a.rs", "struct A {\n    x: u8,\n}\n", "#[derive(Clone)]\nstruct A {\n    x: u8,\n}\n")
    (phrase,) = phrased(derived).values()
    assert "comment" not in phrase
    written = json.dumps({"file_path": "b.rs", "content": "//! What a risk may cost, by symbol.\nuse x;"})
    opened = talk("u: go", f"a: x | write({written}) as c", "t: c = ok")
    assert [record.phrase for record in file_log(opened)] == ["What a risk may cost, by symbol"]


def test_a_fragment_of_a_comment_or_of_an_expression_is_not_told():
    part = ("c.py", "x\ny\n", "    'a string that goes on with ' +\n    name +\n    1\n")
    gone = ("d.py", "x = 1\ndef load():\n    pass\n\ndef save():\n    pass\n", "x = 1\n")
    removed = ("a.py", "x = 1\nload_everything(index)\nsave_everything(index)\nclose_everything(index)\n", "x = 1\n")
    comment = (
        "b.py",
        "# It opens the store.\n# And the index.\nrun()\n",
        "# It opens the cache.\n# And the table.\nrun()\n",
    )
    assert phrased(removed, comment, part, gone) == {
        "a.py": "last edit removes 3 lines with `load_everything(index)`",
        "b.py": "last edit changes only comments",
        "c.py": "",
        "d.py": "last edit removes `load`, `save`",
    }


def test_the_work_for_the_phrases_of_files_grows_as_their_number_and_not_as_its_square():
    def calls(files):
        """Return how many functions are called for edits of so many files."""
        profile = cProfile.Profile()
        profile.runcall(phrased, *(edit(f"src/module_{number}.py") for number in range(files)))
        return sum(entry.callcount for entry in profile.getstats())

    calls(20)  # loads what is loaded once
    assert calls(400) < 6 * calls(100)


def test_what_was_said_before_an_edit_that_has_no_word_of_it_is_not_what_the_edit_did():
    said = "Now let me create a fix on a new branch and then go on with the remaining tasks:"
    assert phrased(edit("a.py"), said=said) == {"a.py": "last edit `begin(index)`"}


def test_two_announcements_in_the_same_words_are_told_once():
    edits = [
        json.dumps({"file_path": "a.py", "old_string": old, "new_string": new})
        for old, new in (("x\ny\n", MORE), (MORE, "x\ny\n"))
    ]
    said = ("update the scan and the index calls of names", "update the index calls of the names")
    lines = (line for n in range(2) for line in (f"a: Now {said[n]}: | edit({edits[n]}) as c{n}", f"t: c{n} = ok"))
    (record,) = file_log(talk("u: go", *lines))
    assert record.phrase == said[1]
