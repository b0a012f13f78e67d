"""Reads off calls and outputs what stands in files: the lines that an output shows, and the changes that a call makes.

An output shows a file where its call names one (`call_facts.reads`), or where it is an excerpt with line numbers that
an edit answers with. Numbers before the lines are taken off, since an edit quotes the line as the file has it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from refold._condense.call_facts import (
    PATCHERS,
    WHOLE_READ,
    arguments_of,
    failed,
    is_shell,
    plain_name,
    reads,
    writes,
)
from refold._condense.call_outline import exit_code
from refold._condense.shell_commands import (
    GIT,
    PATCHED,
    argv_of,
    displayed_by,
    joined,
    plain_path,
    statements,
)
from refold._condense.shell_writes import ends_by_writing, scripts_run, writes_in, written_by_program
from refold._text.text_cache import word_cache
from refold.core.messages import ToolCall, ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from refold.core._json import Json

__all__ = [
    "OURS",
    "Change",
    "EditedInPlace",
    "Excerpt",
    "FileMoved",
    "FileNames",
    "FileWritten",
    "Scripts",
    "TextReplaced",
    "UnreadableChange",
    "VisibleLines",
    "changed_by_git",
    "changes_of",
    "command_of",
    "excerpts_in",
    "is_generated",
    "is_scratch",
    "took_effect",
    "visible_lines",
    "without_numbers",
]

NUMBERED = re.compile(r"^[ \t]*(\d{1,7})(?:→|\t|\| ?|: ?|[ \t]{2})(.*)$")
OPENED_BY = "<content>"  # before the first line of a file, where an agent puts files between tags
NOTE = re.compile(  # what readers say of a file at its beginning or end
    r"\W*(?:[\d,]+ more lines?\b|file has more lines|end of file\b|showing lines \d|status: showing lines|"
    r"action: to read more|important: the file content has been truncated|--- file content)|"
    r".*\buse (?:the )?['`]?offset\b",
    re.I,
)
EDGE = 6  # lines at either end of an output in which such a note stands
MOSTLY = 0.6  # of the lines that are not blank have a number, where lines are numbered
OURS = re.compile(r"^\[(?:parts of the )?output\b|^\[…(?: [\d,]+ lines? left out …)?\]$")  # what an earlier plan left
PREAMBLE = 8  # first lines in which a harness says how a command went before "Output:"
OLD = ("old_string", "old_str", "oldText", "old_text", "oldString", "search")
NEW = ("new_string", "new_str", "newText", "new_text", "newString", "replace")
CONTENT = ("content", "file_text", "contents", "text")
DIFFS = ("diff", "content")
LISTS = ("edits", "replacements")
HEREDOC = re.compile(  # folder, file and text of `cat > file <<END` and `cat <<END > file`
    r"^\s*(?:cd (\S+) && )?cat (?:> ?(\S+) <<-? ?(['\"]?)(\w+)\3|<<-? ?['\"]?(\w+)['\"]? > ?(\S+))\n"
    r"(.*?)\n?^(?:\4|\5)\s*$",
    re.S | re.M,
)
SUBSTITUTED = re.compile(  # what `s/this/that/` and `/this/d` look for
    r"\bs([/|#,@!])((?:\\.|(?!\1)[^\\\n])+)\1|(?<=['\";])/((?:\\.|[^/\n])+)/[dac]"
)
SCRATCH = re.compile(r"^(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)/|[\\/](?:Temp|scratchpad)[\\/]|^\$\{?TMPDIR")
GENERATED = re.compile(
    r"(?:^|[/\\])(?:package-lock\.json|pnpm-lock\.yaml|go\.sum|[\w-]+\.lockb?|[^/\\]+\.(?:min\.\w+|map|snap|log))$|"
    r"(?:^|[/\\])(?:node_modules|dist|build|target|vendor|generated|__pycache__|\.next)[/\\]"
)
HUNK = "@@"
# Commands of Git that change files which they do not name, what they say where they changed none, and what they list.
REPLACES = re.compile(
    rf"{GIT} (?:merge|pull|rebase|cherry-pick|revert|am|stash(?! (?:list|show|drop|push -- ))|reset (?:\S+ )?--hard|"
    r"(?:checkout|switch) (?!-)\S+ *(?:$|[|&;\n>]|2>))"
)
NOT_REPLACED = re.compile(
    r"\balready up[ -]to[ -]date|\bis up to date\b|^Already on |^No local changes|^Updated \d+ path|^(?:fatal|error): ",
    re.I | re.M,
)
RESTORED = re.compile(rf"{GIT} stash\b(?s:.*){GIT} stash pop\b")
LISTED = re.compile(r"^ (?:\.\.\./)?(\S[^|\n]*?) +\| +(?:\d+|Bin)", re.M)
SEARCHED = re.compile(
    r"<{5,}\s*SEARCH>?\n(?::start_line:\d+\n-+\n)?(.*?)\n?^={5,}\n(.*?)\n?^>{5,}\s*REPLACE", re.S | re.M
)
REFUSED = re.compile(
    r"\W*(?:tool_use_error|error|failed|failure|patch failed|hunk #|apply_patch verification failed|"
    r"(?:the )?(?:string to replace|old_?string|search (?:text|string|block))\b.{0,40}\bnot\b|"
    r"no (?:match|replace|changes (?:made|to))|your proposed edit|your edit was not|could not|couldn't|cannot|"
    r"unable to|invalid|permission denied|file (?:has not been|does not|not found)|tool call failed|"
    r"the user (?:denied|doesn't|rejected)|user (?:denied|rejected)|\d+ occurrences|multiple matches|"
    r"found \d+ matches)",
    re.I,
)
LARGE = 20_000  # characters of an answer to an edit from which it is no excerpt


class VisibleLines(Struct, frozen=True):
    """Lines of a file in order as an output shows them, `numbers` beside them where the output has numbers.

    A None among the lines stands for a gap. `numbered` are the lines with their numbers as they stand in the output.
    """

    lines: tuple[str | None, ...]
    numbers: tuple[int, ...] = ()
    numbered: tuple[str, ...] = ()


class Excerpt(Struct, frozen=True):
    """A part of a file that an output shows: from line `start`, and whether it is all that the file holds."""

    path: str
    visible: VisibleLines
    start: int = 1
    whole: bool = False


class TextReplaced(Struct, frozen=True):
    """A change of a file: `old` became `new`, at every place where `every`."""

    path: str
    old: str
    new: str
    every: bool = False


class FileWritten(Struct, frozen=True):
    """A change of a file: it holds this text now."""

    path: str
    text: str


class UnreadableChange(Struct, frozen=True):
    """A change of a file after which nobody knows what it holds."""

    path: str


class EditedInPlace(Struct, frozen=True):
    """A change of a file by a command or a program: of its lines those are unknown that `text`, or a pattern, names."""

    path: str
    text: str
    patterns: tuple[str, ...] = ()

    def touches(self, line: str) -> bool:
        """Tell whether the change names a line, so that nobody knows what it is now."""
        return line.strip() in self.text or any(_matches(pattern, line) for pattern in self.patterns)


class FileMoved(Struct, frozen=True):
    """A change of a file: it holds now what `source` held."""

    path: str
    source: str


Change: TypeAlias = TextReplaced | FileWritten | UnreadableChange | EditedInPlace | FileMoved


@word_cache(1_024)
def _compiled(pattern: str) -> tuple[re.Pattern[str], ...]:
    """Return what a pattern of `sed` or `perl` may mean: a text, or an expression in the one or the other notation."""
    basic = re.sub(r"\\?([(){}+?|])", lambda sign: sign[1] if sign[0] != sign[1] else f"\\{sign[1]}", pattern)
    compiled = [re.compile(re.escape(re.sub(r"\\(.)", r"\1", pattern)))]
    for notation in (pattern, basic):
        with suppress(re.error):
            compiled.append(re.compile(notation))
    return tuple(compiled)


def _matches(pattern: str, line: str) -> bool:
    return any(each.search(line) for each in _compiled(pattern))


def without_numbers(lines: Sequence[str | None]) -> VisibleLines | None:
    """Return numbered lines without their numbers, and no others; None where lines are not numbered."""
    matches = [match for line in lines if line and (match := NUMBERED.match(line.removeprefix(OPENED_BY)))]
    numbers = [int(match[1]) for match in matches]
    full = sum(1 for line in lines if line and line.strip())
    if not matches or len(matches) < MOSTLY * full or not _rises(numbers):
        return None
    return VisibleLines(tuple(match[2] for match in matches), tuple(numbers), tuple(match[0] for match in matches))


@memoized
def visible_lines(result: ToolResult) -> VisibleLines:
    """Return the lines that an output shows of the file it is about, without numbers and what a harness adds."""
    lines = result.text.split("\n")
    if numbered := without_numbers(lines):
        return numbered
    opening = lines[:PREAMBLE]
    start = opening.index("Output:") + 1 if "Output:" in opening else 0
    lines = lines[start:]
    last = len(lines) - EDGE
    return VisibleLines(
        tuple(
            None if OURS.match(line) or (not EDGE <= at < last and NOTE.match(line)) else line
            for at, line in enumerate(lines)
        )
    )


def excerpts_in(call: ToolCall, result: ToolResult) -> tuple[Excerpt, ...]:
    """Return the parts of files that an output shows: of what a call reads, or of what it has just changed."""
    ref = reads(call)
    if ref is not None:
        visible = visible_lines(result)
        whole = ref.whole and len(visible.lines) < WHOLE_READ and None not in visible.lines
        return (Excerpt(ref.path, visible, ref.start, whole),)
    written = writes(call)
    if written:
        visible = visible_lines(result) if len(written) == 1 and len(result.text) < LARGE else VisibleLines(())
        return (Excerpt(written[0], visible),) if visible.numbers else ()
    parts = _parts(call)
    if not parts:
        return ()
    visible = visible_lines(result)
    if len(parts) == 1 or (visible.numbers and all(part[0] == parts[0][0] for part in parts)):
        matched = visible.numbers or not _searches(call)
        return (Excerpt(parts[0][0], visible, parts[0][1]),) if matched else ()
    counts = [stop - start if stop is not None else 0 for _, start, stop in parts]
    lines = visible.lines[:-1] if visible.lines[-1:] == ("",) else visible.lines
    # Where one part ends and the next begins is known if each is as long as was asked for; the last may end before.
    if not all(counts) or not sum(counts[:-1]) < len(lines) <= sum(counts) or visible.numbers or None in lines:
        return ()
    at = 0
    excerpts: list[Excerpt] = []
    for (path, start, _), count in zip(parts, counts, strict=True):
        excerpts.append(Excerpt(path, VisibleLines(lines[at : at + count]), start))
        at += count
    return tuple(excerpts)


@memoized
def _parts(call: ToolCall) -> tuple[tuple[str, int, int | None], ...]:
    if not is_shell(call):
        return ()
    return displayed_by(command_of(call))


@memoized
def _searches(call: ToolCall) -> bool:
    return "grep " in call.arguments or "rg " in call.arguments


def _rises(numbers: list[int]) -> bool:
    return all(one < other for one, other in pairwise(numbers))


def took_effect(call: ToolCall, result: ToolResult) -> bool:
    """Tell whether a call did to files what it was to do, by flag, exit code, and the words of the answer.

    Of commands in a line that fails those before the last have been run.
    """
    if not writes(call):
        return not failed(result)
    if is_shell(call):
        went_wrong = result.is_error or bool(exit_code(result.text))
        return not (went_wrong and ends_by_writing(command_of(call)))
    return not (failed(result) or REFUSED.match(result.text))


def changed_by_git(call: ToolCall, result: ToolResult, known: Iterable[str]) -> list[str]:
    """Return which of the known files a command of Git may have changed, such as a merge: those that its output lists.

    Where it lists none it may have changed all, in the folder that it was run in where that is known.
    """
    command = command_of(call) if is_shell(call) and "git " in call.arguments else ""
    if not REPLACES.search(command) or RESTORED.search(command) or NOT_REPLACED.search(result.text):
        return []
    if listed := tuple(f"/{path}" for path in LISTED.findall(result.text)):
        return [name for name in known if f"/{name}".endswith(listed)]
    folders = {folder for folder, words in statements(command) if words[0] == "git"}
    folder = plain_path(*folders) if len(folders) == 1 and next(iter(folders)).startswith("/") else ""
    return [name for name in known if name.startswith(folder) and not is_scratch(name)]


def command_of(call: ToolCall) -> str:
    """Return what a call of a shell runs, as one text."""
    arguments = arguments_of(call)
    return argv_of(arguments.get("command", arguments.get("cmd")))


class Scripts:
    """What scripts write that a conversation has written itself: their text tells when they are run."""

    def __init__(self) -> None:
        self.names = FileNames()
        self.writes: dict[str, tuple[EditedInPlace, ...]] = {}

    def ran(self, call: ToolCall) -> tuple[EditedInPlace, ...]:
        """Return what a call does to files by running known scripts; first those are learned that the call writes."""
        for change in changes_of(call):
            text = change.text if isinstance(change, FileWritten) else ""
            if text and (written := written_by_program(text)):
                self.writes[self.names.of(change.path)] = tuple(EditedInPlace(path, text) for path in written)
        if not self.writes or not is_shell(call):
            return ()
        return tuple(
            edit for script in scripts_run(command_of(call)) for edit in self.writes.get(self.names.of(script), ())
        )


@memoized
def changes_of(call: ToolCall) -> tuple[Change, ...]:
    """Return the changes that a call makes to files, in order; empty for most calls."""
    written = writes(call)
    if not written:
        return ()
    arguments = arguments_of(call)
    if is_shell(call):
        command = command_of(call)
        changes = tuple(_patched(command)) if PATCHED.search(command) else tuple(_by_command(command))
    elif plain_name(call.name) in PATCHERS:
        text = "\n".join(str(value) for value in arguments.values()) if arguments else call.arguments
        changes = tuple(_patched(text))
    else:
        changes = tuple(_edited(written[0], arguments))
    known = {change.path for change in changes} | {change.source for change in changes if isinstance(change, FileMoved)}
    return (*changes, *(UnreadableChange(path) for path in written if path not in known))


def _edited(path: str, arguments: Json) -> Iterator[Change]:
    several = next((value for key in LISTS if isinstance(value := arguments.get(key), list)), None)
    for edit in [arguments] if several is None else [each for each in several if isinstance(each, dict)]:
        old, new = _text(edit, OLD), _text(edit, NEW)
        if old and new is not None:
            yield TextReplaced(path, old, new, edit.get("replace_all") is True or edit.get("replaceAll") is True)
        elif new and (old == "" or edit.get("command") == "insert"):
            yield FileWritten(path, new) if old == "" else TextReplaced(path, "", new)
    for old, new in SEARCHED.findall(_text(arguments, DIFFS) or ""):
        yield TextReplaced(path, old, new)
    content = _text(arguments, CONTENT)
    if content is not None and _text(arguments, OLD) is None and not SEARCHED.search(content):
        yield FileWritten(path, content)


def _text(arguments: Mapping[str, object], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := arguments.get(key), str)), None)


def _by_command(command: str) -> Iterator[Change]:
    """Yield what a command that is no patch does to files, as far as its own words say."""
    texts = {
        joined(match[1] or "", (match[2] or match[6]).strip("'\"")): match[7] for match in HEREDOC.finditer(command)
    }
    patterns = tuple(pattern for _, *either in SUBSTITUTED.findall(command) for pattern in either if pattern)
    for write in writes_in(command):
        if write.how == "edited":
            yield EditedInPlace(write.path, command, patterns)
        elif write.how == "moved":
            yield FileMoved(write.path, write.source)
        elif write.path in texts:
            yield FileWritten(write.path, texts[write.path])
        elif write.how == "deleted":
            yield FileWritten(write.path, "")


def _patched(text: str) -> Iterator[Change]:
    """Yield the changes of a patch in the `*** Update File:` notation, hunk by hunk."""
    path, kind = "", ""
    old: list[str] = []
    new: list[str] = []
    for line in [*text.split("\n"), "*** End Patch"]:
        heading = line.startswith("*** ")
        if heading or line.startswith(HUNK):
            if path and new and kind == "Add":
                yield FileWritten(path, "\n".join(new))
            elif path and old != new:
                yield TextReplaced(path, "\n".join(old), "\n".join(new))
            old, new = [], []
            if heading and (match := PATCHED.match(line)):
                path, kind = match[1], line[4:].split(" ", 1)[0]
                if kind == "Delete":
                    yield FileWritten(path, "")
            elif line.startswith("*** End Patch"):
                path = ""  # what follows is the rest of a command
        elif path:
            mark, rest = line[:1], line[1:]
            if mark != "+" and kind != "Add":
                old.append(rest)
            if mark != "-":
                new.append(rest)


def is_scratch(path: str) -> bool:
    """Tell whether a file stands in a folder for what nobody keeps."""
    return SCRATCH.search(path) is not None


def is_generated(path: str) -> bool:
    """Tell whether a file is one that tools write, such as a list of exact versions or a build, by its name."""
    return GENERATED.search(path) is not None


class FileNames:
    """Names of files: a path that ends in another, from a folder on, is the same file's, where only one does.

    A bare name is that of a file in the folder that work is done in: `README.md` is not `docs/README.md`, but may be
    `/home/me/project/README.md`.
    """

    def __init__(self) -> None:
        self.by_base: dict[str, list[str]] = {}

    def of(self, path: str) -> str:
        """Return the name under which a file was first met."""
        plain = plain_path(path)
        known = self.by_base.setdefault(plain.rsplit("/", 1)[-1], [])
        if plain in known:
            return plain
        same = [name for name in known if _may_be_one(*sorted((name, plain), key=len))]
        if len(same) == 1:
            return same[0]
        known.append(plain)
        return plain


def _may_be_one(shorter: str, longer: str) -> bool:
    """Tell whether two paths may be one file's."""
    return f"/{longer}".endswith(f"/{shorter}") and ("/" in shorter or longer.startswith(("/", "~")))
