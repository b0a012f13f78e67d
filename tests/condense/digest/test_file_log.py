import json

import pytest

from refold._condense.digest.file_log import by_folder, file_log
from refold._condense.digest.previous import OPENING
from refold._condense.digest.sections import touched_files
from refold.testing import talk, view_of


def test_each_file_has_one_line_with_what_was_done_to_it():
    transcript = talk(
        "u: go",
        "a: x | write(new.py) as c1 | read(seen.py) as c2",
        "t: c1 = ok",
        "t: c2 = x",
        "u: on",
        "a: x | edit(new.py) as c3 | edit(new.py) as c4 | edit(wrong.py) as c5 | edit(seen.py) as c6 | read(b.py) as c7",
        "t: c3 = ok",
        "t: c4 = ok",
        "t! c5 = not found",
        "t: c6 = ok",
        "t: c7 = ok",
    )
    lines = [record.line for record in file_log(transcript)]
    assert lines == ["new.py (created, 2 edits, turn 2)", "seen.py (turn 2)", "b.py"]
    assert touched_files(view_of(transcript)) == (("b.py",), ("new.py", "seen.py"))


def test_a_read_after_a_change_leaves_the_turn_of_the_change():
    lines = ("u: go", "a: x | edit(a.py) as c1", "t: c1 = ok", "u: on", "a: x | read(a.py) as c2", "t: c2 = x")
    assert [record.line for record in file_log(talk(*lines))] == ["a.py (turn 1)"]


def logged(*commands, ends="ok"):
    """The lines of the log after commands, each in a turn of its own; a command may come with its output."""
    lines = []
    for number, each in enumerate(commands):
        command, output = each if isinstance(each, tuple) else (each, ends)
        call = f"bash({json.dumps({'command': command})})"
        lines += [f"u: go {number}", f"a: x | {call} as c{number}", f"t: c{number} = {output}"]
    return [record.line for record in file_log(talk(*lines))]


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("sed -i 's/a/b/' src/a.py && pytest", ["src/a.py (turn 1)"]),
        ("cd src && sed -i.bak -e 's/a/b/' a.py b.py", ["src/a.py (turn 1)", "src/b.py (turn 1)"]),
        ("perl -pi -e 's/a/b/' a.py", ["a.py (turn 1)"]),
        ("tee -a a.txt < b", ["a.txt (turn 1)"]),
        ("cat > a.py <<'EOF'\nx > y\nEOF", ["a.py (created, turn 1)"]),
        ("python3 - <<'EOF'\np = 'a.py'\ns = open(p).read()\nopen(p, 'w').write(s)\nEOF", ["a.py (turn 1)"]),
        ("python -c \"from pathlib import Path; Path('a.py').write_text('x')\"", ["a.py (turn 1)"]),
        ("node -e \"require('fs').writeFileSync('a.json', '1')\"", ["a.json (turn 1)"]),
        ("git mv a.py lib/b.py", ["lib/b.py (moved from a.py, turn 1)"]),
        ("mv src/a.py lib/", ["lib/a.py (moved from src/a.py, turn 1)"]),
        ("cp ../.env .", [".env (copied from ../.env, turn 1)"]),
        ('cp "$HOME/.env" .env', [".env (turn 1)"]),
        ("curl -sL -o out/a.png https://example.com/a", ["out/a.png (downloaded, turn 1)"]),
        ("mv /w/a/b/src/one.py /w/a/b/lib/", ["/w/a/b/lib/one.py (moved from b/src/one.py, turn 1)"]),
        ("git mv tools core/", ["core/tools (moved from tools, turn 1)"]),
        ("git rm -q a.py", ["a.py (deleted, turn 1)"]),
        ("git checkout -- a.py", ["a.py (turn 1)"]),
        ("git checkout main", []),
        ("cd src && rm -rf ./; tee ./ < a; ls > ./", []),
        ("git apply <<EOF\n--- a/a.py\n+++ b/a.py\n@@\nEOF", ["a.py (turn 1)"]),
        ("apply_patch <<'P'\n*** Begin Patch\n*** Update File: a.py\n@@\n*** End Patch\nP", ["a.py (turn 1)"]),
        ("sed -n 1,3p a.py > /dev/null; grep -c 'a > b' c.py", []),
    ],
)
def test_files_that_commands_change_are_told(command, lines):
    assert sorted(logged(command)) == sorted(lines)


