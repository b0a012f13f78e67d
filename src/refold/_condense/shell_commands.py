"""Which files a shell command plainly reads or writes; a command that is not plain names none."""

from __future__ import annotations

import re
from itertools import pairwise

__all__ = ["argv_of", "displayed_by", "patched_files", "read_by", "without_heredocs", "written_by"]

LONGEST = 2_000  # characters of a command that are looked at; a longer one is a program of its own
PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.M)
RANGE = re.compile(r"^(\d+)(?:,(\d+|\$))?p$")
COMMENT = re.compile(r"^\s*#.*$", re.M)
SHOWS = re.compile(r"\s*(?:cd \S+ && )?(?:cat|nl|head|sed) ")
SHOWS_PARTS = re.compile(r"\s*(?:cd \S+ (?:&&|;) )?(?:cat|nl|head|sed|tail|grep|rg) ")
AT_END = 1_000_000  # stands for the first line of a part at the end of a file
SAFE = re.compile(r"[\w@%+=:,./-]+")
TOKEN = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s'\"\\;&|<>()])+|&&|\|\||>>|[;&|<>()]", re.S)
QUOTED = re.compile(r"'([^']*)'|\"((?:\\.|[^\"\\])*)\"|\\(.)", re.S)
HEREDOC = re.compile(r"(<<-?\s*(['\"]?)(\w+)\2[^\n]*)(?:\n.*?(?:^\s*\3\s*$|\Z)|\Z)", re.S | re.M)
NOWHERE = ("2>&1", ">&2", "2>/dev/null", "2> /dev/null", ">/dev/null", "> /dev/null")  # redirections to no file
JOINERS = {"|", "||", "&&", ";", "&", "(", ")"}


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


def without_heredocs(command: str) -> str:
    """Return a command without the texts that it gives to programs in place of files."""
    return HEREDOC.sub(r"\1", command) if "<<" in command else command


def patched_files(text: str) -> tuple[str, ...]:
    """Return the files that a patch in the `*** Update File:` notation touches."""
    return tuple(dict.fromkeys(PATCHED.findall(text))) if "*** " in text else ()


def read_by(command: str) -> tuple[str, int, int | None] | None:
    """Return path, first line and the line after the last that `cat`, `head` or `sed -n` show; else None."""
    folder, words = _plain(command) if SHOWS.match(command) else ("", [])
    read = _read(words)
    return None if read is None or _odd(read[0]) else (_joined(folder, read[0]), *read[1:])


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
        if part is None or _odd(part[0]) or any(word[0] in "<>()&" for word in statement if word):
            return ()
        parts.append((_joined(folder, part[0]), *part[1:]))
    return tuple(parts)


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


def written_by(command: str) -> tuple[str, ...]:
    """Return the files that a patch, a redirection, `tee` or `sed -i` in a command writes."""
    if patched := patched_files(command):
        return patched
    line = COMMENT.sub("", command.split("<<", 1)[0])
    for nowhere in NOWHERE:
        line = line.replace(nowhere, "")
    if len(line) > LONGEST or not any(mark in line for mark in (">", "tee ", "sed -i")):
        return ()
    words = _words(line)
    folder = words[1] if len(words) > 2 and words[0] == "cd" and words[2] == "&&" else ""
    paths = [after for mark, after in pairwise(words) if mark in (">", ">>", "tee")]
    if words[-3:-2] == ["-i"] and "sed" in words:
        paths.append(words[-1])
    return tuple(_joined(folder, path) for path in dict.fromkeys(paths) if not _odd(path))


def _plain(command: str) -> tuple[str, list[str]]:
    """Return the folder a command changes to first, and its words if it is one simple command."""
    words = _words(command) if len(command) <= LONGEST else []
    folder = ""
    if len(words) > 3 and words[0] == "cd" and words[2] == "&&":
        folder, words = words[1], words[3:]
    plain = not any(word in JOINERS or word[0] in "<>" for word in words if word)
    return folder, words if plain else []


def _words(command: str) -> list[str]:
    """Return the words of a command without their quotes; none where a quotation is left open."""
    if _quotes(command) and _quotes(TOKEN.sub("", command)):
        return []
    words: list[str] = TOKEN.findall(command)
    return [QUOTED.sub(_unquoted, word) if _quotes(word) else word for word in words]


def _quotes(text: str) -> bool:
    return "'" in text or '"' in text or "\\" in text


def _unquoted(read: re.Match[str]) -> str:
    if read[2] is not None:
        return re.sub(r"\\(.)", r"\1", read[2], flags=re.S)
    return read[1] if read[1] is not None else read[3]


def _joined(folder: str, path: str) -> str:
    path = path.removeprefix("./")
    return f"{folder.rstrip('/')}/{path}" if folder and path[0] != "/" else path


def _odd(path: str) -> bool:
    """Tell whether a word is no path that can be known here: a flag, a variable, a pattern, a device."""
    return not path or path[0] in "-&" or any(mark in path for mark in "$*?`\n") or path.startswith("/dev/")
