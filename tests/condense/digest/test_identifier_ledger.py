import json

import pytest

from refold._condense.digest.identifier_ledger import atoms_in, grouped, identifiers_of, ledger, ungrouped
from refold.core.messages import Text, ToolCall, ToolResult
from refold.testing import talk, view_of


def read_twice(path, text):
    """Return lines in which the assistant reads a file two times."""
    return [line for n in "12" for line in (f"a: x | read({path}) as r{n}", f"t: r{n} = {text}")]


def write(path, content):
    """Return lines in which the assistant writes a file."""
    return f"a: x | write({json.dumps({'path': path, 'content': content})}) as w", "t: w = ok"


def listed(*lines):
    """Return the list of identifiers of a conversation."""
    transcript = talk("u: go", *lines)
    return grouped(ledger(view_of(transcript), transcript.messages))


def test_paths_dotted_names_compound_names_ids_and_numbers_are_identifiers_and_plain_words_are_not():
    text = "see src/store.py and store.load_items or camelCase, port 8080, id 3fa85c1 and HTTPServer; the plain words"
    assert atoms_in(text) == {"src/store.py", "store.load_items", "camelCase", "8080", "3fa85c1", "HTTPServer"}


def test_what_the_assistant_used_comes_before_what_a_tool_only_showed():
    transcript = talk(
        "u: go",
        "a: calling load_items in src/store.py | read(src/store.py) as c",
        "t: c = load_items other_name yet_another src/store.py",
        "a: again | read(src/store.py) as d",
        "t: d = other_name yet_another",
    )
    found = [atom.text for atom in ledger(view_of(transcript), transcript.messages)]
    assert set(found[:2]) == {"load_items", "src/store.py"}
    assert {"other_name", "yet_another"} <= set(found[2:])


def test_what_stands_in_kept_text_is_not_listed():
    transcript = talk("u: go", *write("a.py", "load_items other_name"))
    found = {atom.text for atom in ledger(view_of(transcript), transcript.messages, ["load_items is here"])}
    assert "other_name" in found
    assert "load_items" not in found


def test_identifiers_are_grouped_by_where_they_were_last_seen():
    lines = listed(*read_twice("a.py", "name_one name_two name_three name_four"))
    assert "a.py: name_one, name_two, name_four, name_three" in lines


def test_names_of_a_patch_of_several_files_are_not_told_of_the_first_of_them():
    patch = "".join(
        f"*** Add File: {name}\n+{name[0]}_one {name[0]}_two {name[0]}_three\n" for name in ("a.json", "b.js", "c.md")
    )
    call = f"apply_patch({json.dumps({'input': f'*** Begin Patch{chr(10)}{patch}*** End Patch'})})"
    _, others = listed(f"a: x | {call} as w", "t: w = ok")
    assert "b_two" in others
    assert not others.startswith("a.json:")


def test_identifiers_are_grouped_by_what_they_are():
    lines = listed(
        "a: see https://example.com/a and port 8080, config_name in ./src/a.py and ~/.config/b.toml, commit 3fa85c1 "
        "and/or nothing | bash(curl https://example.com/a) as c",
        "t: c = \x1b[31mL10\x1b[0m Chunk ID: 5a3f2b config_name",
        "a: so config_name it is",
    )
    assert lines == (
        "paths: src/a.py, ~/.config/b.toml",
        "names in messages: config_name",
        "addresses: https://example.com/a",
        "ids: commit 3fa85c1",
        "numbers: port 8080",
    )


def test_numbers_that_nothing_names_are_not_listed_and_of_one_name_only_five():
    column = " ".join(f"port={number}" for number in range(501, 510))
    used = ("a: x | write(a.py, " + f"4711 {column} count: 640 job_id: 731) as c", "t: c = ok")
    transcript = talk("u: go", *used, *used)
    assert grouped(ledger(view_of(transcript), transcript.messages))[-1:] == (
        "numbers: port 501, port 502, port 503, port 504, port 505, job_id 731",
    )


def test_of_a_series_only_five_members_are_listed():
    tasks = " ".join(f"TASK-{number}" for number in range(1, 12))
    assert listed(*read_twice("a.md", f"{tasks} and OTHER-7"))[1:] == (
        "a.md: TASK-1, TASK-2, TASK-3, TASK-4, TASK-5, OTHER-7",
    )


def test_ids_numbers_and_addresses_that_only_tools_showed_are_not_listed():
    shown = "see https://example.test/page, commit 2f3e4d5c6b and port: 8471"
    transcript = talk("u: go", "a: | read(a.py) as c", f"t: c = {shown}", "a: | read(b.py) as d", f"t: d = {shown}")
    lines = grouped(ledger(view_of(transcript), transcript.messages))
    assert not any(line.startswith(("ids", "numbers", "addresses")) for line in lines)
    assert listed(f"a: {shown}", f"a: {shown}") == (
        "addresses: https://example.test/page",
        "ids: commit 2f3e4d5c6b",
        "numbers: port 8471",
    )