def test_a_script_changes_the_files_that_its_text_opens_for_writing():
    script = "cat > /tmp/fix.py <<'EOF'\nfor p in ['x']:\n    open('src/a.py', 'w').write('')\nEOF"
    assert "src/a.py (turn 2)" in logged(script, "python /tmp/fix.py")
    assert not [line for line in logged(script) if "a.py" in line and "fix" not in line]


@pytest.mark.parametrize(
    "answer",
    [
        "String to replace not found in file.",
        "error: patch failed: a.py:1",
        "apply_patch verification failed: no such lines",
        "No changes made to a.py. The replacement produced identical content.",
        "Could not find the exact text in a.py.",
        "<tool_use_error>File has not been read yet.</tool_use_error>",
        "Found 2 matches of the string to replace",
    ],
)
def test_an_edit_that_failed_is_none_also_where_only_the_answer_says_so(answer):
    assert file_log(talk("u: go", "a: x | edit(a.py) as c", f"t: c = {answer}")) == ()


def test_of_a_line_that_failed_what_ran_before_the_last_command_is_told():
    wrong = "1 failed\nexit code 1"
    assert logged(("sed -i s/a/b/ a.py && pytest", wrong)) == ["a.py (turn 1)"]
    assert logged(("cd src && sed -i s/a/b/ a.py", wrong)) == []


def test_files_that_one_command_deletes_have_their_lines_in_its_order():
    names = [f"{name}.py" for name in "pqhdxamz"]
    edits = [f"sed -i s/a/b/ {name}" for name in names]
    deleted = [f"{name} (1 edit, deleted, turn {len(edits) + 1})" for name in names]
    assert logged(*edits, f"git rm {' '.join(names)}") == deleted


def test_files_that_were_created_and_deleted_again_are_left_out_and_others_are_told_as_deleted():
    assert logged("echo x > probe.py", "rm probe.py") == []
    assert logged("echo x > out/probe.py", "rm -rf out") == []
    assert logged("sed -i s/a/b/ a.py", "git rm a.py") == ["a.py (1 edit, deleted, turn 2)"]


def test_a_copy_that_is_deleted_or_overwritten_and_written_anew_is_a_copy_no_more():
    copied, anew = ("cp a.py b.py", "sed -i s/a/b/ b.py"), "cat > b.py <<'E'\nx\nE"
    assert logged(*copied, "rm b.py", anew) == ["b.py (created, turn 4)"]
    assert logged(*copied, anew, "sed -i s/a/b/ b.py") == ["b.py (created, 1 edit, turn 4)"]


def test_files_that_a_loop_or_a_pattern_moves_are_told_by_it():
    loop = 'cd src/tui && for f in *.ts; do [ "$f" != "b.ts" ] && mv "$f" ../parts/; done; ls'
    assert logged("sed -i s/a/b/ src/tui/a.ts", "sed -i s/a/b/ src/tui/b.ts", loop) == [
        "src/tui/b.ts (turn 2)",
        "src/parts/a.ts (turn 1)",
        "src/parts (moved from src/tui/*.ts without b.ts, turn 3)",
    ]
    assert logged("cd src && mv theme/* modes/theme/ && rmdir theme") == [
        "src/modes/theme (moved from src/theme, turn 1)"
    ]
    assert logged('for f in src/*.ts; do grep -q x "$f" && mv "$f" parts/; done') == []


def test_a_copy_that_is_edited_has_its_edits_and_one_that_is_made_again_is_no_edit():
    assert logged("cp a.py b.py", "sed -i s/a/b/ b.py") == ["b.py (copied from a.py, 1 edit, turn 2)"]
    fetched = "wget -q -O a.png https://example.com/a"
    assert logged(fetched, fetched) == ["a.png (downloaded, turn 2)"]
    assert logged("cp a.py a.py.old", "rm a.py.old") == []


