"""Where the work stands in Git: branch, folder and changed files of the last `git status`, the commits, the last push,
and the pull request.

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
from refold._condense.call_outline import one_line, without_report
from refold._condense.digest.outcomes import COMMITTED, answered, failed
from refold._condense.digest.targets import targets_of
from refold._condense.digest.turns import turns_at, turns_in_work
from refold._condense.file_views import command_of, is_scratch
from refold._condense.shell_commands import GIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.messages import ToolCall
    from refold.core.view import View

__all__ = ["git_state"]

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
# What differs from the last commit, not between others, and the files of it.
DIFFS = re.compile(rf"{GIT} diff(?: (?:HEAD|-[\w=-]+))*(?: -- [^|;&\n]*)? *(?:$|[|;&\n>]|2>)")
DIFFERS = re.compile(r"^diff --git a/\S+ b/(\S+)$", re.M)
SHOWS_BRANCH, BRANCH_NAME = (
    re.compile(rf"{GIT} (?:branch --show-current|rev-parse --abbrev-ref HEAD)\b"),
    re.compile(r"\S+"),
)
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
    folder: str = ""


class _Commit(Struct, frozen=True):
    """A commit as Git names it, its branch, and where it was made."""

    position: int
    branch: str
    line: str


class _Pull(Struct, frozen=True):
    """A pull request: its address, where it was shown, the branch then, and how it ended, if it has."""

    address: str = ""
    position: int = -1
    branch: str = ""
    ended: str = ""


class _Seen(Struct):
    """What the commands of a transcript have shown, the newest of each; of branches by the folder."""

    statuses: dict[tuple[str, str], _Status] = {}  # by folder and branch
    worktrees: dict[str, str] = {}  # folders by branch
    branches: dict[str, tuple[int, str]] = {}  # with the place where they were shown
    uncommitted: _Status | None = None  # the first status that a command has shown before the first edit
    push: tuple[int, str] = (-1, "")
    commits: list[_Commit] = []
    commit: int = -1
    edit: int = -1
    pull: _Pull = _Pull()

    def branch_in(self, folder: str) -> str:
        """Return the branch that a folder is on, as far as it is known."""
        return self.branches.get(folder, (0, ""))[1]

    def take(self, position: int, folder: str, command: str, text: str) -> None:
        """Take in what a command has printed that went well."""
        self.worktrees |= {
            first or second: path for first, path, second in WORKTREE.findall(command) if first or second
        }
        self.take_changes(position, folder, command, text)
        if ASKS.search(command) and not ELSEWHERE.search(command):
            for status in _statuses(text, self.branch_in(folder)):
                status.position, status.folder = position, folder
                self.statuses.pop((folder, ""), None)  # of which nothing said that it was of this branch
                self.statuses[folder, status.branch] = status
                self.branches[folder] = position, "" if status.branch.startswith("HEAD ") else status.branch
                self.take_uncommitted(status)
        elif (differing := DIFFERS.findall(text)) and DIFFS.search(command):
            files = tuple(dict.fromkeys(one_line(path, LENGTH) for path in differing))
            self.take_uncommitted(_Status(self.branch_in(folder), "", files, position, folder))
        elif branch := BRANCH_NAME.fullmatch(without_report(text).strip()) if SHOWS_BRANCH.search(command) else None:
            self.branches[folder] = position, branch[0]
        pushed = PUSHED.findall(FETCHED.sub("", text)) if PUSHES.search(command) else ()
        if pushed and not NOT_PUSHED.search(command):
            self.push = position, " ".join(pushed[-1].split())
            if known := self.statuses.get((folder, self.branch_in(folder))):
                known.follows = ""  # it is no longer ahead
        if "gh pr" in command or "glab mr" in command:
            self._take_pull(position, self.branch_in(folder), text)

    def take_uncommitted(self, status: _Status) -> None:
        """Take a status for what the work has found, where it is the first that names files and nothing is done yet."""
        if self.uncommitted is None and self.edit < 0 and self.commit < 0 and status.files:
            self.uncommitted = status

    def take_changes(self, position: int, folder: str, command: str, text: str) -> None:
        """Forget what a command replaces: the status of the branch that it is on, and which branch that is."""
        commits = [
            _Commit(position, commit["branch"], f"{commit['id']} {one_line(commit['subject'], LENGTH)}")
            for commit in COMMITTED.finditer(text)
        ]
        if CHANGES.search(command):
            changed = {commit.branch for commit in commits} | {self.branch_in(folder), ""}
            for key in [
                key for key in self.statuses if key[1] in changed and not (folder and key[0] not in ("", folder))
            ]:
                del self.statuses[key]
        if commits or COMMITS.search(command):
            self.commit = position
            self.commits += commits
        named = [name for name in SWITCHED.findall(text) if name != "HEAD"]
        if named:
            self.branches[folder] = position, named[-1]
        elif SWITCHES.search(command) and not STAYED.search(text):
            self.branches[folder] = position, ""  # to a branch that is not printed

    def _take_pull(self, position: int, branch: str, text: str) -> None:
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
            self.pull = _Pull(address, place, self.pull.branch if known else branch, how)


def git_state(view: View) -> Iterator[str]:
    """Yield the last status of each branch with changes, the newest first, branches, commits, push and pull request."""
    turns = turns_at(view.transcript)
    seen = _seen(view)
    newest = sorted(seen.statuses.values(), key=lambda status: -status.position)
    in_work = turns_in_work(view.transcript)
    recent = (
        status
        for status in newest
        if turns[status.position] >= (turns[-1] - TURNS if status is newest[0] else min(in_work))
    )
    listed = [
        status
        for status in recent
        if status.files
        or (status is newest[0] and status.branch == seen.branch_in(status.folder) and seen.edit < status.position)
    ][:STATUSES]
    first = seen.uncommitted
    for status in listed:
        place = status.folder or seen.worktrees.get(status.branch, "")
        branch = f"branch {status.branch}" if status.branch else ""
        where = " ".join(filter(None, (branch, f"in {place}" if place else "")))
        same = first is not None and (first.folder, first.files) == (status.folder, status.files)
        before = "found so before the first edit" if same else "before the last edits"
        since = f" ({before})" if status.position < seen.edit and status is listed[0] else ""
        head = f"{STATUS}(turn {turns[status.position]})"
        yield f"{head}{f', {where}' if where else ''}{status.follows}: {_named(status.files) or 'no changes'}{since}"
    yield from _branches(seen, turns, {(status.folder, status.branch) for status in listed})
    if first and seen.edit > 0 and turns[first.position] >= turns[-1] - TURNS:
        place = f" in {first.folder}" if first.folder else ""
        line = f"found uncommitted{place} before the first edit (turn {turns[first.position]}): {_named(first.files)}"
        yield from [] if any((first.folder, first.files) == (each.folder, each.files) for each in listed) else [line]
    yield from _commits_before(view, seen)
    if seen.push[1]:
        later = ", before the last commit" if seen.commit > seen.push[0] else ""
        yield f"last push (turn {turns[seen.push[0]]}{later}): {seen.push[1]}"
    pull = seen.pull
    if pull.address:
        branch = max(seen.branches.values(), default=(0, ""))[1]
        ended = f", {pull.ended}" if pull.ended else ""
        left = f", since then on branch {branch}" if pull.branch and branch and pull.branch != branch else ""
        yield f"pull request (turn {turns[pull.position]}{ended}{left}): {pull.address}"


def _named(files: Sequence[str]) -> str:
    more = f" and {len(files) - FILES} more" if len(files) > FILES else ""
    return f"{', '.join(files[:FILES])}{more}"


def _branches(seen: _Seen, turns: Sequence[int], listed: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the branches that folders are on, the newest first, that neither a status nor the last commit names."""
    committed = seen.commits[-1] if seen.commits else _Commit(-1, "", "")
    newest = sorted(seen.branches.items(), key=lambda each: -each[1][0])[:STATUSES]
    for number, (folder, (position, branch)) in enumerate(newest):
        known = (folder, branch) in listed or (branch == committed.branch and position <= committed.position)
        if branch and not known and (number == 0 or turns[position] >= turns[-1] - TURNS):
            yield f"branch (turn {turns[position]}){f' in {folder}' if folder else ''}: {branch}"


