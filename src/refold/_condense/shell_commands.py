"""The words of shell commands, and which files they plainly show; a command that is not plain names none."""

from __future__ import annotations

import re

__all__ = [
    "COMMENT",
    "GIT",
    "argv_of",
    "displayed_by",
    "files_displayed",
    "is_odd",
    "joined",
    "patched_files",
    "plain_path",
    "read_by",
    "statements",
    "without_heredocs",
]

GIT = r"\bgit(?: -[cC] \S+){0,4}"  # how a command of Git begins, with the options before its name
LONGEST = 2_000  # characters of a command that are looked at; a longer one is a program of its own
PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.M)
RANGE = re.compile(r"^(\d+)(?:,(\d+|\$))?p$")
COMMENT = re.compile(r"^\s*#.*$", re.M)
GET_CONTENT = re.compile(  # of PowerShell, where a backslash is a part of a path
    r"\s*Get-Content(?: -(?:Raw|Path|LiteralPath|Encoding \w+))*"
    r"(?: ['\"]([^'\"$*]+)['\"]| ([^-\s'\"$*|;&][^\s'\"$*|;&]*))(?: -(?:Raw|Encoding \w+))*\s*",
    re.I,
)
SHOWS = re.compile(r"\s*(?:cd \S+ && )?(?:cat|nl|head|sed) ")
SHOWS_PARTS = re.compile(r"\s*(?:cd \S+ (?:&&|;) )?(?:cat|nl|head|sed|tail|grep|rg) ")
AT_END = 1_000_000  # stands for the first line of a part at the end of a file
SAFE = re.compile(r"[\w@%+=:,./-]+")
TOKEN = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s'\"\\;&|<>()])+|&&|\|\||>>|[;&|<>()]", re.S)
LINES = re.compile(rf"{TOKEN.pattern}|\n", re.S)  # the same with ends of lines
QUOTED = re.compile(r"'([^']*)'|\"((?:\\.|[^\"\\])*)\"|\\(.)", re.S)
HEREDOC = re.compile(r"(<<-?\s*(['\"]?)(\w+)\2[^\n]*)(?:\n.*?(?:^\s*\3\s*$|\Z)|\Z)", re.S | re.M)
# A text that a command takes as one of its words, such as the message of a commit, and the first line of it.
HEREDOC_WORD = re.compile(r"\$\(cat <<-?\s*(['\"]?)(\w+)\1\n[ \t]*([^\n]*)\n(?:.*?\n)??[ \t]*\2[ \t]*\n?[ \t]*\)", re.S)
NOWHERE = ("2>&1", ">&2", "2>/dev/null", "2> /dev/null", ">/dev/null", "> /dev/null")  # redirections to no file
JOINERS = {"|", "||", "&&", ";", "&", "(", ")"}


ASSIGNMENT = re.compile(r"\w+=")
HERE = re.compile(r"^(?:\./+)+")  # the folder that a command runs in, before a path
DRIVE = re.compile(r"([A-Za-z]):(?=/)|/mnt/([a-z])(?=/)")
STARTERS = frozenset({"sudo", "time", "env", "then", "do", "else", "if", "!", "{"})


def argv_of(command: object) -> str:
    """Return a command as one line of shell, whether it was given as text or as a list of words."""
    match command:
        case str():
            return command
        case [("bash" | "sh" | "zsh" | "/bin/bash" | "/bin/sh"), str(flag), str(script), *_] if flag.endswith("c"):
            return script
        case list():
            return " ".join(
                word if SAFE.fullmatch(word) else "'" + word.replace("'", "'\\''") + "'" for word in map(str, command)
            )
        case _:
            return ""


def plain_path(path: str) -> str:
    """Return a path as a shell of Unix writes it, that of a drive of Windows, too: `C:/a`, `/mnt/c/a` are `/c/a`."""
    plain = HERE.sub("", path.replace("\\", "/"))
    drive = DRIVE.match(plain)
    return f"/{(drive[1] or drive[2]).lower()}{plain[drive.end() :]}" if drive else plain


def without_heredocs(command: str) -> str:
    """Return a command without the texts that it gives to programs in place of files.

    Of one that stands in quotes in place of a word the first line stays.
    """
    return HEREDOC.sub(r"\1", HEREDOC_WORD.sub(r"\3", command)) if "<<" in command else command


def patched_files(text: str) -> tuple[str, ...]:
    """Return the files that a patch in the `*** Update File:` notation touches."""
    return tuple(dict.fromkeys(PATCHED.findall(text))) if "*** " in text else ()


def read_by(command: str) -> tuple[str, int, int | None] | None:
    """Return path, first line and the line after the last that `cat`, `head`, `sed -n` or `Get-Content` show."""
    if powershell := GET_CONTENT.fullmatch(command):
        return powershell[1] or powershell[2], 1, None
    folder, words = _plain(command) if SHOWS.match(command) else ("", [])
    read = _read(words)
    return None if read is None or is_odd(read[0]) else (joined(folder, read[0]), *read[1:])


def _read(words: list[str]) -> tuple[str, int, int | None] | None:
    """Return what the words of a simple command show of a file."""
    match words:
        case ["cat", path] | ["cat", "-n", path] | ["nl", "-ba", path] | ["nl", path]:
            return path, 1, None
        case ["head", path]:
            return path, 1, 11
        case ["head", "-n", count, path] if count.isdecimal():
            return path, 1, int(count) + 1
        case ["sed", "-n", range_, path] if lines := RANGE.match(range_):
            last = lines[2] or lines[1]
            return path, int(lines[1]), None if last == "$" else int(last) + 1
        case _:
            return None