def test_a_file_that_a_patch_deletes_in_a_later_turn_than_it_was_created_is_told():
    def patch(what):
        return f"apply_patch <<'P'\n*** Begin Patch\n*** {what}\n*** End Patch\nP"

    added = patch("Add File: a.md\n+text")
    assert logged(added, patch("Delete File: a.md")) == ["a.md (created, deleted, turn 2)"]
    assert logged(patch("Delete File: a.md")) == ["a.md (deleted, turn 1)"]
    transcript = talk("u: go", "a: x | delete_file(a.md) as c", "t: c = ok")
    assert [record.line for record in file_log(transcript)] == ["a.md (deleted, turn 1)"]


def test_a_folder_that_is_moved_has_one_line_and_the_files_below_their_new_paths():
    assert logged("sed -i s/a/b/ tools/a.py", "sed -i s/a/b/ lib/b.py", "git mv tools core/tools") == [
        "lib/b.py (turn 2)",
        "core/tools/a.py (turn 1)",
        "core/tools (moved from tools, turn 3)",
    ]
    assert logged("sed -i s/a/b/ /w/tools/a.py", "mv tools core")[0] == "/w/core/a.py (turn 1)"
    assert logged("sed -i s/a/b/ /w/tools/a.py", "mv /w/tools /w/core")[0] == "/w/core/a.py (turn 1)"
    assert "packages/api/src/x.py (turn 1)" in logged("sed -i s/a/b/ packages/api/src/x.py", "mv src lib")


def test_the_files_that_the_report_of_a_sub_agent_lists_are_told_as_its_own():
    report = "Done.\n\n## Files created\n\n- `src/a.py` - the store\n- **src/b.py**: its test\n\nNotes:\n- see c.py"
    transcript = talk("u: go", "a: x | edit(src/a.py) as c0 | Task(build it) as c", "t: c0 = ok", f"t: c = {report}")
    lines = [record.line for record in file_log(transcript)]
    assert lines == ["src/a.py (2 edits, turn 1)", "src/b.py (sub-agent, turn 1)"]
    transcript = talk(
        "u: go", "a: x | delegate(build it) as c", "t: c = [Sub-agent]\nFiles modified: a.py, lib/b.py\nok"
    )
    assert [record.path for record in file_log(transcript)] == ["a.py", "lib/b.py"]


def edited(*edits):
    """The lines of the log after edits, each a path, the old and the new text, in a turn of its own."""
    lines = []
    for number, (path, old, new) in enumerate(edits):
        call = f"edit({json.dumps({'file_path': path, 'old_string': old, 'new_string': new})})"
        lines += [f"u: go {number}", f"a: x | {call} as c{number}", f"t: c{number} = ok"]
    return [record.line for record in file_log(talk(*lines))]


def test_names_that_a_later_edit_of_the_file_takes_away_are_not_told_and_older_ones_have_their_turn():
    one, two = "def load(path):\n    pass\n", "def save(path):\n    pass\n"
    assert edited(("a.py", "x", one), ("a.py", "y", two)) == ["a.py (2 edits, turn 2; adds load (turn 1), save)"]
    assert edited(("a.py", "x", one), ("a.py", one, two)) == ["a.py (2 edits, turn 2; adds save)"]
    assert edited(("a.md", "x", "## Why it is\n"), ("a.md", "## Why it is\n", "y")) == ["a.md (2 edits, turn 2)"]


def test_a_file_that_is_written_again_has_the_names_of_its_last_text():
    assert logged("cat > a.py <<'E'\ndef load():\ndef keep():\nE", "cat > a.py <<'E'\ndef keep():\nE") == [
        "a.py (created, 1 edit, turn 2; adds keep (turn 1))"
    ]


def test_names_that_several_files_add_and_the_methods_of_mocks_are_not_told():
    plan, spec = "## Test plan\n## Moving jobs\n", "## Test plan\n## Sharing\n"
    assert edited(("a.md", "x", plan), ("b.md", "x", spec)) == [
        "a.md (turn 1; adds Moving jobs)",
        "b.md (turn 2; adds Sharing)",
    ]
    mock = "function storeOf() {\n  return {\n    prepare(sql: string) {\n"
    assert edited(("db.test.ts", "x", mock)) == ["db.test.ts (turn 1; adds storeOf)"]
    assert edited(("db.ts", "x", mock)) == ["db.ts (turn 1; adds storeOf, prepare)"]


def test_a_name_that_one_hunk_moves_to_another_is_still_there():
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@\n+def load():\n+    pass\n@@\n-def load():\n-    pass\n x\n"
        "*** End Patch"
    )
    assert logged(f"apply_patch <<'P'\n{patch}\nP") == ["a.py (turn 1; adds load)"]


