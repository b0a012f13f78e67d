"""Where the work stands in Git: branch, worktree and changed files of the last `git status`, the last push, and the
pull request.

They are read off what the commands printed. What a later commit, or a later status of the same branch, replaces is not
told, nor what a failed chain of commands may have changed, and of a pull request it is told that it was merged or
closed and that the work has left its branch.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import is_shell, writes
from refold._condense.call_outline import one_line
from refold._condense.digest.outcomes import answered, failed
from refold._condense.digest.turns import turns_at
from refold._condense.file_views import command_of, is_scratch
from refold._condense.shell_commands import GIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.view import View

__all__ = ["COMMITTED", "STATUS", "git_state"]

STATUS = "git status "  # how the line of a status begins
BACK, TURNS = 400, 3  # messages at the end, and turns before the newest one, in which they are looked for
READ, COMMAND = 20_000, 4_000  # characters of an output, and of a command
LENGTH, LINE = 120, 1_000  # characters of a changed file, and of a line that may name one
STATUSES, FILES = 3, 6  # branches whose status is told, and changed files that are named of each
READS = re.compile(r"\b(?:git|gh pr|glab mr)\b")
SHORT_BRANCH = re.compile(r"## (?:No commits yet on )?(HEAD \(no branch\)|\S+?)(?:\.\.\.(\S+))?(?: \[([^\]]+)\])?")
SHORT_FILE = re.compile(r"(?!  )[ MADRCUT?!]{2} (\S.*)")
LONG_BRANCH = re.compile(r"On branch (\S+)")
LONG_FILE = re.compile(r"\t(?:([^\W\d_][\w ]{1,30}): +)?(\S.*)")
LETTERS = {"modified": "M", "new file": "A", "deleted": "D", "renamed": "R", "both modified": "UU", "": "??"}
CLEAN = re.compile(r"nothing to commit, working tree clean|nothing added to commit")
ASKS = re.compile(rf"{GIT} status\b")
# Asked in several folders, or in one that only the shell knows: which of them a status is of cannot be told.
ELSEWHERE = re.compile(r"\bfor \w+ in\b|\bwhile read\b|\bxargs\b|\bgit -C [\"']?\$")
COMMITS = re.compile(rf"{GIT} commit\b")
CHANGES = re.compile(
    rf"{GIT} (?:commit|checkout|switch|stash|rebase|reset|merge|pull|restore|clean|cherry-pick|revert|am)\b"
)
SWITCHES = re.compile(rf"{GIT} (?:checkout|switch)\b(?![^|&;\n]* -- )")
STAYED = re.compile(r"^(?:Updated \d+ path|Already on )", re.M)  # what else it prints than where it switched to
PUSHES = re.compile(rf"{GIT} push\b")
NOT_PUSHED = re.compile(r" --dry-run\b| -n\b")
PUSHED = re.compile(r"^ *(?:[+*] )?(?:\[new branch\]|[0-9a-f]{7,}\.{2,3}[0-9a-f]{7,}) +(\S+ -> \S+)", re.M)
FETCHED = re.compile(r"^From \S(?s:.*?)(?:^To (?=\S)|\Z)", re.M)  # what stands above the remote that is pushed to
# What Git says of a commit: "[main 1a2b3c4] subject", "[main (root-commit) 1a2b3c4] subject".
COMMITTED = re.compile(r"^\[(?P<branch>[^\s\]]{1,250})[^\]\n]{0,40} [0-9a-f]{7,40}\] (?P<subject>.+)$", re.M)
SWITCHED = re.compile(r"^(?:On branch |Switched to (?:a new )?branch ')([^\s'.]+(?:\.(?!\.)[^\s'.]+)*)", re.M)
WORKTREE = re.compile(r"\bworktree add (?:-f |--force )?(?:-[bB] (\S+) )?(?!-)(\S+)(?: -[bB] (\S+))?")
PULL = re.compile(r"https://[^\s\"']{1,200}/(?:pull|merge_requests)/(\d+)")
ENDED = re.compile(  # how a pull request ended, with its number where it is told
    r"\b(merged|closed) pull request (?:\S*#(\d+))?|\"state\": ?\"(MERGED|CLOSED)\"|\bwas already (merged|closed)\b",
    re.I,
)


class _Status(Struct):
    """The status of a branch: what it says of the branch it follows, the changed files, and where it was printed."""

    branch: str
    follows: str = ""
    files: tuple[str, ...] = ()
    position: int = 0


class _Pull(Struct, frozen=True):
    """A pull request: its address, where it was shown, the branch then, and how it ended, if it has."""

    address: str = ""
    position: int = -1
    branch: str = ""
    ended: str = ""


class _Seen(Struct):
    """What the commands of a transcript have shown, the newest of each."""

    statuses: dict[str, _Status] = {}
    folders: dict[str, str] = {}  # of worktrees, by branch
    branch: str = ""
    push: tuple[int, str] = (-1, "")
    commit: int = -1
    edit: int = -1
    pull: _Pull = _Pull()

    def take(self, position: int, command: str, text: str) -> None:
        """Take in what a command has printed that went well."""
        self.folders |= {first or second: path for first, path, second in WORKTREE.findall(command) if first or second}
        self.take_changes(position, command, text)
        if ASKS.search(command) and not ELSEWHERE.search(command):
            for status in _statuses(text, self.branch):
                status.position = position
                self.statuses[status.branch] = status
                self.branch = "" if status.branch.startswith("HEAD ") else status.branch
        pushed = PUSHED.findall(FETCHED.sub("", text)) if PUSHES.search(command) else ()
        if pushed and not NOT_PUSHED.search(command):
            self.push = position, " ".join(pushed[-1].split())
            if known := self.statuses.get(self.branch):
                known.follows = ""  # it is no longer ahead
        if "gh pr" in command or "glab mr" in command:
            self._take_pull(position, text)

    def take_changes(self, position: int, command: str, text: str) -> None:
        """Forget what a command replaces: the status of the branch that it is on, and which branch that is."""
        committed = [commit["branch"] for commit in COMMITTED.finditer(text)]
        if CHANGES.search(command):
            for branch in (*committed, self.branch, ""):
                self.statuses.pop(branch, None)
        if committed or COMMITS.search(command):
            self.commit = position
        named = [name for name in SWITCHED.findall(text) if name != "HEAD"]
        if named:
            self.branch = named[-1]
        elif SWITCHES.search(command) and not STAYED.search(text):
            self.branch = ""  # to a branch that is not printed

    def _take_pull(self, position: int, text: str) -> None:
        addresses = {address[1]: address[0] for address in PULL.finditer(text)}
        if len(addresses) > 1:  # a list of several
            return
        number, address = next(iter(addresses.items()), ("", self.pull.address))
        known = address == self.pull.address
        ended = ENDED.search(text)
        if ended and ended[2] and ended[2] != (number or address.rpartition("/")[2]):  # another one
            return
        how = (ended[1] or ended[3] or ended[4]).lower() if ended else self.pull.ended if known else ""
        if address:
            place = self.pull.position if known and how == self.pull.ended else position
            self.pull = _Pull(address, place, self.pull.branch if known else self.branch, how)


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
    pull = seen.pull
    if pull.address:
        ended = f", {pull.ended}" if pull.ended else ""
        is_left = pull.branch and seen.branch and pull.branch != seen.branch
        left = f", since then on branch {seen.branch}" if is_left else ""
        yield f"pull request (turn {turns[pull.position]}{ended}{left}): {pull.address}"


def _seen(view: View) -> _Seen:
    """Return what commands have shown, in order, so that a commit ends the status of its branch."""
    seen = _Seen()
    messages = view.transcript.messages
    for position in range(max(len(messages) - BACK, 0), len(messages)):
        for call, result in reversed([*answered(view, [messages[position]])]):
            wrong = failed(call, result)
            if not wrong and any(not is_scratch(path) for path in writes(call)):
                seen.edit = position
            command = command_of(call)[:COMMAND] if is_shell(call) else ""
            if not READS.search(command):
                continue
            if wrong:  # a part of it may have gone well
                seen.take_changes(position, command, result.text[:READ])
            else:
                seen.take(position, command, result.text[:READ])
    return seen


def _statuses(text: str, branch: str) -> Iterator[_Status]:
    """Yield the statuses that a text shows, in the short and in the long form; `branch` is where none is named."""
    status: _Status | None = None
    files: list[str] = []
    lines = [line for line in text.rstrip().split("\n") if len(line) <= LINE]
    for line, below in pairwise((*lines, "## ")):
        if (named := SHORT_BRANCH.fullmatch(line)) or (named := LONG_BRANCH.fullmatch(line)):
            if named.re is SHORT_BRANCH and not (named[2] or below.startswith("## ") or SHORT_FILE.fullmatch(below)):
                continue  # a heading of a text that was shown, too
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
            files.append(one_line(f"{LETTERS.get(label := long[1] or '', f'{label}:')} {long[2]}", LENGTH))
        elif status is None and CLEAN.match(line):
            status = _Status(branch)
    if status is not None:
        status.files = tuple(files)
        yield status