def displayed_by(command: str) -> tuple[tuple[str, int, int | None], ...]:
    """Return path, first line and the line after the last of each part of a file that a command shows, in order.

    Every statement has to show a part of one file (`nl file | sed -n 3,9p`, `tail -n 9 file`, `grep -n words file`), or
    to print nothing but a mark; else nothing is returned, for nobody knows which lines are whose. A part whose first
    line is not known is said to begin at 1, or at `AT_END`.
    """
    if not SHOWS_PARTS.match(command) or "<<" in command:
        return ()
    words = _words(command) if len(command) <= LONGEST else []
    folder = ""
    if len(words) > 3 and words[0] == "cd" and words[2] in ("&&", ";"):
        folder, words = words[1], words[3:]
    parts: list[tuple[str, int, int | None]] = []
    for statement in _split(words, {"&&", ";", "||"}):
        first, *filters = _split(statement, {"|"}) or [[]]
        if not first or first[0] in ("echo", "printf", "true", "pwd"):
            continue
        part = _part_displayed(first)
        for words_of_filter in filters:
            part = _filtered(part, words_of_filter) if part else None
        if part is None or is_odd(part[0]) or any(word[0] in "<>()&" for word in statement if word):
            return ()
        parts.append((joined(folder, part[0]), *part[1:]))
    return tuple(parts)


def files_displayed(command: str) -> tuple[str, ...]:
    """Return the files of which a command shows something, whatever else it does, each once."""
    parts = ((folder, part) for folder, words in statements(command) if (part := _part_displayed(words)))
    return tuple(dict.fromkeys(joined(folder, part[0]) for folder, part in parts if not is_odd(part[0])))


def _split(words: list[str], marks: set[str]) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    for word in words:
        if word in marks:
            pieces.append([])
        else:
            pieces[-1].append(word)
    return pieces


def _part_displayed(words: list[str]) -> tuple[str, int, int | None] | None:
    match words:
        case ["cat" | "nl" | "head" | "sed", *_]:
            return _read(words)
        case ["tail", path] | ["tail", "-n", _, path]:
            return path, AT_END, None
        case ["tail", count, path] if count[:1] == "-" and count[1:].isdecimal():
            return path, AT_END, None
        case ["grep" | "rg", *rest] if any(word[:1] == "-" and word[:2] != "--" and "n" in word for word in rest):
            plain = [word for word in rest if word[:1] != "-" and not word.isdecimal()]
            return (plain[1], 1, None) if len(plain) == 2 else None
        case _:
            return None


def _filtered(part: tuple[str, int, int | None], words: list[str]) -> tuple[str, int, int | None] | None:
    """Return what of a part of a file a command behind it in a pipe lets through."""
    path, start, _ = part
    match words:
        case ["sed", "-n", range_] if lines := RANGE.match(range_):
            last = lines[2] or lines[1]
            return path, start + int(lines[1]) - 1, None if last == "$" else start + int(last)
        case ["head", count] if count[:1] == "-" and count[1:].isdecimal():
            return path, start, start + int(count[1:])
        case ["head", "-n", count] if count.isdecimal():
            return path, start, start + int(count)
        case ["tail", *_]:
            return path, AT_END, None
        case ["cat", "-A"]:
            return None
        case ["cat" | "nl", *_]:
            return part
        case _:
            return None


def statements(command: str) -> list[tuple[str, list[str]]]:
    """Return the words of each simple command in a line, without what it is started by, and the folder it runs in."""
    line = COMMENT.sub("", without_heredocs(command)).replace("\\\n", " ")
    for nowhere in NOWHERE:
        line = line.replace(nowhere, "")
    folder = ""
    simple: list[tuple[str, list[str]]] = []
    for words in _split(_words(line, LINES) if len(line) <= LONGEST else [], JOINERS | {"\n"}):
        while words and (ASSIGNMENT.match(words[0]) or words[0] in STARTERS):
            words = words[1:]
        if len(words) == 2 and words[0] == "cd":
            folder = words[1]
        elif words:
            simple.append((folder, words))
    return simple


def _plain(command: str) -> tuple[str, list[str]]:
    """Return the folder a command changes to first, and its words if it is one simple command."""
    words = _words(command) if len(command) <= LONGEST else []
    folder = ""
    if len(words) > 3 and words[0] == "cd" and words[2] == "&&":
        folder, words = words[1], words[3:]
    plain = not any(word in JOINERS or word[0] in "<>" for word in words if word)
    return folder, words if plain else []


def _words(command: str, tokens: re.Pattern[str] = TOKEN) -> list[str]:
    """Return the words of a command without their quotes; none where a quotation is left open."""
    if _quotes(command) and _quotes(tokens.sub("", command)):
        return []
    words: list[str] = tokens.findall(command)
    return [QUOTED.sub(_unquoted, word) if _quotes(word) else word for word in words]


def _quotes(text: str) -> bool:
    return "'" in text or '"' in text or "\\" in text


def _unquoted(read: re.Match[str]) -> str:
    if read[2] is not None:
        return re.sub(r"\\(.)", r"\1", read[2], flags=re.S)
    return read[1] if read[1] is not None else read[3]


def joined(folder: str, path: str) -> str:
    """Return a path from where a command begins that changes to a folder first."""
    path = HERE.sub("", path)
    return f"{folder.rstrip('/')}/{path}" if folder and not path.startswith("/") else path


def is_odd(path: str) -> bool:
    """Tell whether a word is no path of a file that can be known: a flag, a variable, a pattern, `./`, a device."""
    return (
        not path.strip("./") or path[0] in "-&=" or any(mark in path for mark in "$*?`\n") or path.startswith("/dev/")
    )