def test_what_an_earlier_digest_tells_of_a_file_is_read_back():
    lines = (
        "a.py (created, 2 edits, deleted, turn 3)",
        "b (old).py (sub-agent, turn 2)",
        "c.py",
        "d.py (turn 1)",
        "e.py (2 edits, turn 3; adds one, two (turn 1), three (turn 2), four)",
        "/tmp/g.py (copied from g.py, 1 edit, turn 3)",
        "h.png (downloaded, turn 3)",
        "f.py (turn 3): the retries (see f.md): two more",
    )
    digest = "\n".join([OPENING, "", "## Files changed", *(f"- {line}" for line in lines)])
    log = file_log(talk(f"u: {digest}", "a: ok"))
    assert [record.full_line for record in log] == list(lines)


def test_commands_in_blocks_of_text_count_as_calls_where_a_harness_answers_them():
    ran = "u: <returncode>0</returncode>\n<output>\nx\n</output>"
    transcript = talk(
        "u: go",
        "a: I read it.\n```bash\ncat src/a.py\n```",
        ran,
        "a: I mend it.\n```bash\nsed -i 's/a/b/' src/b.py\n```",
        ran,
        "a: And this.\n```bash\nsed -i 's/a/b/' src/c.py\n```",
        "u: no",
    )
    assert [(record.path, record.edits) for record in file_log(transcript)] == [("src/a.py", 0), ("src/b.py", 1)]


@pytest.mark.parametrize("again", ["rm src/a.py; cp x.py src/a.py", "rm src/a.py\nprintf 1 > src/a.py"])
def test_a_file_that_one_call_deletes_and_makes_again_is_not_deleted(again):
    (record,) = (each for each in log_of(changed("src/a.py"), ran(again)) if each.path == "src/a.py")
    assert not record.deleted


def test_a_file_that_one_patch_deletes_and_adds_is_not_deleted():
    anew = "*** Begin Patch\n*** Delete File: a.md\n*** Add File: a.md\n+new\n*** End Patch"
    (record,) = log_of(("apply_patch", {"input": anew}))
    assert not record.deleted


@pytest.mark.parametrize("later", ["wc -l data/a.json", "python -c \"print(open('/home/me/x/data/a.json').read())\""])
def test_a_deleted_file_that_a_later_command_works_with_is_there_again(later):
    (record,) = log_of(changed("data/a.json"), ran("rm -f data/a.json && python fetch.py"), ran(later))
    assert not record.deleted
    assert log_of(ran("rm -f data/a.json"), ran(later)) == ()


@pytest.mark.parametrize("later", ["wc -l data/a.json.bak", "git add -A data/a.json", "ls data"])
def test_a_deleted_file_that_no_later_command_works_with_stays_deleted(later):
    (record,) = (each for each in log_of(changed("data/a.json"), ran("rm -f data/a.json"), ran(later)) if each.deleted)
    assert record.path == "data/a.json"


def test_an_option_of_a_call_in_a_program_is_no_file():
    program = "python - <<'E'\norient = 'x.json'\nout.write_text(frame.to_json(orient=\"records\"))\nE"
    assert [record.path for record in log_of(ran(program))] == []


def test_a_bare_name_is_the_file_of_that_name_in_another_folder_only_if_that_has_its_whole_path():
    assert [record.path for record in log_of(changed("README.md"), changed("e2e/README.md"), changed("../cli/README.md"))] == [
        "README.md", "e2e/README.md", "../cli/README.md",
    ]  # fmt: skip
    (record,) = log_of(changed("/home/me/project/README.md"), changed("README.md"))
    assert record.edits == 2
    (record,) = log_of(changed("e2e/README.md"), changed("project/e2e/README.md"))
    assert record.edits == 2


def test_a_file_that_git_restores_is_there_again():
    work = (changed("src/a.py"), ran("rm src/a.py"))
    (record,) = log_of(*work)
    assert record.deleted
    (record,) = log_of(*work, ran("git restore src/a.py"))
    assert not record.deleted
    (record,) = log_of(*work, ran("git restore --staged src/a.py"))
    assert record.deleted
    (record,) = log_of(*work, ran("git restore --source HEAD~1 --staged --worktree src/a.py"))
    assert not record.deleted


