"""What was done to each file: created, edited how often, moved, deleted, read, in which of the user's turns last, and
what its edits have added that is still there (the functions, types and headings that they define).
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain, count
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_facts import arguments_of, is_shell, plain_name, reads, writes
from refold._condense.digest.definitions import defined_in, is_prose
from refold._condense.digest.file_phrases import FileWork, phrase_in, phrases
from refold._condense.digest.previous import earlier_entries
from refold._condense.digest.turns import turns_at
from refold._condense.file_views import (
    FileNames,
    FileWritten,
    Scripts,
    TextReplaced,
    changes_of,
    command_of,
    is_generated,
    took_effect,
)
from refold._condense.shell_commands import GIT, is_odd, joined, plain_path, statements
from refold._condense.shell_writes import manifests_changed, writes_in
from refold._condense.text_calls import text_result
from refold.core.messages import ToolCall, ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from refold.core.transcript import Transcript

__all__ = ["AGENTS", "CHANGED", "READ", "FileRecord", "by_folder", "earlier_files", "file_log"]

CHANGED, READ = "Files changed", "Files read"  # the sections of a digest
CREATORS = frozenset({"write", "write_file", "writefile", "create_file", "write_to_file", "fs_write"})
RECORDED = re.compile(r"(.+) \(([^()]*)\)", re.S)
DONE = re.compile(
    r"(?P<created>created)|(?P<edits>\d+) edits?|(?P<deleted>deleted)|(?P<reported>sub-agent)|turn (?P<turn>\d+)|"
    r"moved from (?P<source>.+)|copied from (?P<copied>.+)|(?P<downloaded>downloaded)|"
    r"(?P<unanswered>no result of the last edit)"
)
IN_FOLDER = ": "  # between a folder and the names of its files
ADDS = "; adds "  # before the names that edits define
LOOKED_AT = 40_000  # characters of a text that an edit writes
NAMES = 4  # such names of a file, the newest
COMMON = 4  # folders that two paths share, where the other one is told without most of them
PHRASED = re.compile(r"\): ")  # before the phrase on what changed
ADDED = re.compile(r"(.+?)(?: \(turn (\d+)\))?")  # such a name; with a turn it and those before it are of that one
PATCH_DELETES = re.compile(r"^\*\*\* Delete File: (.+?)\s*$", re.M)
GIT_COMMAND = re.compile(GIT)
UPWARDS = re.compile(r"(?<![^/])(?!\.\./)[^/]+/\.\./")  # a folder of a path that goes up again
AGENTS = re.compile(r"(?:^|_|sub_?)(?:agent|task)s?$|^(?:delegate|dispatch)")  # tools that give work to others, by name
# What a sub-agent lists as changed: a heading with lines below, or names behind it.
LISTING = re.compile(
    r"^[^\w\n]*files? (?:created|changed|modified|edited|updated|added|touched)\b[^\n]*(?:\n+(?:[-*•]|\d+\.) [^\n]+)*",
    re.M | re.I,
)
ENTRY = re.compile(r"^(?:[-*•]|\d+\.) +[`*'\"\[]{0,3}([\w.~:@/\\-]+\.\w{1,8})(?![\w/\\])([^\n]*)", re.M)
INLINE = re.compile(r"(?:[:,] *`?)([\w.~@/\\-]+\.\w{1,8})(?=`?(?:,|$))", re.M)


class FileRecord(Struct, frozen=True):
    """What was done to a file: whether it was created, how often it was edited, and in which turn that was last.

    A read after a change leaves the turn of the change. `reported` tells that only a sub-agent said so. `source` is the
    path that it was moved from, `copied` the one that it is a copy of, `names` are what its edits define, each with its
    turn, the newest last, `phrase` says what they changed. `first` orders files by when they were first touched.
    `unanswered` tells that nothing says how its last edit ended: it may not have been made.
    """

    path: str
    created: bool = False
    edits: int = 0
    turn: int = 0
    first: int = 0
    deleted: bool = False
    reported: bool = False
    source: str = ""
    copied: str = ""
    downloaded: bool = False
    names: tuple[tuple[str, int], ...] = ()
    phrase: str = ""
    unanswered: bool = False

    @property
    def changed(self) -> bool:
        """Tell whether the file was created, edited, moved, copied, downloaded or deleted."""
        return self.created or self.edits > 0 or self.deleted or bool(self.source) or self.came

    @property
    def came(self) -> bool:
        """Tell whether the file is a copy, or was downloaded."""
        return bool(self.copied) or self.downloaded

    @property
    def line(self) -> str:
        """The record as a line of a digest: of a file that was only read its path."""
        if not self.changed:
            return self.path
        created = "created" if self.created else ""
        once = "1 edit" if self.edits and (created or self.deleted or self.came) else ""
        edits = f"{self.edits} edits" if self.edits > 1 else once
        turn = f"turn {self.turn}" if self.turn else ""
        answer = "no result of the last edit" if self.unanswered else ""
        ended = ("deleted" if self.deleted else "", "sub-agent" if self.reported else "", answer)
        moved = f"moved from {self._shortened(self.source)}" if self.source else ""
        came = f"copied from {self._shortened(self.copied)}" if self.copied else "downloaded" if self.downloaded else ""
        done = ", ".join(filter(None, (created, moved, came, edits, *ended, turn)))
        done += f"{ADDS}{', '.join(self._names_by_turn())}" if self.names and done else ""
        return f"{self.path} ({done})" if done else self.path

    def _shortened(self, source: str) -> str:
        """Return another path from the last folder on that both are below, if that is not near the root."""
        one, other = plain_path(self.path).split("/"), plain_path(source).split("/")
        common = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
        return "/".join(other[common - 1 :]) if common >= COMMON else source

    @property
    def full_line(self) -> str:
        """The record as a line with the phrase on what changed."""
        return f"{self.line}: {self.phrase}" if self.phrase and self.line != self.path else self.line

    def _names_by_turn(self) -> Iterator[str]:
        """Yield the names, the last of a turn with its number, unless that is the turn of the last change."""
        following = (*self.names[1:], ("", self.turn))
        for (name, turn), (_, after) in zip(self.names, following, strict=True):
            yield name if turn in (0, after, self.turn) else f"{name} (turn {turn})"


@memoized
def file_log(transcript: Transcript) -> tuple[FileRecord, ...]:
    """Return what was done to each file, by the last time that something was, with what earlier digests tell of it.

    Calls that failed count for nothing, nor do files that were created and deleted again. Of files that a script
    changes the log knows where the script stands in the conversation, too, and of those that a sub-agent changes what
    its report lists.
    """
    log = _Log(transcript)
    results = {result.call_id: result for message in transcript.messages for result in message.results}
    scripts = Scripts()
    for position, (message, turn) in enumerate(zip(transcript.messages, turns_at(transcript), strict=True)):
        log.turn, log.position, log.unanswered = turn, position, False
        if (pair := text_result(transcript, position)) and took_effect(*pair):
            log.take(pair[0], tuple(edit.path for edit in scripts.ran(pair[0])))
        for call in message.calls:
            result = results.get(call.call_id) if call.call_id else None
            log.unanswered = bool(results and call.call_id) and result is None
            if result is None or took_effect(call, result):
                log.take(call, tuple(edit.path for edit in scripts.ran(call)))
                if result is not None and (ref := reads(call)):
                    log.read_outputs.setdefault(log.names.of(ref.path), []).append(result)
            if result is not None and AGENTS.search(plain_name(call.name)):
                log.reported(result)
    return _without_common_names(log.with_phrases(transcript))


def _without_common_names(records: Collection[FileRecord]) -> tuple[FileRecord, ...]:
    """Return records without names that tell nothing of their file: other texts have the heading, other files the name.

    What a text says of code, such as a plan of it, is another thing than the code itself.
    """
    files = Counter((is_prose(record.path), name) for record in records for name, _ in record.names)
    return tuple(
        replace(record, names=_chosen([each for each in record.names if files[is_prose(record.path), each[0]] == 1]))
        for record in records
    )


def _chosen(names: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Return the names that tell most: of the newest turns, then the first of a turn; private ones come last."""
    best = sorted(names, key=lambda each: (-each[1], each[0].startswith("_")))[:NAMES]
    return tuple(each for each in names if each in best)


