"""Facts read off tool calls: which file a call reads, which lines of it, and which files it changes.

Tools are known by their names and arguments, never by prose that sounds like one (N04).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec import Struct

from refold._condense.scripted_calls import scripted_arguments
from refold._condense.shell_commands import argv_of, patched_files, read_by
from refold._condense.shell_writes import written_by
from refold._text.graphemes import grapheme_prefix
from refold._text.secrets import names_secret
from refold._text.text_cache import word_cache
from refold.core._json import Json, decoded, mapping
from refold.core.messages import Text, ToolCall, ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message

__all__ = [
    "SUBJECT",
    "Act",
    "FileRef",
    "act_of",
    "arguments_of",
    "failed",
    "files_of",
    "is_shell",
    "plain_name",
    "reads",
    "reports_error",
    "subject",
    "workdir",
    "writes",
]

_decode = msgspec.json.Decoder().decode
WHOLE_READ = 2_000  # lines that common agents show when a whole file is asked for; what follows was not shown
READERS = frozenset(
    {
        "read",
        "readfile",
        "read_file",
        "view",
        "view_file",
        "viewfile",
        "open_file",
        "fs_read",
        "notebookread",
        "notebook_read",
        "cat",
    }
)
WRITERS = frozenset(
    {
        "write",
        "write_file",
        "writefile",
        "edit",
        "edit_file",
        "editfile",
        "multiedit",
        "multi_edit",
        "notebookedit",
        "notebook_edit",
        "replace",
        "create_file",
        "write_to_file",
        "replace_in_file",
        "search_replace",
        "str_replace",
        "fs_write",
        "apply_diff",
        "update_file",
        "delete_file",
        "replace_string_in_file",
        "insert_edit_into_file",
    }
)
EDITORS = frozenset({"str_replace_editor", "str_replace_based_edit_tool", "text_editor", "file_editor"})
PATCHERS = frozenset({"apply_patch", "patch"})
SHELLS = frozenset(
    {
        "bash",
        "shell",
        "exec",
        "exec_command",
        "local_shell",
        "run_shell_command",
        "execute_bash",
        "terminal",
        "run_command",
        "execute_command",
        "run_in_terminal",
        "run_terminal_cmd",
        "shell_command",
        "powershell",
        "pwsh",
    }
)
SEARCHERS = frozenset(
    {
        "glob",
        "grep",
        "ls",
        "list",
        "list_dir",
        "list_directory",
        "list_files",
        "listdir",
        "search",
        "search_files",
        "search_file_content",
        "file_search",
        "grep_search",
        "codebase_search",
        "find",
        "find_files",
        "ripgrep",
    }
)
ERROR_OPENING = re.compile(
    r"\s*(?:Traceback \(most recent call last\)|[\w.]*(?:Error|Exception|Timeout|Expired)):", re.A
)
ERROR_STATUS = re.compile(  # an answer of a service that says in its first field that it failed
    r"\s*\{\s*\"(?:status\"\s*:\s*\"(?:error|failed|failure)\"|error\"\s*:\s*[\"{](?!\")|"
    r"(?:is_?error)\"\s*:\s*true|(?:success|ok)\"\s*:\s*false)",
    re.I,
)
SUBJECTS = ("command", "cmd", "pattern", "query", "url", "path")
SUBJECT = 720  # characters of what a call is about that are kept: a line of it is shorter
FOLDER_KEYS = ("workdir", "cwd", "working_directory", "directory")  # of the folder that a command is run in
PATH_KEYS = ("file_path", "path", "filePath", "absolute_path", "notebook_path", "filename", "target_file", "file")


Act: TypeAlias = Literal["read", "write", "search", "run"]


class FileRef(Struct, frozen=True, omit_defaults=True):
    """A file and the lines of it that a call asks for: from `start`, counted from 1, to before `stop`, or the end."""

    path: str
    start: int = 1
    stop: int | None = None

    @property
    def whole(self) -> bool:
        """Tell whether the call asks for the file without naming lines."""
        return self.start <= 1 and self.stop is None

    def covers(self, other: FileRef) -> bool:
        """Tell whether what this call shows contains what the other shows; a whole read shows 2,000 lines."""
        if self.path != other.path or self.start > other.start:
            return False
        if self.whole and not other.whole:
            return other.stop is not None and other.stop <= WHOLE_READ + 1
        return self.stop is None or (other.stop is not None and other.stop <= self.stop)


@word_cache(1_024)
def plain_name(name: str) -> str:
    """Return a tool's name in small letters, without the server it comes from (`mcp__fs__read_file`)."""
    return name.rsplit("__", 1)[-1].rsplit(".", 1)[-1].rsplit("/", 1)[-1].lower()


def arguments_of(call: ToolCall) -> Json:
    """Return the arguments of a call as a mapping, of a script those of the calls in it; an empty one of other text."""
    try:
        return mapping(_decode(call.arguments))
    except (msgspec.DecodeError, UnicodeEncodeError):  # models write what the strict decoder refuses
        return mapping(decoded(call.arguments)) or scripted_arguments(call.arguments)