def test_of_two_paths_one_of_which_ends_in_the_other_the_longer_is_listed():
    transcript = talk("u: go", "a: see store.py, app/store.py and src/app/store.py or other.py")
    assert grouped(ledger(view_of(transcript), transcript.messages)) == ("paths: other.py, src/app/store.py",)


def test_an_address_is_written_only_with_the_scheme_that_it_had():
    said = "a: load file://hooks.js from http://localhost.test/a"
    assert listed(said, said) == ("addresses: http://localhost.test/a",)


def test_a_list_that_was_read_back_is_written_again_as_it_was():
    transcript = talk("u: go", "a: ok")
    lines = (
        "paths: src/a.py, ~/.config/b.toml",
        "a.py: name_one, name_two, name_three, name_xfour",
        "addresses: https://example.com/a",
        "numbers: port 8080",
    )
    assert set(grouped(ledger(view_of(transcript), transcript.messages, before=ungrouped(lines)))) == set(lines)


def test_a_name_of_an_earlier_list_that_a_tool_shows_again_comes_before_one_that_it_shows_for_the_first_time():
    transcript = talk("u: go", "a: looking | bash(make) as c", "t: c = name_one name_two name_three")
    found = ledger(view_of(transcript), transcript.messages, before=[("name_two", "messages")])
    assert [atom.text for atom in found] == ["name_two"]  # of the others nobody spoke, and a command printed them once


def test_names_in_what_an_earlier_plan_left_of_an_output_are_listed_where_a_command_printed_them():
    output = "name_one name_two name_three"
    printed, excerpt = (
        talk("u: go", "a: looking | bash(make) as c", f"t: c = {text}")
        for text in (output, f"[parts of the output] bash(make), 1 of 9 lines: {output}")
    )
    assert not ledger(view_of(printed), printed.messages)
    assert {atom.text for atom in ledger(view_of(excerpt), excerpt.messages)} == set(output.split())


def test_an_identifier_behind_an_escape_in_arguments_is_listed_as_it_was_written():
    transcript = talk(
        "u: go", 'a: changing | edit({"path": "a.py", "new": "\\tload_items\\n\\titem_count"}) as c', "t: c = ok"
    )
    found = {atom.text: atom.source for atom in ledger(view_of(transcript), transcript.messages)}
    assert found["load_items"] == found["item_count"] == "a.py"
    assert "tload_items" not in found


def test_a_path_of_windows_in_json_keeps_the_first_letter_of_its_names():
    call = ToolCall("c1", "read", json.dumps({"path": "C:\\work\\themes.json"}))
    assert "themes.json" in identifiers_of(call)
    assert "hemes.json" not in identifiers_of(call)


@pytest.mark.parametrize("sign", ["½", "²", "a\u0301", "\u0301", "ª"])
def test_a_long_text_is_read_up_to_its_last_whole_word_whatever_signs_stand_there(sign):
    # reads the first 40,000 characters
    part = ToolResult("c", (Text(f"load_items other_name {sign * 50_000}"),), "run")
    assert {"load_items", "other_name"} <= {*identifiers_of(part)}
    cut = ToolResult("c", (Text(f"{'- ' * 19_995}load{sign}other_name_that_is_cut"),), "run")
    assert not [word for word in identifiers_of(cut) if "load" in word]


def test_rests_of_words_settings_of_calls_and_names_that_only_a_search_showed_are_not_listed():
    transcript = talk(
        "u: go",
        'a: x | read({"path": "a.py", "max_lines": 2000}) as c | web_search("how") as d',
        "t: c = load_items essageIndex messageIndex a.b.c",
        "t: d = someName someName",
        'a: y | read({"path": "a.py"}) as e',
        "t: e = load_items messageIndex",
        "a: I use max_lines 2000 here, max_lines 2000.",
    )
    text = "\n".join(grouped(ledger(view_of(transcript), transcript.messages)))
    assert "load_items" in text
    assert "messageIndex" in text
    for junk in (" essageIndex", "a.b.c", "someName", "2000"):
        assert junk not in text


def test_a_path_that_only_a_page_of_the_web_showed_is_not_listed():
    transcript = talk(
        "u: go",
        'a: x | webfetch({"url": "docs"}) as c | grep({"pattern": "a"}) as d',
        "t: c = Write /workspace/my-app/index.js or src/used.ts to begin",
        "t: d = src/found.ts: a",
        "a: I take `src/used.ts`.",
    )
    assert {atom.text for atom in ledger(view_of(transcript), transcript.messages)} >= {"src/used.ts", "src/found.ts"}
    assert "workspace/my-app/index.js" not in {atom.text for atom in ledger(view_of(transcript), transcript.messages)}


def shown_twice_by(command):
    """Return the lines of names that a command showed two times."""
    call, names = f"bash({json.dumps({'command': command})})", "name_one name_two name_three name_four"
    transcript = talk("u: go", f"a: now | {call} as c", f"t: c = {names}", f"a: now | {call} as d", f"t: d = {names}")
    return grouped(ledger(view_of(transcript), transcript.messages))


def test_names_that_a_command_showed_of_files_stand_under_the_files():
    lines = shown_twice_by("nl -ba src/store.py; sed -n '20,40p' src/store.py")
    assert any(line.startswith("src/store.py: name_") for line in lines)


