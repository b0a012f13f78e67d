import json
import time

import pytest

from refold._condense.digest.git_state import git_state
from refold._condense.digest.state import state
from refold.testing import talk, view_of

STATUS = "## feature...origin/feature [ahead 1]\n M src/load.py\n?? notes/"


def conversation(*lines):
    """A conversation in which each pair of a command and its output is a call, each other line stands as it is."""
    told = []
    for number, line in enumerate(lines):
        if isinstance(line, str):
            told.append(line)
        else:
            command, output = line
            told += [f"a: x | bash({json.dumps({'command': command})}) as c{number}", f"t: c{number} = {output}"]
    return view_of(talk("u: go", *told))


def told(*lines):
    return tuple(git_state(conversation(*lines)))


EDIT = ('sed -i "s/a/b/" src/load.py', "")


def test_the_last_status_is_told_with_its_branch_and_changed_files():
    assert told(("git status --short --branch", STATUS)) == (
        "git status (turn 1), branch feature [ahead 1]: M src/load.py, ?? notes/",
    )
    long = (
        "On branch feature\nChanges not staged for commit:\n  (use git add)\n\tmodified:   src/load.py\n\n"
        "Untracked files:\n\tnotes/\n"
    )
    assert told(("git status", long)) == ("git status (turn 1), branch feature: M src/load.py, ?? notes/",)
    clean = "On branch feature\nnothing to commit, working tree clean"
    assert told(("git status", clean)) == ("git status (turn 1), branch feature: no changes",)
    assert told(("git status", clean), EDIT) == ("branch (turn 1): feature",)


def test_a_status_before_the_last_edits_says_so_and_one_before_a_commit_is_not_told():
    status = ("git status -sb", STATUS)
    (line,) = told(status, EDIT)
    assert line.endswith("?? notes/ (found so before the first edit)")
    (line,) = told(EDIT, status, EDIT)
    assert line.endswith("?? notes/ (before the last edits)")
    assert told(status, ("git commit -am x", "[feature 1a2b3c4d] x\n 1 file changed")) == ()
    assert told(status, ("git checkout -b other", "Switched to a new branch 'other'")) == ("branch (turn 1): other",)
    later = ["a: Done."]
    for number in range(5):
        later += [f"u: {number}", "a: Done."]
    assert told(status, *later) == ("branch (turn 1): feature",)


def test_each_worktree_with_changes_is_told_with_its_folder():
    lines = told(
        ("git worktree add ../side -b side", "Preparing worktree (new branch 'side')"),
        ("git -C ../side status -sb", "## side\n M a.py"),
        ("git status -sb", "## main\n M b.py"),
    )
    assert lines == (
        "git status (turn 1), branch main: M b.py",
        "git status (turn 1), branch side in ../side: M a.py",
    )


def test_the_last_push_and_the_pull_request_are_told_and_that_the_work_has_left_its_branch():
    push = ("git push -u origin feature", "To github.com:a/b.git\n * [new branch]      feature -> feature")
    create = ("gh pr create --fill", "https://github.com/a/b/pull/16")
    begun = ("git checkout -b feature", "Switched to a new branch 'feature'")
    assert told(begun, push, create) == (
        "branch (turn 1): feature",
        "last push (turn 1): feature -> feature",
        "pull request (turn 1): https://github.com/a/b/pull/16",
    )
    left = told(begun, push, create, ("git checkout main", "Switched to branch 'main'"))
    assert left[0] == "branch (turn 1): main"
    assert left[2] == "pull request (turn 1, since then on branch main): https://github.com/a/b/pull/16"
    merged = told(begun, create, ("gh pr merge 16 --squash", "Merged pull request #16 (x)"))
    assert merged[1:] == ("pull request (turn 1, merged): https://github.com/a/b/pull/16",)
    later = told(push, ("git commit -m x", "[feature 1a2b3c4d] x"))
    assert later == ("last push (turn 1, before the last commit): feature -> feature",)


def test_the_state_names_the_branch_once():
    begun = ("git checkout -b feature", "Switched to a new branch 'feature'")
    assert "branch (turn 1): feature" in state(conversation(begun))
    lines = state(conversation(begun, ("git status -sb", STATUS)))
    assert "git status (turn 1), branch feature [ahead 1]: M src/load.py, ?? notes/" in lines
    assert not any(line.startswith("branch ") for line in lines)


def test_a_status_that_failed_or_that_only_a_text_shows_is_none():
    assert told(("cat notes.txt", STATUS)) == ()
    assert told(("git status -sb", "fatal: not a git repository")) == ()


def test_a_command_that_failed_may_have_committed_and_a_quiet_switch_leaves_the_branch_unknown():
    status = ("git status -sb", STATUS)
    chain = ("git commit -qam x && pytest", "1 failed\n[exit code: 1]")
    assert told(status, chain) == ("branch (turn 1): feature",)
    create = ("gh pr create --fill", "https://github.com/a/b/pull/16")
    away = ("git checkout -q main", "")
    assert told(status, create, away)[-1] == "pull request (turn 1): https://github.com/a/b/pull/16"
    assert told(status, away, ("git status --short", " M a.py")) == ("git status (turn 1): M a.py",)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git push --dry-run", "To github.com:a/b.git\n   1a2b3c4..5d6e7f8  main -> main"),
        (
            "git fetch && git push",
            "From github.com:a/b\n   1a2b3c4..5d6e7f8  main -> origin/main\nEverything up-to-date",
        ),
    ],
)
def test_a_try_of_a_push_and_what_was_fetched_are_no_push(command, output):
    assert told((command, output)) == ()


def test_what_was_pushed_is_no_longer_ahead():
    push = ("git push", "To github.com:a/b.git\n   1a2b3c4..5d6e7f8  feature -> feature")
    status, _ = told(("git status -sb", STATUS), push)
    assert status == "git status (turn 1), branch feature: M src/load.py, ?? notes/"


