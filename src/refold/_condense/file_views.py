"""Reads off calls and outputs what stands in files: the lines that an output shows, and the changes that a call makes.

An output shows a file where its call names one (`call_facts.reads`), or where it is an excerpt with line numbers that
an edit answers with. Numbers before the lines are taken off, since an edit quotes the line as the file has it.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from refold._condense.call_facts import PATCHERS, WHOLE_READ, arguments_of, is_shell, plain_name, reads, writes
from refold._condense.call_outline import exit_code
from refold._condense.shell_commands import PATCHED, argv_of, displayed_by
from refold.core.messages import ToolCall, ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from refold.core._json import Json

__all__ = [
    "Change",
    "Excerpt",
    "FileWritten",
    "TextReplaced",
    "UnreadableChange",
    "VisibleLines",
    "changes_of",
    "excerpts_in",
    "refused",
    "visible_lines",
    "without_numbers",
]

NUMBERED = re.compile(r"^[ \t]*(\d{1,7})(?:→|\t|\| ?|: ?|[ \t]{2})(.*)$")
MOSTLY = 0.6  # of the lines that are not blank have a number, where lines are numbered
OURS = re.compile(r"^\[(?:parts of the )?output\b|^\[… [\d,]+ lines? left out …\]$")  # what an earlier plan left
PREAMBLE = 8  # first lines in which a harness says how a command went before "Output:"
OLD = ("old_string", "old_str", "oldText", "old_text", "oldString", "search")
NEW = ("new_string", "new_str", "newText", "new_text", "newString", "replace")
CONTENT = ("content", "file_text", "contents", "text")
DIFFS = ("diff", "content")
LISTS = ("edits", "replacements")
HEREDOC = re.compile(r"^\s*(?:cd \S+ && )?cat > ?(\S+) <<-? ?['\"]?(\w+)['\"]?\n(.*?)\n?^\2\s*$", re.S | re.M)
HUNK = "@@"
SEARCHED = re.compile(
    r"<{5,}\s*SEARCH>?\n(?::start_line:\d+\n-+\n)?(.*?)\n?^={5,}\n(.*?)\n?^>{5,}\s*REPLACE", re.S | re.M
)
REFUSED = re.compile(
    r"\W*(?:tool_use_error|error|failed|failure|apply_patch verification failed|string to replace not|"
    r"no (?:match|replace)|could not|couldn't|cannot|unable to|invalid|permission denied|"
    r"the user (?:denied|doesn't|rejected))",
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


Change: TypeAlias = TextReplaced | FileWritten | UnreadableChange


def without_numbers(lines: Sequence[str | None]) -> VisibleLines | None:
    """Return numbered lines without their numbers, and no others; None where lines are not numbered."""
    matches = [match for line in lines if line and (match := NUMBERED.match(line))]
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
    return VisibleLines(tuple(None if OURS.match(line) else line for line in lines[start:]))


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
    if all(part[0] == parts[0][0] for part in parts):
        matched = visible.numbers or not _searches(call)
        return (Excerpt(parts[0][0], visible, parts[0][1]),) if matched else ()
    counts = [stop - start if stop is not None else 0 for _, start, stop in parts]
    lines = visible.lines[:-1] if visible.lines[-1:] == ("",) else visible.lines
    if not all(counts) or sum(counts) != len(lines) or visible.numbers:
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
    arguments = arguments_of(call)
    return displayed_by(argv_of(arguments.get("command", arguments.get("cmd"))))


@memoized
def _searches(call: ToolCall) -> bool:
    return "grep " in call.arguments or "rg " in call.arguments


def _rises(numbers: list[int]) -> bool:
    return all(one < other for one, other in pairwise(numbers))


def refused(call: ToolCall, result: ToolResult) -> bool:
    """Tell whether the answer to a call that changes files says that it changed nothing."""
    if not changes_of(call):
        return False
    return bool(exit_code(result.text)) if is_shell(call) else REFUSED.match(result.text) is not None


@memoized
def changes_of(call: ToolCall) -> tuple[Change, ...]:
    """Return the changes that a call makes to files, in order; empty for most calls."""
    written = writes(call)
    if not written:
        return ()
    arguments = arguments_of(call)
    if is_shell(call):
        command = argv_of(arguments.get("command", arguments.get("cmd")))
        changes = tuple(_patched(command)) if PATCHED.search(command) else tuple(_redirected(command))
    elif plain_name(call.name) in PATCHERS:
        text = "\n".join(str(value) for value in arguments.values()) if arguments else call.arguments
        changes = tuple(_patched(text))
    else:
        changes = tuple(_edited(written[0], arguments))
    known = {change.path for change in changes}
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


def _redirected(command: str) -> Iterator[Change]:
    for match in HEREDOC.finditer(command):
        yield FileWritten(match[1].strip("'\"").removeprefix("./"), match[3])


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
        elif path:
            mark, rest = line[:1], line[1:]
            if mark != "+" and kind != "Add":
                old.append(rest)
            if mark != "-":
                new.append(rest)
