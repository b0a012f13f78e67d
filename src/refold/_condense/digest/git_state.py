"""Where the work stands in Git: branch, worktree and changed files of the last `git status`, the last push, and the
pull request.

They are read off what the commands printed. What a later commit, or a later status of the same branch, replaces is not
told, and of a pull request it is told that the work has left its branch.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import is_shell, writes
from refold._condense.call_outline import one_line
from refold._condense.digest.outcomes import answered, failed
from refold._condense.digest.turns import turns_at
from refold._condense.file_views import command_of, is_scratch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.view import View

__all__ = ["STATUS", "git_state"]

STATUS = "git status "  # how the line of a status begins
BACK, TURNS = 400, 3  # messages at the end, and turns before the newest one, in which they are looked for
READ = 20_000  # characters of an output
LENGTH = 120  # characters of a changed file
STATUSES, FILES = 3, 6  # branches whose status is told, and changed files that are named of each
GIT = re.compile(r"\b(?:git|gh pr|glab mr)\b")
SHORT_BRANCH = re.compile(r"## (?:No commits yet on )?(.+?)(?:\.\.\.(\S+))?(?: \[([^\]]+)\])?")
SHORT_FILE = re.compile(r"(?!  )[ MADRCUT?!]{2} (\S.*)")
LONG_BRANCH = re.compile(r"On branch (\S+)")
LONG_FILE = re.compile(r"\t(?:(modified|new file|deleted|renamed|both modified): +)?(\S.*)")
LETTERS = {"modified": "M", "new file": "A", "deleted": "D", "renamed": "R", "both modified": "UU", "": "??"}
CLEAN = re.compile(r"nothing to commit, working tree clean|nothing added to commit")
ASKS = re.compile(r"\bgit(?: -[cC] \S+)* status\b")
COMMITS = re.compile(r"\bgit(?: -[cC] \S+)* commit\b")
CHANGES = re.compile(r"\bgit(?: -[cC] \S+)* (?:commit|checkout|switch|stash|rebase|reset|merge|pull|restore|clean)\b")
PUSHES = re.compile(r"\bgit(?: -[cC] \S+)* push\b")
PUSHED = re.compile(r"^ *(?:[+*] )?(?:\[new branch\]|[0-9a-f]{7,}\.{2,3}[0-9a-f]{7,}) +(\S+ -> \S+)", re.M)
COMMITTED = re.compile(r"^\[(\S+)[^\]\n]* [0-9a-f]{7,40}\] ", re.M)
SWITCHED = re.compile(r"^(?:On branch |Switched to (?:a new )?branch '|## )([^\s'.]+(?:\.(?!\.)[^\s'.]+)*)", re.M)
WORKTREE = re.compile(r"\bworktree add (?:-f |--force )?(?:-[bB] (\S+) )?(?!-)(\S+)(?: -[bB] (\S+))?")
PULL = re.compile(r"https://[^\s\"']+/(?:pull|merge_requests)/\d+")
MERGED = re.compile(r"\bmerged pull request\b|\"state\": ?\"MERGED\"|\bwas already merged\b", re.I)


class _Status(Struct):
    """The status of a branch: what it says of the branch it follows, the changed files, and where it was printed."""

    branch: str
    follows: str = ""
    files: tuple[str, ...] = ()
    position: int = 0


class _Seen(Struct):
    """What the commands of a transcript have shown, the newest of each."""

    statuses: dict[str, _Status] = {}
    folders: dict[str, str] = {}  # of worktrees, by branch
    branch: str = ""
    push: tuple[int, str] = (-1, "")
    commit: int = -1
    edit: int = -1
    pull: tuple[int, str, str, bool] = (-1, "", "", False)  # where, its address, the branch then, whether it is merged


def git_state(view: View) -> Iterator[str]:
    """Yield the last status of each branch with changes, the newest first, the last push, and the pull request."""
    turns = turns_at(view.transcript)
    seen = _seen(view)
    newest = sorted(seen.statuses.values(), key=lambda status: -status.position)
    recent = (status for status in newest if turns[status.position] >= turns[-1] - TURNS)
    listed = [
        status
        for status in recent
        if status.files or (status is newest[0] and status.branch == seen.branch and seen.edit < status.position)
    ][:STATUSES]
    for status in listed:
        folder = f" in {seen.folders[status.branch]}" if status.branch in seen.folders else ""
        more = f" and {len(status.files) - FILES} more" if len(status.files) > FILES else ""
        files = ", ".join(status.files[:FILES]) + more if status.files else "no changes"
        since = " (before the last edits)" if status.position < seen.edit and status is listed[0] else ""
        branch = f"branch {status.branch}{folder}{status.follows}: " if status.branch else ""
        yield f"{STATUS}(turn {turns[status.position]}), {branch}{files}{since}"
    if seen.push[1]:
        later = ", before the last commit" if seen.commit > seen.push[0] else ""
        yield f"last push (turn {turns[seen.push[0]]}{later}): {seen.push[1]}"
    at, address, branch, merged = seen.pull
    if address:
        left = f", since then on branch {seen.branch}" if branch and seen.branch and branch != seen.branch else ""
        yield f"pull request (turn {turns[at]}{', merged' if merged else ''}{left}): {address}"


def _seen(view: View) -> _Seen:
    """Return what commands have shown, in order, so that a commit ends the status of its branch."""
    seen = _Seen()
    messages = view.transcript.messages
    for position in range(max(len(messages) - BACK, 0), len(messages)):
        for call, result in answered(view, [messages[position]]):
            wrong = failed(call, result)
            if not wrong and any(not is_scratch(path) for path in writes(call)):
                seen.edit = position
            command = command_of(call) if is_shell(call) else ""
            if wrong or not GIT.search(command):
                continue
            text = result.text[:READ]
            for first, path, second in WORKTREE.findall(command):
                if first or second:
                    seen.folders[first or second] = path
            committed = COMMITTED.findall(text)
            if CHANGES.search(command):  # what was printed of the branch before holds no more
                for branch in (*committed, seen.branch, ""):
                    seen.statuses.pop(branch, None)
            seen.commit = position if committed or COMMITS.search(command) else seen.commit
            named = [name for name in SWITCHED.findall(text) if name != "HEAD"]
            seen.branch = named[-1] if named else seen.branch
            if ASKS.search(command):
                for status in _statuses(text, seen.branch):
                    status.position = position
                    seen.statuses[status.branch] = status
            if PUSHES.search(command) and (pushed := PUSHED.findall(text)):
                seen.push = position, " ".join(pushed[-1].split())
            if "gh pr" in command or "glab mr" in command:
                address = PULL.search(text)
                known = address is None or address[0] == seen.pull[1]
                merged = MERGED.search(text) is not None or (known and seen.pull[3])
                if address or (merged and seen.pull[1]):
                    place = seen.pull[0] if known and not merged else position
                    branch = seen.pull[2] if known else seen.branch
                    seen.pull = place, address[0] if address else seen.pull[1], branch, merged
    return seen


def _statuses(text: str, branch: str) -> Iterator[_Status]:
    """Yield the statuses that a text shows, in the short and in the long form; `branch` is where none is named."""
    status: _Status | None = None
    files: list[str] = []
    for line in text.split("\n"):
        if (named := SHORT_BRANCH.fullmatch(line)) or (named := LONG_BRANCH.fullmatch(line)):
            if status is not None:
                status.files = tuple(files)
                yield status
            ahead = named[3] if named.re is SHORT_BRANCH else ""
            status, files = _Status(named[1], f" [{ahead}]" if ahead else ""), []
        elif short := SHORT_FILE.fullmatch(line):
            status = status or _Status(branch)
            files.append(one_line(f"{line[:2].strip()} {short[1]}", LENGTH))
        elif long := LONG_FILE.fullmatch(line):
            status = status or _Status(branch)
            files.append(one_line(f"{LETTERS[long[1] or '']} {long[2]}", LENGTH))
        elif status is None and CLEAN.match(line):
            status = _Status(branch)
    if status is not None:
        status.files = tuple(files)
        yield status
