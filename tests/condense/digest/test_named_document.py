import json
import time

import pytest

from refold._condense.digest.named_document import NAMED_DOCUMENT, named_document
from refold._condense.digest.render import digest_text
from refold.testing import talk, view_of

PLAN = "# Plan\n\n## Phase 1: the store\n\n- Keep rows.\n- Add `GET /rows`.\n\n## Phase 2: the page\n\n- Show rows.\n"
SPEC = "# Phase 1: the store\n\nOut of scope: the page.\n"


def written(path, text):
    return [
        f"a: x | write({json.dumps({'file_path': path, 'content': text})}) as c{path.replace('/', '')}",
        f"t: c{path.replace('/', '')} = ok",
    ]


def told(request, *lines, staying=1):
    transcript = talk("u: go", *lines, "a: Done.", f"u: {request}")
    return named_document(view_of(transcript), transcript.messages[len(transcript.messages) - staying :])


HEAD = "docs/plan.md (written in turn 1; read it again for what is not here):"


@pytest.mark.parametrize("request_", ["Create a branch for phase 1 and begin", "begin Phase 1", "now do phase 1"])
def test_the_part_of_a_plan_that_a_request_names_is_told(request_):
    lines = told(request_, *written("docs/plan.md", PLAN))
    assert lines == (HEAD, "Phase 1: the store:", "Keep rows.", "Add `GET /rows`.")


@pytest.mark.parametrize("request_", ["implement docs/plan.md", "follow @plan.md", "go on with the plan"])
def test_a_document_that_a_request_names_as_a_whole_is_told_whole(request_):
    lines = told(request_, *written("docs/plan.md", PLAN))
    assert lines[0] == HEAD
    assert lines[-2:] == ("Phase 2: the page:", "Show rows.")


def test_a_document_of_its_own_comes_before_the_part_of_one_that_is_older():
    lines = told("begin phase 1", *written("docs/plan.md", PLAN), *written("docs/one.md", SPEC))
    assert lines[0].startswith("docs/one.md (written in turn 1;")
    assert lines[1:] == ("Phase 1: the store:", "Out of scope: the page.")


def test_a_document_that_was_only_read_is_told_as_read():
    read = [f"a: x | read({json.dumps({'file_path': 'docs/plan.md'})}) as c", f"t: c = {PLAN}"]
    assert told("begin phase 2", *read)[0].startswith("docs/plan.md (read in turn 1;")


@pytest.mark.parametrize(
    "request_", ["fix the test", "begin phase 3", "is the page done?", f"do phase 1\n{'x ' * 900}"]
)
def test_a_request_that_names_none_or_says_itself_what_is_to_be_done_has_none(request_):
    assert told(request_, *written("docs/plan.md", PLAN)) == ()


def test_a_document_that_stands_in_the_view_is_not_told_again():
    assert told("begin phase 1", *written("docs/plan.md", PLAN), staying=4) == ()


def test_the_digest_tells_the_document():
    transcript = talk("u: go", *written("docs/plan.md", PLAN), "a: Done.", "u: begin phase 1")
    messages = transcript.messages
    digest = digest_text(view_of(transcript), messages[1:3], staying=(messages[0], *messages[3:]), limit=2_000)
    assert f"## {NAMED_DOCUMENT}\n- {HEAD}\n- Phase 1: the store:\n- Keep rows.\n- Add `GET /rows`." in digest


def test_of_several_documents_with_such_a_part_it_is_the_one_that_the_request_names():
    other = written("notes/other.md", "## Phase 1: another store\n\n- Drop rows.\n")
    lines = told("do phase 1 of docs/plan.md", *written("docs/plan.md", PLAN), *other)
    assert lines[:2] == (HEAD, "Phase 1: the store:")
    assert told("do phase 1 of docs/unread.md", *other) == ()
    assert told("follow .claude/next.md", *written(".claude/next.md", PLAN))[0].startswith(".claude/next.md (written")


def test_a_document_that_was_changed_after_it_was_seen_says_so():
    edit = {"file_path": "docs/plan.md", "old_string": "Keep rows.", "new_string": "Drop rows."}
    change = [f"a: x | edit({json.dumps(edit)}) as e", "t: e = ok"]
    lines = told("begin phase 1", *written("docs/plan.md", PLAN), *change)
    assert lines[0] == HEAD.replace("turn 1;", "turn 1, changed since;")


@pytest.mark.parametrize("end", ["*** End Patch", "*** End Patch\n", "*** End Patch\nEOF\n"])
def test_a_document_that_a_patch_adds_holds_nothing_of_what_stands_behind_the_patch(end):
    patch = "\n".join(
        ["*** Begin Patch", "*** Add File: docs/plan.md", *(f"+{line}" for line in PLAN.split("\n")), end]
    )
    command = {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{patch}"]}
    lines = told("begin phase 1", f"a: x | shell({json.dumps(command)}) as c", "t: c = Success.")
    assert lines == (HEAD, "Phase 1: the store:", "Keep rows.", "Add `GET /rows`.")


def test_a_document_of_many_lines_or_of_one_long_one_is_told_by_its_beginning():
    text = f"# Plan\n\n## Phase 1 a{' #' * 25_000}x\n\n" + "".join(f"row {n}\n" for n in range(2_000))
    began = time.process_time()
    lines = told("begin phase 1", *written("docs/plan.md", text))
    assert time.process_time() - began < 2
    assert len(lines) == 61
    assert max(map(len, lines)) < 250


def test_code_front_matter_and_headings_without_content_are_left_out_of_a_document():
    text = "---\nname: store\n---\n# Plan\n\n## Empty\n\n## Rows\n\n```python\npass\n```\n- Keep rows.\n\n## End\n"
    assert told("implement docs/plan.md", *written("docs/plan.md", text)) == (HEAD, "Plan:", "Rows:", "Keep rows.")


def test_the_rules_of_a_long_document_come_first_and_what_stands_in_the_view_is_no_part_of_it():
    steps = [f"Step {n} makes part {n}." for n in range(90)]
    lines = written("docs/plan.md", "\n".join((*steps, "Never push a part alone.")))
    transcript = talk("u: go", *lines, "a: Done.", f"a: {steps[0]}", "u: implement docs/plan.md")
    told_lines = named_document(view_of(transcript), transcript.messages[-2:])
    assert told_lines[1:3] == ("Never push a part alone.", "Step 1 makes part 1.")


def test_the_document_of_the_first_request_counts_until_something_was_changed():
    read = [f"a: x | read({json.dumps({'file_path': 'docs/plan.md'})}) as c", f"t: c = {PLAN}", "a: Shall I begin?"]
    for between, is_told in (
        ([], True),
        (["u: rename a", "a: x | edit(src/a.py) as e", "t: e = ok", "a: Done."], False),
    ):
        transcript = talk("u: 請閱讀/work/docs/plan.md, 先討論", *read, *between, "u: ok 開始")
        assert bool(named_document(view_of(transcript), transcript.messages[-1:])) == is_told


def test_a_long_request_counts_with_the_document_that_its_beginning_names():
    request = f"Follow /work/docs/plan.md for all.\n{'x ' * 900}"
    assert told(request, *written("docs/plan.md", PLAN))[0] == HEAD