@memoized
def is_shell(call: ToolCall) -> bool:
    """Tell whether a call runs a command of a shell."""
    return plain_name(call.name) in SHELLS


def act_of(call: ToolCall) -> Act | None:  # L02
    """Return what a call does to files, by its tool's name: read, write, search or run; None for other tools."""
    name = plain_name(call.name)
    if name in SHELLS:
        return "run"
    if name in SEARCHERS:
        return "search"
    if name in EDITORS:
        return "write" if writes(call) else "read"
    return "read" if name in READERS else "write" if name in WRITERS or name in PATCHERS else None


def failed(result: ToolResult) -> bool:
    """Tell whether a result reports an error: by its flag or, in formats that have none, by how its text begins."""
    return result.is_error or any(
        isinstance(part, Text) and ERROR_OPENING.match(part.text) is not None for part in result.content[:1]
    )


def reports_error(result: ToolResult) -> bool:
    """Tell whether an answer that is one JSON object reports an error by its status."""
    return ERROR_STATUS.match(result.text) is not None


def reads(call: ToolCall) -> FileRef | None:
    """Return the file and lines that a call reads, or None."""
    return _facts(call)[0]


def writes(call: ToolCall) -> tuple[str, ...]:
    """Return the files that a call creates, changes or deletes; empty for most calls."""
    return _facts(call)[1]


def subject(call: ToolCall) -> tuple[str, bool]:
    """Return the beginning of what a call is about, and whether it is a command, pattern, query, address or path."""
    return _facts(call)[2]


def workdir(call: ToolCall) -> str:
    """Return the folder that a call of a shell names to be run in, or nothing."""
    return _facts(call)[3]


@memoized
def _facts(call: ToolCall) -> tuple[FileRef | None, tuple[str, ...], tuple[str, bool], str]:
    """Return what a call reads, writes and is about; its arguments are decoded here and nowhere else."""
    name = plain_name(call.name)
    arguments = arguments_of(call)
    ref: FileRef | None = None
    written: tuple[str, ...] = ()
    if name in READERS:
        ref = _ref(arguments)
    elif name in WRITERS:
        written = _one(arguments)
    elif name in EDITORS:
        views = arguments.get("command") == "view"
        ref, written = (_ref(arguments), ()) if views else (None, _one(arguments))
    elif name in PATCHERS:
        written = patched_files(_patch_text(call, arguments)) or _one(arguments)
    elif name in SHELLS and arguments:
        command = argv_of(arguments.get("command", arguments.get("cmd")))
        read = read_by(command)
        ref, written = FileRef(*read) if read else None, written_by(command)
    folder = next((value for key in FOLDER_KEYS if isinstance(value := arguments.get(key), str)), "")
    return ref, written, _subject(arguments), folder if name in SHELLS else ""


def _subject(arguments: Json) -> tuple[str, bool]:
    for key in SUBJECTS:
        value = arguments.get(key)
        if isinstance(value, list):
            value = argv_of(value)
        if isinstance(value, str) and value:
            return grapheme_prefix(value, SUBJECT), True
    values = (value for name, value in arguments.items() if isinstance(value, str) and value and not names_secret(name))
    return grapheme_prefix(next(values, ""), SUBJECT), False


def files_of(messages: Sequence[Message]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files read and the files modified, each in order of first mention.

    The lists of earlier summaries come first; a file that was read and later modified is modified only (O11).
    Calls whose result is an error count for nothing.
    """
    failed = {result.call_id for message in messages for result in message.results if result.is_error}
    failed.discard("")
    read: dict[str, None] = {}
    modified: dict[str, None] = {}
    for message in messages:
        if message.note is not None:
            read |= dict.fromkeys(message.note.read)
            modified |= dict.fromkeys(message.note.modified)
        for call in message.calls:
            if call.call_id not in failed:
                ref, written, *_ = _facts(call)
                if ref:
                    read[ref.path] = None
                for path in written:
                    modified[path] = None
    return tuple(path for path in read if path not in modified), tuple(modified)


def _patch_text(call: ToolCall, arguments: Json) -> str:
    return "\n".join(str(value) for value in arguments.values()) if arguments else call.arguments


def _one(arguments: Json) -> tuple[str, ...]:
    path = _path(arguments)
    return (path,) if path else ()


def _path(arguments: Json) -> str:
    return next((value for key in PATH_KEYS if isinstance(value := arguments.get(key), str) and value), "")


def _ref(arguments: Json) -> FileRef | None:
    path = _path(arguments)
    if not path:
        return None
    match arguments.get("view_range"):
        case [int(top), int(bottom)]:
            return FileRef(path, max(top, 1), None if bottom < 0 else bottom + 1)
    first = _number(arguments, "offset", "start_line", "startLine", "line_start") or 1
    last = _number(arguments, "end_line", "endLine", "line_end")
    count = _number(arguments, "limit", "line_count")
    stop = last + 1 if last is not None else max(first, 1) + count if count is not None else None
    return FileRef(path, max(first, 1), stop)


def _number(arguments: Json, *keys: str) -> int | None:
    return next((value for key in keys if isinstance(value := arguments.get(key), int)), None)