@pytest.mark.parametrize(
    ("command", "output", "ending"),
    [
        ("gh pr close 16", "✓ Closed pull request a/b#16 (x)", ", closed"),
        ("gh pr merge 7", "✓ Merged pull request a/b#7 (y)", ""),
        ("gh pr list --json url,state", '[{"url": "https://github.com/a/b/pull/7", "state": "MERGED"}]', None),
        (
            "gh pr list --json url,state",
            '[{"state": "MERGED", "url": "https://github.com/a/b/pull/7"}, {"url": "https://github.com/a/b/pull/16"}]',
            "",
        ),
    ],
)
def test_a_pull_request_has_ended_only_where_that_is_said_of_it(command, output, ending):
    create = ("gh pr create --fill", "https://github.com/a/b/pull/16")
    other = "pull request (turn 1, merged): https://github.com/a/b/pull/7"
    same = f"pull request (turn 1{ending}): https://github.com/a/b/pull/16"
    assert told(create, (command, output)) == (other if ending is None else same,)


def test_a_heading_of_a_text_is_no_branch():
    shown = "## Installation\n\nRun it.\n"
    assert told(("git status --short && cat README.md", f" M a.py\n{shown}")) == ("git status (turn 1): M a.py",)
    create = ("gh pr create --fill", "https://github.com/a/b/pull/16")
    lines = told(("git status -sb", "## main\n"), create, ("git show HEAD:README.md", shown))
    assert lines == (
        "git status (turn 1), branch main: no changes",
        "pull request (turn 1): https://github.com/a/b/pull/16",
    )


@pytest.mark.parametrize("line", ["[{}", "## {} x", "https://{}", "\tmodified:   {}"])
def test_a_long_line_takes_no_time_that_grows_with_its_square(line):
    began = time.process_time()
    told(*[("git status; git commit; gh pr view", line.format("https://" * 2_500))] * 20)
    assert time.process_time() - began < 5


def test_a_status_in_another_language_says_what_it_says_of_a_file():
    german = "Auf Branch haupt\n\tgeändert:       src/load.py\n\nUnversionierte Dateien:\n\tnotes.txt\n"
    assert told(("git status", german)) == ("git status (turn 1): geändert: src/load.py, ?? notes.txt",)


def test_of_several_calls_in_one_message_the_last_one_counts():
    calls = ["git status -sb", "git commit -qam x"]
    both = " | ".join(f"bash({json.dumps({'command': each})}) as c{at}" for at, each in enumerate(calls))
    lines = tuple(git_state(view_of(talk("u: go", f"a: x | {both}", f"t: c0 = {STATUS} | c1 = ok"))))
    assert lines == ("branch (turn 1): feature",)


def test_a_status_that_was_asked_in_several_folders_is_told_of_none():
    loop = 'for tree in /tmp/trees/*; do echo "== $tree"; git -C "$tree" status --short; done'
    assert told((loop, "== /tmp/trees/a\n M src/load.py\n?? node_modules\n== /tmp/trees/b\n?? node_modules")) == ()


def in_folder(command, folder, output, number):
    arguments = json.dumps({"cmd": command, "workdir": folder})
    return (f"a: x | exec_command({arguments}) as c{number}", f"t: c{number} = {output}")


def test_a_status_names_its_folder_where_commands_ran_in_several():
    here = in_folder("git status -sb", "/w/app", "## main\n M a.py", 1)
    there = in_folder("git status -sb", "/w/bench", "## main\n?? runs/", 2)
    lines = tuple(git_state(view_of(talk("u: go", *here, *there))))
    assert lines == (
        "git status (turn 1), branch main in /w/bench: ?? runs/",
        "git status (turn 1), branch main in /w/app: M a.py",
    )
    assert tuple(git_state(view_of(talk("u: go", *here)))) == ("git status (turn 1), branch main: M a.py",)
    below = in_folder("git status -sb", "/w/app/src", "## main\n M a.py", 2)
    assert tuple(git_state(view_of(talk("u: go", *here, *below)))) == ("git status (turn 1), branch main: M a.py",)


def test_of_a_command_in_two_folders_nothing_is_told_of_either():
    lines = told(("git -C /w/a status -sb; git -C /w/b status -sb", "## main\n M a.py\n## main"))
    assert lines == ()


def test_a_command_that_only_shows_the_branch_tells_it():
    assert told(("git branch --show-current", "feature")) == ("branch (turn 1): feature",)
    assert told(("git branch --show-current", "feature"), ("git status --short", " M a.py")) == (
        "git status (turn 1), branch feature: M a.py",
    )


def test_the_commits_of_the_current_request_are_told_before_the_last():
    commits = [("git commit -m x", f"[main 1a2b3c{n}] step {n}") for n in range(3)]
    assert told(*commits) == ("commits before it on the current request: 1a2b3c0 step 0; 1a2b3c1 step 1",)
    assert told(*commits, "a: Done.", "u: Now the notes.") == ()


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git status --short", " M old.py"),
        ("git diff HEAD -- old.py", "diff --git a/old.py b/old.py\n@@ -1 +1 @@\n-a\n+b"),
    ],
)
def test_what_was_changed_before_the_work_began_is_told_as_found(command, output):
    after = ("git status -sb", "## main\n M old.py\n M new.py")
    lines = told((command, output), ('sed -i "s/a/b/" new.py', ""), after)
    assert any(each.startswith("found uncommitted before the first edit (turn 1): ") for each in lines)
    assert not any(each.startswith("found") for each in told((command, output), after))
    assert not any(each.startswith("found") for each in told(("git diff main..side", output), EDIT, after))