def test_a_command_is_no_heading_of_the_names_that_it_showed():
    for command in ("for each in one two three; do rsync $each target:$each; done; " * 3, "make names"):
        (line,) = (each for each in shown_twice_by(command) if "name_one" in each)
        assert line.startswith("names in commands and their output: name_")


def test_names_stand_in_the_line_of_their_file_and_are_read_back_so():
    lines = listed(*read_twice("src/store.py", "load_items other_name"))
    assert lines == ("paths: src/store.py", "src/store.py: load_items, other_name")
    names = (("load_items", "src/store.py"), ("other_name", "src/store.py"))
    assert ungrouped(lines[1:]) == names
    assert ungrouped(["names: load_items (store.py)"]) == (("load_items", "store.py"),)  # in earlier digests
    assert ungrouped(["names in commands and their output: name_one", "names in messages: name_two"]) == (
        ("name_one", "commands"),
        ("name_two", "messages"),
    )


def test_what_only_the_text_of_a_file_showed_is_no_path_and_no_member_of_a_variable_of_one_letter():
    shown = (
        "a: x | read(a.py) as c",
        "t: c = from lib/other.py: a.store m.sep x",
        *read_twice("a.py", "store.load_items"),
    )
    transcript = talk("u: go", *shown)
    assert {atom.text for atom in ledger(view_of(transcript), transcript.messages)} == {"a.py", "store.load_items"}
    used = talk("u: go", *shown, "a: `m.sep` of lib/other.py is it.")
    found = {atom.text for atom in ledger(view_of(used), used.messages)}
    assert {"lib/other.py", "m.sep"} <= found


def test_names_that_only_programs_for_one_look_have_are_not_listed_nor_those_of_a_language():
    script = json.dumps({"code": "navShadow = shownRow; shownRow = load_rows; " * 8})
    transcript = talk(
        "u: go",
        f"a: x | browser_evaluate({script}) as c",
        "t: c = navShadow shownRow",
        f"a: `load_rows` is slow, useEffect and toLowerCase are not. | browser_evaluate({script}) as d",
        "t: d = navShadow shownRow",
        *read_twice("a.py", "load_rows useEffect"),
    )
    assert {atom.text for atom in ledger(view_of(transcript), transcript.messages)} == {"a.py", "load_rows"}


def test_bare_names_of_a_listing_are_not_listed_nor_are_paths_of_a_command_too_long_to_tell():
    long = json.dumps({"command": "for each in one two three; do rsync $each target:$each; done; " * 3})
    transcript = talk(
        "u: go",
        "a: x | bash(ls -R) as c | glob(lib) as d",
        "t: c = docs.yml src/lock_file.yml | d = vale.yml",
        f"a: x | bash({long}) as e",
        "t: e = web/page.py",
        "a: x | bash(git show) as f",
        "t: f = strategy.go",
    )
    found = {atom.text for atom in ledger(view_of(transcript), transcript.messages)}
    assert {"src/lock_file.yml", "strategy.go"} <= found
    assert found.isdisjoint({"docs.yml", "vale.yml", "web/page.py"})


def test_a_name_is_listed_that_was_used_or_shown_twice_and_not_one_that_a_tool_showed_once_or_words_alone_have():
    once = ("a: I look for saved_rows. | read(a.py) as c", "t: c = load_rows")
    assert listed(*once) == ("paths: a.py",)
    assert listed(*once, *read_twice("a.py", "load_rows")) == ("paths: a.py", "a.py: load_rows")
    assert listed(*write("b.py", "def load_rows")) == ("paths: b.py", "b.py: load_rows")


def test_names_of_fields_in_json_and_what_new_code_only_calls_are_not_listed():
    answer = json.dumps({"gists_url": 1, "repos_url": "load_rows"})
    found = "".join(listed(*read_twice("a.json", answer), *write("b.py", "item_count = to_fixed(9)")))
    names = ("load_rows", "item_count", "gists_url", "repos_url", "to_fixed")
    assert [name for name in names if name in found] == ["load_rows", "item_count"]


@pytest.mark.parametrize("words", ["imutáveis/estáticos", "68.0/68.0", "main...origin/main", "actions/cache@v4"])
def test_words_with_a_slash_that_are_no_path_are_not_listed(words):
    assert listed(f"a: see {words}") == ()


def test_the_rest_of_a_path_with_blanks_is_not_listed():
    call = json.dumps({"path": "/Volumes/A disk/app/main.py"})
    assert "disk/app/main.py" not in "".join(listed(f"a: x | read({call}) as c", "t: c = x"))


def test_names_that_a_change_took_out_of_a_file_are_not_listed_for_it():
    read = read_twice("a.py", "old_store = load_rows()")
    edit = json.dumps(
        {"path": "a.py", "old_string": "old_store = load_rows()", "new_string": "new_store = load_rows()"}
    )
    assert listed(*read, f"a: x | edit({edit}) as z", "t: z = ok") == ("paths: a.py", "a.py: load_rows, new_store")
    assert listed(*read, *write("a.py", "def save_rows")) == ("paths: a.py", "a.py: save_rows")
