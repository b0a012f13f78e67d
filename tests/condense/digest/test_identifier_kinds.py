import re

import pytest

from refold._condense.digest.identifier_kinds import Folders, argument_names, is_whole, kind_of, labeled, without_codes
from refold.core.messages import ToolCall


@pytest.mark.parametrize(
    "word",
    [
        "L10",
        "lines.join",
        "os.Exit",
        "strings.TrimLeft",
        "fs.readFileSync",
        "r7/plan/SKILL.md",
        "0o644",
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
        "_why_",
        "research_",
        "5max_retries",
        "store.go-158",
        "a/src/store.go",
        "s/0",
        "SET/i.test",
        "last_event_seq/i.test",
        "jobs/.exec",
        "dev/null",
        "git/index",
        "git/ORIG_HEAD",
        "abc1234",
        "abcdef0123456789",
        "0_0_30px_rgba",
        "92px_1fr",
        "ring-blue-500/20",
        "w-2/3",
        "3v0a3",
        "S3-compatible",
        "f3f9ff",
        "粮食/饲料",
        "運用に移行。works/books",
        "self.symbols",
    ],
)
def test_words_that_lead_nowhere_are_no_identifiers(word):
    assert kind_of(word) is None


@pytest.mark.parametrize(
    ("word", "lead", "kind"),
    [
        ("src/store.py", "", "path"), ("store.py", "", "path"), ("home/me", "/", "path"), ("and/or", "", "words"), ("T1/T2", "", "words"), ("2FA/TOTP", "", "words"), ("React/Next.js", "", "words"), ("docs/設計.md", "", "path"), ("deep-clone/deep-merge", "", "words"),
        ("github.com/me/it", "//", "url"), ("github.com/me/it", "", "url"), ("store.load_items", "", "dotted"),
        ("load_items", "", "name"), ("HTTPServer", "", "name"), ("TS2339", "", "name"), ("3fa85c1", "", "id"),
        (".github/workflows/ci.yml", "", "path"), ("internal/git/index.go", "", "path"), (".git/config", "", "path"), ("tests/i.test.ts", "", "path"),
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


def test_a_number_is_told_with_what_it_is_and_a_position_is_nothing():
    assert labeled("listens on port 8080 now", "8080") == "port 8080"
    assert labeled('{"timeout": 300}', "300") == "timeout 300"
    assert labeled("in all 278 tests passed", "278") == "278 tests"
    assert labeled("see commit 3fa85c1", "3fa85c1") == "commit 3fa85c1"
    assert not labeled("src/a.py:136:def load", "136")
    assert not labeled("  136\tdef load", "136")
    assert not labeled("see line 136", "136")


def test_in_output_a_word_in_another_column_says_nothing_of_a_number():
    output = "drwxr-xr-x 2 root 4096 src\nsize=4097\nMakefile:136: all"
    assert [labeled(output, number, prose=False) for number in ("4096", "4097", "136")] == ["", "size 4097", ""]


@pytest.mark.parametrize(
    "text",
    [
        "ls *_test.go", "find . -name '*.spec.ts'", "${base}/src/_test.go", "see <name>/_test.go", "at …_test.go",
        "href=viewforum_test.php?id=23", "$HOME/src/_test.go", "http://localhost:8000/_test.go", "src/_test.go*",
    ],
)  # fmt: skip
def test_a_path_that_a_pattern_a_variable_or_a_cut_leaves_is_not_whole(text):
    raw = max(re.findall(r"[\w./-]+", text), key=lambda word: ("test" in word or "spec" in word, len(word)))
    assert not is_whole(text, raw)


@pytest.mark.parametrize("text", ["cat >/a/b.py", "<path>/a/b.py</path>", "(/a/b.py)", "*/a/b.py, then /a/b.py:12"])
def test_a_path_is_whole_beside_signs_that_do_not_belong_to_it(text):
    assert is_whole(text, "/a/b.py")


def test_names_of_arguments_are_found_at_any_depth_but_not_in_texts():
    call = ToolCall("c", "edit", '{"file_path": "a.py", "edits": [{"old_string": "{\\"not_this\\": 1}"}]}')
    assert argument_names(call) == {"file_path", "edits", "old_string"}


def test_codes_of_terminals_json_and_addresses_part_words():
    assert without_codes("\x1b[32mPASS\x1b[0m a\\nb %2Fcase").split() == ["PASS", "a", "b", "case"]
    assert without_codes("R2\\_BUCKET\\nnext \\x1b[1mhello").split() == ["R2_BUCKET", "next", "hello"]
    text = "plain words"
    assert without_codes(text) is text


def test_a_path_of_windows_is_parted_where_a_folder_begins_like_an_escape():
    assert without_codes("D:\\src\\run_test.go and a\\nrun_all").split()[:4] == ["D:", "src", "run_test.go", "and"]
    assert "un_test.go" not in without_codes("D:\\src is there: e2e\\run_test.go").split()
    assert without_codes("import os\\nload_items()").split() == ["import", "os", "load_items()"]
