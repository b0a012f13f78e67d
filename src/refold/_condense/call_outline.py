"""Writes the one-line outline of a tool call and its output that replaces the output."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from refold._condense.call_facts import SUBJECT, is_shell, reads, subject, writes
from refold._condense.digest.targets import target_of
from refold._condense.shell_commands import COMMENT, PATCHED, without_heredocs
from refold._text.graphemes import grapheme_prefix, grapheme_suffix
from refold.core.messages import ToolCall, memoized

if TYPE_CHECKING:
    from refold.core.messages import ToolResult

__all__ = [
    "CLEARED",
    "ERROR_LENGTH",
    "PARTS",
    "REPORTED",
    "WRONG_SIGNS",
    "call_line",
    "command_line",
    "content_line",
    "content_summary",
    "exit_code",
    "first_error",
    "may_be_wrong",
    "one_line",
    "pointer",
    "without_report",
    "wrong_line",
]  # fmt: skip

CLEARED = "[output cleared]"
PARTS = "[parts of the output]"
LOOKED_AT = 2_000  # characters at the start of an output that are searched for what it is
AT_END = 1_000  # and at its end, where commands say how they ended
CALL = 90  # characters of a path, a command or an argument that name a call
COMMAND, LONGEST_COMMAND = 100, 1_000  # of a command of a shell, and of one whose parts are looked at
PREFIX_LENGTH = 24  # of the beginning of a part by which it is known among the others
ERROR_LENGTH, BEFORE = 200, 60  # characters of a line that says what went wrong, and of a longer one before that word
NAMES = 8  # definitions, keys or files named in a line

COMMANDS = re.compile(  # a part of a line of commands, and what joins it to the next
    r"((?:'[^']*'|\"(?:\\.|[^\"\\])*\"|(?<=>)&\d?|[^'\"|;&])+)(\|\||&&|[|;&])?"
)
# Parts that print a mark, set a variable, filter an output, or change the folder.
PASSING = re.compile(
    r"(?:cd|pushd|echo|printf|export|set|source|sleep|true|head|tail|wc|sort|uniq|tee|cat|grep|eval|mkdir|Set-Location)\b|"
    r"\w+=\S*$|Select-(?:String|Object)\b"
)
NEXT_LINE = re.compile(r"(?<![&|;({\\\s])[ \t]*\n\s*")  # of a command, where another begins
REPEATED_GAP = re.compile(r"…(?: …)+")
CODE = re.compile(  # a first sign of its own is found quickest
    r"\n[ \t\d→:|]*(?:export |pub |async |static |public |private )*"
    r"((?:class|def|fn|func|function|struct|interface|trait|enum|impl|type)\s+\w+)"
)
KEYS = re.compile(r'"([A-Za-z_][\w.-]{0,40})"\s*:')
TESTS = re.compile(r"\b\d+ (?:passed|failed|errors?|skipped|xfailed|warnings?)\b")
HITS = re.compile(r"\n([\w./@+-]+\.\w{1,8})(?=[:\n])")
ERROR = re.compile(
    r"\w*(?:Error|Exception)\b[:(]|\b(?:error|fatal|panic(?:ked)?|FAILED|failed|Traceback|denied|not found|"
    r"No such file|cannot|undefined)\b"
)
WARNS = re.compile(r"\W*(?:[\w.:-]+\W+)?warn(?:ing)?\b", re.I)
BORDER = re.compile(r"(?<!\\)\"|\\n")  # a quote, or the end of a line in quotes
RAISED = re.compile(r"^(?:E\s+)?[\w.]*(?:Error|Exception)\b:.*$", re.M)
# Looked for before the patterns, which are slower: without one of them the pattern finds nothing.
RAISING = ("Error:", "Exception:")
WRONG_SIGNS = (
    "rror", "xception", "fatal", "panic", "FAILED", "failed", "Traceback", "denied", "not found", "No such file",
    "cannot", "undefined",
)  # fmt: skip
COUNTED = (" passed", " failed", " error", " skipped", " xfailed", " warning")
DEFINING = ("class", "def", "fn", "func", "struct", "interface", "trait", "enum", "impl", "type")
EXIT = re.compile(
    r"(?:exit(?:ed with)?(?: status| code)?|returncode|exit_code)[\"' ]*[:=]?[ >]*(-?\d{1,3})\b(?! ?(?:ms|s\b))", re.I
)
REPORTED = re.compile(  # what Codex says of a command before what it printed
    r"(?:(?:Script (?:completed|running|failed)|Chunk ID|Exit code|Wall time|"
    r"Process exited|Process running|Original token count|Total output lines|"
    r"Session ID)\b[^\n]*\n)+Output:\n"
)
MARKS = re.compile(
    r"```+|~~~+|</?(?:system|user|assistant|tool|human|instructions?|developer|summary)\b[^>]*>|<\|[^|>]{1,40}\|>|"
    r"\[/?(?:INST|SYS|compaction summary|conversation summary|system|summary)[^\]]*\]",
    re.I,
)
SPEAKERS = re.compile(r"^(?:system|user|assistant|human|developer)\s*:", re.I)


def one_line(text: str, limit: int = 160) -> str:
    """Return a text as one harmless line: no line breaks, fences, role tags or markers; cut at a space, if it must be.

    Words that came from tools pass through here, so that they can be quoted without gaining authority.
    """
    line = grapheme_prefix(text, 8 * limit)
    if any(sign in line for sign in "`~<["):
        line = MARKS.sub(" ", line)
    line = SPEAKERS.sub("", " ".join(line.split())).strip()
    if len(line) <= limit:
        return line
    end = line.rfind(" ", limit // 2, limit)
    return f"{grapheme_prefix(line, end if end > 0 else limit)} …"


def pointer(call: ToolCall | None, result: ToolResult) -> str:
    """Return what stands in place of an output: what was called, how much it was, what it held."""
    return f"{CLEARED} {call_line(call, result)}, {content_summary(result)}"


@memoized
def content_summary(result: ToolResult) -> str:
    """Return how much an output was and what it held."""
    what = content_line(result.text, error=result.is_error)
    detail = f": {what}" if what else ""
    return f"{_size(without_report(result.text))}{detail}"


def call_line(call: ToolCall | None, result: ToolResult | None = None) -> str:
    """Return a call as one line: the tool, and the file with its lines, the command or the first argument."""
    return one_line((result.name if result else "") or "tool", 60) if call is None else _line(call)


@memoized
def _line(call: ToolCall) -> str:
    ref = reads(call)
    if ref is not None:
        lines = "" if ref.whole else f" lines {ref.start}-{'end' if ref.stop is None else ref.stop - 1}"
        return f"{call.name} {one_line(ref.path, CALL)}{lines}"
    written = writes(call)
    about, plain = subject(call)
    if written and not (is_shell(call) and plain and not PATCHED.search(about)):
        return f"{call.name} {one_line(', '.join(written), CALL)}"
    if plain and is_shell(call):
        telling = one_line(target_of(call).written)
        return f"{call.name} `{command_line(about, telling).replace('`', chr(39))}`"
    if plain:
        return f"{call.name} `{one_line(about, CALL).replace('`', chr(39))}`"
    return f"{call.name} {one_line(about, CALL)}".rstrip()


def command_line(command: str, telling: str) -> str:
    """Return a shell command as one line: the whole, or the part of it that tells most and others that have room.

    `telling` is that part as one line. What prints a mark, filters an output or changes the folder goes first.
    """
    is_cut = len(command) >= SUBJECT
    command = COMMENT.sub("", command).strip() or command
    line = one_line(NEXT_LINE.sub("; ", without_heredocs(command).strip()), LONGEST_COMMAND)
    if not telling or len(line) <= COMMAND or line.endswith(" …"):
        return one_line(command, COMMAND)
    parts = [[part.strip(), joint] for part, joint in COMMANDS.findall(line) if part.strip()]
    if is_cut and len(parts) > 1:
        parts[-1] = ["…", ""]  # it was cut
    beginning = telling[:PREFIX_LENGTH]
    main = max((at for at, (part, _) in enumerate(parts) if part.startswith(beginning)), default=-1)
    if main < 0:
        return one_line(command, COMMAND)
    for at in sorted(range(len(parts)), key=lambda at: (at == main, not PASSING.match(parts[at][0]), at)):
        text = REPEATED_GAP.sub("…", " ".join(filter(None, chain.from_iterable(parts))))
        if len(text) <= COMMAND:
            return text
        parts[at] = parts[at] if at == main else ["…", ""]
    return one_line(f"{'… ' if main else ''}{parts[main][0]}", COMMAND)


def content_line(text: str, *, error: bool = False) -> str:
    """Return in a few words what an output holds: how it ended, its first error, or what sort of content it is."""
    code = exit_code(text)
    ended = f"exit code {code}" if code is not None else ""
    text = without_report(text)
    head = grapheme_prefix(text, LOOKED_AT)
    end = grapheme_suffix(text, AT_END)
    counted = ", ".join(TESTS.findall(end)[:4]) if _any(COUNTED, end) else ""
    wrong = first_error(text) if error or code or "failed" in counted else ""
    if wrong or counted:
        return "; ".join(filter(None, (ended, counted, wrong)))
    defined = CODE.findall(f"\n{head}") if _any(DEFINING, head) else ()
    if names := [" ".join(name.split()) for name in defined[:NAMES]]:
        return ", ".join(dict.fromkeys(names))
    if head.lstrip()[:1] in ("{", "[") and (keys := dict.fromkeys(KEYS.findall(head))):
        return f"JSON with {', '.join(list(keys)[:NAMES])}"
    files = dict.fromkeys(HITS.findall(f"\n{head}"))
    if len(files) > 1:
        return f"{len(files)} files: {', '.join(list(files)[:NAMES])}"
    opening = next((line for line in head.split("\n") if line.strip(" \t{}[]()<>#*-=/")), "")
    return "; ".join(filter(None, (ended, one_line(opening, 80))))


def without_report(text: str) -> str:
    """Return what a command printed, without what a harness reports of it first."""
    reported = REPORTED.match(text)
    return text[reported.end() :] if reported else text


def exit_code(text: str) -> int | None:
    """Return the exit code that an output names at its start or end, or None."""
    for piece in (text[:400], text[-300:]):
        small = piece.lower()
        if ("exit" in small or "returncode" in small) and (match := EXIT.search(piece)):
            return int(match[1])
    return None


def first_error(text: str) -> str:
    """Return the line of an output that says what went wrong, or nothing; a warning says it only where nothing else."""
    return one_line(wrong_line(text), ERROR_LENGTH)


def wrong_line(text: str, longest: int = ERROR_LENGTH) -> str:
    """Return what `first_error` does, word for word; of a line with more signs than `longest` only a part."""
    end = grapheme_suffix(text, AT_END)
    if len(end) < len(text) and "\n" in end:  # no line without its beginning
        end = end.partition("\n")[2]
    warning = ""
    for piece in (end, grapheme_prefix(text, LOOKED_AT)):
        if _any(RAISING, piece) and (exception := RAISED.search(piece)):
            return exception[0]
        for match in ERROR.finditer(piece) if may_be_wrong(piece) else ():
            line = _line_around(piece, match.start(), longest)
            if not WARNS.match(line):
                return line
            warning = warning or line
    return warning


def may_be_wrong(text: str) -> bool:
    """Tell quickly whether it is worth to look for an error in a text."""
    return _any(WRONG_SIGNS, text)


def _any(words: tuple[str, ...], text: str) -> bool:
    return any(map(text.__contains__, words))


def _line_around(text: str, position: int, longest: int) -> str:
    """Return the line at a position; of a long one what says last what went wrong, as far as its quotes or line go."""
    end = text.find("\n", position)
    start, end = text.rfind("\n", 0, position) + 1, end if end >= 0 else len(text)
    if end - start <= longest:
        return text[start:end]
    position = max(match.start() for match in ERROR.finditer(text, start, end))
    first = max((match.end() for match in BORDER.finditer(text, start, position)), default=start)
    last = BORDER.search(text, position, end)
    if last and last.start() - first < ERROR_LENGTH:
        return text[first : last.start()]
    return text[max(start, position - BEFORE) : end]


def _size(text: str) -> str:
    lines = text.count("\n") + 1
    return f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