def changed(path):
    return "edit", {"file_path": path, "old_string": "a", "new_string": "b"}


def ran(command):
    return "bash", {"command": command}


def log_of(*calls):
    lines = [
        line
        for n, (name, arguments) in enumerate(calls)
        for line in (f"a: x | {name}({json.dumps(arguments)}) as c{n}", f"t: c{n} = ok")
    ]
    return file_log(talk("u: go", *lines))


def test_an_edit_that_nothing_answers_says_so_until_a_later_one_is_answered():
    lines = ["u: go", "a: x | edit(a.py) as c1", "t: c1 = ok", "a: x | edit(a.py) as c2", "u: wait"]
    asked = talk(*lines)
    assert [record.line for record in file_log(asked)] == ["a.py (2 edits, no result of the last edit, turn 1)"]
    told = f"{OPENING}\n\n## Files changed\n- a.py (2 edits, no result of the last edit, turn 1)"
    assert [record.line for record in file_log(talk(f"u: {told}", "u: on"))] == [told.partition("\n- ")[2]]
    again = talk(*lines, "a: x | edit(a.py) as c3", "t: c3 = ok")
    assert [record.line for record in file_log(again)] == ["a.py (3 edits, turn 2)"]


def names_told(*lines):
    """Return what the log says that edits added to each file."""
    records = file_log(talk("u: go", *lines))
    return {record.path: [name for name, _ in record.names] for record in records if record.changed}


def writes(path, text):
    return f"a: x | write({json.dumps({'path': path, 'content': text})}) as w{len(text)}", f"t: w{len(text)} = ok"


def test_comments_of_code_and_of_settings_are_no_names_that_a_file_adds_and_headings_of_a_text_are():
    text = "# Collect all events\nx = 1\n"
    for path in ("run.py", ".gitignore", ".env"):
        assert names_told(*writes(path, text)) == {path: []}
    assert names_told(*writes("notes.md", text)) == {"notes.md": ["Collect all events"]}


def test_a_file_that_is_written_anew_adds_only_what_was_not_read_in_it():
    before = ("a: x | read(store.rs) as r", "t: r = struct Store {}\nfn load() {}")
    after = "struct Store {}\nstruct Limits {}\nfn load() {}\nfn check() {}\nmod tests {\n    fn it_loads() {}\n}\n"
    assert names_told(*before, *writes("store.rs", after)) == {"store.rs": ["Limits", "check"]}


def test_of_many_names_the_first_of_the_newest_turn_are_told_and_what_a_file_keeps_for_itself_last():
    text = "".join(f"def {name}(): ...\n" for name in ("_own", "first", "second", "third", "fourth", "fifth"))
    assert names_told(*writes("a.py", text)) == {"a.py": ["first", "second", "third", "fourth"]}


def test_a_file_that_powershell_shows_was_read():
    read = 'a: x | shell({"command": "Get-Content -LiteralPath app\\\\[slug]\\\\page.tsx"}) as c'
    assert [record.line for record in file_log(talk("u: go", read, "t: c = x"))] == ["app\\[slug]\\page.tsx"]


def test_a_package_that_is_added_changes_the_file_that_asks_for_it():
    call = json.dumps({"command": "cd web && npm install -D vitest 2>&1"})
    (record,) = file_log(talk("u: go", f"a: x | bash({call}) as c1", "t: c1 = added 1 package"))
    assert record.full_line == "web/package.json (turn 1): by `npm install -D vitest`"
    assert logged("npm install", "npm install -g vitest", "npm install --prefix web vitest") == []
    assert logged("cargo add serde") == ["Cargo.toml (turn 1)"]


def test_files_read_are_told_by_folder_and_read_back():
    paths = ["src/a.py", "README.md", "src/b.py", "docs/c.md"]
    lines = by_folder(paths)
    assert lines == ("src/: a.py, b.py", "README.md", "docs/c.md")
    digest = "\n".join([OPENING, "", "## Files read", *(f"- {line}" for line in lines)])
    back = file_log(talk(f"u: {digest}", "u: on"))
    assert [record.path for record in back] == ["src/a.py", "src/b.py", "README.md", "docs/c.md"]