class _Defined(Struct, frozen=True):
    """The names that a change adds to a file and those that it takes away; `anew` tells that it writes the file whole.

    A change that writes the file whole takes away all that it does not add.
    """

    added: tuple[str, ...] = ()
    removed: frozenset[str] = frozenset()
    anew: bool = False


class _Log:
    """The records by file, while calls are taken in order."""

    def __init__(self, transcript: Transcript) -> None:
        self.names = FileNames()
        self.records = {self.names.of(record.path): record for record in earlier_files(transcript)}
        self.order = count(len(self.records))
        self.turn = self.position = 0
        self.unanswered = False  # whether nothing answers the call that is taken
        self.work: dict[str, FileWork] = {}  # of files that calls of this transcript changed, by name
        self.new_names: set[str] = set()  # names of files that were created, and may be deleted again
        self.read_outputs: dict[str, list[ToolResult]] = {}  # what was read of files, by name

    def take(self, call: ToolCall, by_scripts: tuple[str, ...]) -> None:
        """Note what a call did: what it reads, what it writes, also by scripts that it runs, and what it deletes."""
        if ref := reads(call):
            record = self._last(ref.path)
            self._note(record if record.changed else replace(record, turn=self.turn))
        shell_writes = writes_in(command_of(call)) if is_shell(call) else ()
        if is_shell(call):
            self._found_again(command_of(call))
        moved = {plain_path(each.path): each.source for each in shell_writes if each.how == "moved"}
        copies = {plain_path(each.path): each for each in shell_writes if each.how in ("copied", "downloaded")}
        on_purpose = _deleted_by_patch(call)
        last = {plain_path(each.path): each.how for each in shell_writes}  # what is made again is not deleted
        removed = dict.fromkeys(  # in the order of the call
            (*(path for path, how in last.items() if how == "deleted"), *map(plain_path, on_purpose))
        )
        for path in removed:
            self._remove(path, deliberate=path in map(plain_path, on_purpose))
        sources = frozenset(map(plain_path, moved.values()))
        written = (*writes(call), *by_scripts)
        for each in shell_writes:
            if each.how == "moved" and not {each.path, each.source} & {*written}:
                self._move_folder(plain_path(each.path).rstrip("/"), plain_path(each.source).rstrip("/"))
        for path, source, pattern, spared in _moved_many(command_of(call)) if is_shell(call) else ():
            self._move_folder(path, source, pattern, spared)
        for path, command in manifests_changed(command_of(call)).items() if is_shell(call) else ():
            if not is_generated(path) or self.names.of(path) in self.records:  # exact versions may stand elsewhere
                record = self._last(path)
                self._note(replace(record, edits=record.edits + 1, turn=self.turn, phrase=f"by `{command}`"))
        for path in dict.fromkeys(written):
            name, plain = self.names.of(path), plain_path(path)
            if plain in removed:
                if name not in self.records and name not in self.new_names:
                    self._note(FileRecord(path, turn=self.turn, first=next(self.order), deleted=True))
            elif plain in moved:
                self._move(path, moved[plain])
            elif plain in copies and (copies[plain].source or copies[plain].how == "downloaded"):
                self._came(path, copies[plain].source)
            elif plain in sources:
                continue
            elif name not in self.records and _creates(call, path):
                self._take_work(call, path)
                record = FileRecord(path, True, 0, self.turn, next(self.order), unanswered=self.unanswered)
                self._note(replace(record, names=self._names(record, call, path)))
                self.new_names.add(name)
            else:
                self._take_work(call, path)
                record = self._last(path)
                if record.came and _creates(call, path):  # nothing is left of what it is a copy of
                    record = replace(record, created=True, edits=-1, copied="", downloaded=False)
                names = self._names(record, call, path)
                self._note(
                    replace(
                        record,
                        edits=record.edits + 1,
                        turn=self.turn,
                        deleted=False,
                        reported=False,
                        names=names,
                        phrase="",
                        unanswered=self.unanswered,
                    )
                )

    def _found_again(self, command: str) -> None:
        """Forget of files that were deleted, and that a later command works with, that they were.

        Which program made them anew is not known. What Git does with a path says nothing of the file.
        """
        if GIT_COMMAND.search(command):
            return
        for name, record in [*self.records.items()]:
            if record.deleted and re.search(rf"{re.escape(plain_path(record.path))}(?![\w.-])", command):
                self.records[name] = there = replace(record, deleted=False)
                if not there.changed:
                    del self.records[name]

    def with_phrases(self, transcript: Transcript) -> list[FileRecord]:
        """Return the records, each with a phrase on what changed where something says it."""
        there = {name: work for name, work in self.work.items() if name in self.records}
        by_path = phrases(transcript, there.values())
        return [
            replace(record, phrase=by_path.get(there[name].path, record.phrase)) if name in there else record
            for name, record in self.records.items()
        ]

    def _take_work(self, call: ToolCall, path: str) -> None:
        name = self.names.of(path)
        work = self.work.setdefault(name, FileWork(path))
        if work.turn != self.turn:
            work.turn, work.older = self.turn, len(work.changes)
        work.positions.append(self.position)
        work.changes += [
            change
            for change in changes_of(call)
            if isinstance(change, TextReplaced | FileWritten) and change.path == path
        ]

    def _names(self, record: FileRecord, call: ToolCall, path: str) -> tuple[tuple[str, int], ...]:
        """Return the names that a file's edits have added, with a call's, without those that it takes away again."""
        defined = _definitions(call).get(path)
        if defined is None:
            return record.names
        stay = {
            name: turn
            for name, turn in record.names
            if name not in defined.removed and (name in defined.added or not defined.anew)
        }
        before = self.read_outputs.get(self.names.of(path), ()) if defined.anew else ()
        # a file that is written whole gains only what nothing that was read of it shows
        added = [each for each in defined.added if each not in stay and not any(each in one.text for one in before)]
        return (*stay.items(), *((name, self.turn) for name in added))

    def _came(self, path: str, source: str) -> None:
        """Note that a file is a copy of another one now, or was downloaded where there is none."""
        if self.names.of(path) not in self.records:
            self.new_names.add(self.names.of(path))
        self.work.pop(self.names.of(path), None)
        record = self._last(path)
        self._note(
            replace(record, copied=source, downloaded=not source, turn=self.turn, deleted=False, names=(), phrase="")
        )

    def _move_folder(self, path: str, source: str, pattern: str = "", spared: Collection[str] = ()) -> None:
        """Note that a folder has another path now, and what is below; or files in it by a pattern, but `spared`."""
        paths = {name: plain_path(record.path) for name, record in self.records.items()}
        matching = re.escape(pattern).replace(r"\*", "[^/]*")
        roots = {""} if any(each.startswith(f"{source}/") for each in paths.values()) else set()
        if not roots and not source.startswith("/"):  # files may have been named from the root
            roots = {
                f"{each.partition(f'/{source}/')[0]}/"
                for each in paths.values()
                if f"/{source}/" in each and each[0] == "/"
            }
        if len(roots) == 1:  # with several nobody knows which of the folders was moved
            (root,) = roots
            below, to = f"{root}{source}/", path if path.startswith("/") else f"{root}{path}"
            for known, each in paths.items():
                name = each.removeprefix(below)  # with a pattern only of what stands in the folder itself
                if each.startswith(below) and (not pattern or (name not in spared and re.fullmatch(matching, name))):
                    self._note(replace(self.records.pop(known), path=f"{to}/{name}"))
        without = f" without {' and '.join(spared)}" if spared else ""
        origin = f"{source}/{pattern}{without}" if pattern else source
        self._note(FileRecord(path, turn=self.turn, first=next(self.order), source=origin))

    def _move(self, path: str, source: str) -> None:
        """Note that a file has another path now: what was done to it before goes with it."""
        before = self.records.pop(self.names.of(source), None) or FileRecord(source, first=next(self.order))
        origin = "" if before.created and not before.edits else before.source or source
        self.records.pop(self.names.of(path), None)
        self._note(replace(before, path=path, source=origin, turn=self.turn, deleted=False))

    def reported(self, result: ToolResult) -> None:
        """Note the files that the report of a sub-agent lists as changed."""
        for listing in LISTING.findall(result.text):
            in_words = [(path, "") for path in INLINE.findall(listing.partition("\n")[0])]
            for path, words in (*ENTRY.findall(listing), *in_words):
                record = self._last(path)
                only = record.reported or not record.changed
                phrase = phrase_in(words) or record.phrase
                self._note(replace(record, edits=record.edits + 1, turn=self.turn, reported=only, phrase=phrase))

    def _remove(self, path: str, *, deliberate: bool) -> None:
        """Note that a file, or those in a folder, are there no more.

        Files that the work created are forgotten; if it was `deliberate` only those of the same turn.
        """
        name = self.names.of(path)
        below = [known for known in self.records if known == name or known.startswith(f"{name}/")]
        for known in below:
            record = self.records.pop(known)
            self.work.pop(known, None)
            fresh = record.created or (record.came and not record.edits)
            if not fresh or (deliberate and record.turn < self.turn):
                self.records[known] = replace(record, deleted=True, turn=self.turn, names=(), phrase="")

    def _last(self, path: str) -> FileRecord:
        return self.records.pop(self.names.of(path), None) or FileRecord(path, first=next(self.order))

    def _note(self, record: FileRecord) -> None:
        self.records[self.names.of(record.path)] = record