def _commits_before(view: View, seen: _Seen) -> Iterator[str]:
    """Yield the commits of the turns in work before the last one, which is told with the results of calls."""
    turns, in_work = turns_at(view.transcript), turns_in_work(view.transcript)
    lines = [commit.line for commit in seen.commits[:-1] if turns[commit.position] in in_work]
    if lines:
        yield f"commits before it on the current request: {'; '.join(lines[-FILES:])}"


def _seen(view: View) -> _Seen:
    """Return what commands have shown, in order, so that a commit ends the status of its branch."""
    messages = view.transcript.messages
    start = max(len(messages) - BACK, 0)
    seen = _Seen(edit=-1 if start == 0 else 0)
    folders = _folders(view)
    for position in range(start, len(messages)):
        for call, result in reversed([*answered(view, [messages[position]])]):
            wrong = failed(call, result)
            if not wrong and any(not is_scratch(path) for path in writes(call)):
                seen.edit = position
            command = command_of(call)[:COMMAND] if is_shell(call) else ""
            if not READS.search(command):
                continue
            within = {each for each in folders if any(_is_within(place, each) for place in _places(call))}
            folder = next(iter(within)) if len(within) == 1 else ""
            if len(within) > 1 and not COMMITS.search(command):
                continue  # which of them the output is of cannot be told
            if wrong:  # a part of it may have gone well
                seen.take_changes(position, folder, command, result.text[:READ])
            else:
                seen.take(position, folder, command, result.text[:READ])
    return seen


def _folders(view: View) -> tuple[str, ...]:
    """Return the folders in which commands of Git were run, where these are several and apart from each other."""
    messages = view.transcript.messages[-BACK:]
    places = {
        place
        for message in messages
        for call, _ in answered(view, [message])
        if is_shell(call) and READS.search(call.arguments)
        for place in _places(call)
    }
    apart = tuple(
        each for each in sorted(places) if not any(each != other and _is_within(each, other) for other in places)
    )
    return apart if len(apart) > 1 else ()


def _places(call: ToolCall) -> Iterator[str]:
    """Yield the folders that a call says its commands of Git are run in, as far as they do not depend on another."""
    for target in targets_of(call):
        if target.task.startswith(("git ", "gh ", "glab ")) and target.folder[:1] in ("/", "~", "."):
            yield target.folder.rstrip("/")


def _is_within(folder: str, other: str) -> bool:
    return folder == other or folder.startswith(f"{other}/")


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
