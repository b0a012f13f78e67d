import json

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
    assert told(("git status", clean), EDIT) == ()


def test_a_status_before_the_last_edits_says_so_and_one_before_a_commit_is_not_told():
    status = ("git status -sb", STATUS)
    (line,) = told(status, EDIT)
    assert line.endswith("?? notes/ (before the last edits)")
    assert told(status, ("git commit -am x", "[feature 1a2b3c4d] x\n 1 file changed")) == ()
    assert told(status, ("git checkout -b other", "Switched to a new branch 'other'")) == ()
    later = ["a: Done."]
    for number in range(5):
        later += [f"u: {number}", "a: Done."]
    assert told(status, *later) == ()


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
        "last push (turn 1): feature -> feature",
        "pull request (turn 1): https://github.com/a/b/pull/16",
    )
    left = told(begun, push, create, ("git checkout main", "Switched to branch 'main'"))
    assert left[1] == "pull request (turn 1, since then on branch main): https://github.com/a/b/pull/16"
    merged = told(begun, create, ("gh pr merge 16 --squash", "Merged pull request #16 (x)"))
    assert merged == ("pull request (turn 1, merged): https://github.com/a/b/pull/16",)
    later = told(push, ("git commit -m x", "[feature 1a2b3c4d] x"))
    assert later == ("last push (turn 1, before the last commit): feature -> feature",)


def test_the_state_names_the_branch_once():
    begun = ("git checkout -b feature", "Switched to a new branch 'feature'")
    assert "branch (turn 1): Switched to a new branch 'feature'" in state(conversation(begun))
    lines = state(conversation(begun, ("git status -sb", STATUS)))
    assert "git status (turn 1), branch feature [ahead 1]: M src/load.py, ?? notes/" in lines
    assert not any(line.startswith("branch ") for line in lines)


def test_a_status_that_failed_or_that_only_a_text_shows_is_none():
    assert told(("cat notes.txt", STATUS)) == ()
    assert told(("git status -sb", "fatal: not a git repository")) == ()