def earlier_files(transcript: Transcript) -> tuple[FileRecord, ...]:
    """Return what earlier digests in a transcript tell of files; those of the previous release name only paths."""
    earlier = earlier_entries(transcript)
    log = {path: FileRecord(path) for line in earlier.lines(READ) for path in _paths_in(line)}
    for record in map(_recorded, earlier.lines(CHANGED)):
        log[record.path] = record
    return tuple(replace(record, first=number) for number, record in enumerate(log.values()))


def by_folder(paths: Iterable[str]) -> tuple[str, ...]:
    """Return files by folder, a line each: the folder, and behind it the names."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    lines = (
        (f"{folder}/{IN_FOLDER}{', '.join(names)}",)
        if folder and len(names) > 1
        else tuple("/".join(filter(None, (folder, name))) for name in names)
        for folder, names in folders.items()
    )
    return tuple(chain.from_iterable(lines))


def _paths_in(line: str) -> tuple[str, ...]:
    """Return the files that a line of those read tells of."""
    folder, mark, names = line.partition(f"/{IN_FOLDER}")
    return tuple(f"{folder}/{name}" for name in names.split(", ")) if mark else (line,)


def _recorded(line: str) -> FileRecord:
    """Return a record from its line in a digest."""
    for at in (match.start() for match in PHRASED.finditer(line)):
        if (record := _recorded_without_phrase(line[: at + 1])).turn:
            return replace(record, phrase=line[at + len("): ") :])
    return _recorded_without_phrase(line)


def _recorded_without_phrase(line: str) -> FileRecord:
    line, _, names = line.removesuffix(")").partition(ADDS) if ADDS in line else (line, "", "")
    match = RECORDED.fullmatch(f"{line})" if names else line)
    done = [DONE.fullmatch(word) for word in match[2].split(", ")] if match else []
    if not match or None in done:
        return FileRecord(f"{line})" if names else line, edits=1)
    facts = {name: value for word in done if word for name, value in word.groupdict().items() if value}
    created, deleted = "created" in facts, "deleted" in facts
    source = facts.get("source", "")
    edits = int(facts.get("edits", 0 if {"created", "deleted", "source", "copied", "downloaded"} & facts.keys() else 1))
    turn = int(facts.get("turn", 0))
    defined = _names_from(names, turn) if names else ()
    copied, downloaded = facts.get("copied", ""), "downloaded" in facts
    record = FileRecord(match[1], created, edits, turn, 0, deleted, "reported" in facts, source, copied, downloaded)
    return replace(record, names=defined, unanswered="unanswered" in facts)


def _names_from(names: str, turn: int) -> tuple[tuple[str, int], ...]:
    """Return the names that a line tells, each with its turn: the next that is said, or that of the last change."""
    pairs: list[tuple[str, int]] = []
    for each in reversed(names.split(", ")):
        if match := ADDED.fullmatch(each):
            turn = int(match[2] or turn)
            pairs.append((match[1], turn))
    return tuple(reversed(pairs))


@memoized
def _definitions(call: ToolCall) -> dict[str, _Defined]:
    """Return by path the functions, types and headings that a call adds to files, in order, and those it takes away."""
    by_path: dict[str, _Defined] = {}
    for change in changes_of(call):
        if isinstance(change, TextReplaced | FileWritten):
            anew = isinstance(change, FileWritten)
            old = "" if isinstance(change, FileWritten) else change.old[:LOOKED_AT]
            new = (change.text if isinstance(change, FileWritten) else change.new)[:LOOKED_AT]
            before = by_path.get(change.path, _Defined())
            added = (name for name in defined_in(new, change.path) if name not in old)
            removed = (name for name in defined_in(old, change.path) if name not in new)
            names = dict.fromkeys((*before.added, *added))
            by_path[change.path] = _Defined(
                tuple(names), before.removed.union(removed).difference(names), anew or before.anew
            )
    return by_path


def _moved_many(command: str) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """Yield for each move by a pattern where the files go, their folder, the pattern, if not all, and what it spares.

    A loop spares the names that it compares with; one with another condition moves nobody knows what.
    """
    if "mv" not in command or "*" not in command:
        return
    variable, pattern, known = "", "", True
    spared: tuple[str, ...] = ()
    for folder, words in statements(command):
        match words:
            case ["for", name, "in", each]:
                variable, pattern, spared, known = f"${name}", each, (), True
            case ["[" | "[[", name, "!=", other, "]" | "]]"] if name == variable:
                spared = (*spared, other)
            case ["[" | "[[" | "test" | "if" | "case" | "continue" | "grep", *_]:
                known = False
            case ["done", *_]:
                variable = ""
            case ["mv", *_] | ["git", "mv", *_]:
                names = [word for word in words[words.index("mv") + 1 :] if word and word[0] != "-"]
                if len(names) != 2 or is_odd(names[1]):
                    continue
                looped = bool(variable) and names[0] in (variable, f"${{{variable[1:]}}}")
                source, _, last = (pattern if looped else names[0]).rpartition("/")
                if "*" in last and not (set("*?$") & {*source}) and (known or not looped):
                    base = plain_path(joined(folder, source) if source else folder)
                    whole = last == "*" and source and not (looped and spared)
                    if base:
                        to = UPWARDS.sub("", plain_path(joined(folder, names[1]))).rstrip("/")
                        yield to, base, "" if whole else last, spared if looped else ()


def _deleted_by_patch(call: ToolCall) -> tuple[str, ...]:
    """Return the files that a patch in a call deletes, or the call itself."""
    if plain_name(call.name) == "delete_file":
        return writes(call)
    if "*** Delete File: " not in call.arguments:
        return ()
    text = command_of(call) if is_shell(call) else "\n".join(map(str, arguments_of(call).values())) or call.arguments
    return tuple(path for path in PATCH_DELETES.findall(text) if f"*** Add File: {path}\n" not in text)


def _creates(call: ToolCall, path: str) -> bool:
    """Tell whether a call that changes a file makes a new one, as far as its own words say."""
    text = call.arguments
    if is_shell(call) and "*** " not in text:
        name = re.escape(plain_path(path).rsplit("/", 1)[-1])
        return re.search(rf"(?<!>)>\s*['\"]?[^\s>]*{name}", command_of(call)) is not None
    return (
        plain_name(call.name) in CREATORS
        or f"*** Add File: {path}" in text
        or ('"command"' in text and re.search(r'"command"\s*:\s*"create"', text) is not None)
    )
