"""Which files a shell command plainly reads or writes; a command that is not plain names none."""

from __future__ import annotations

import re
from itertools import pairwise

__all__ = ["argv_of", "patched_files", "read_by", "written_by"]

LONGEST = 2_000  # characters of a command that are looked at; a longer one is a program of its own
PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.M)
RANGE = re.compile(r"^(\d+)(?:,(\d+|\$))?p$")
COMMENT = re.compile(r"^\s*#.*$", re.M)
SHOWS = re.compile(r"\s*(?:cd \S+ && )?(?:cat|nl|head|sed) ")
SAFE = re.compile(r"[\w@%+=:,./-]+")
TOKEN = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s'\"\\;&|<>()])+|&&|\|\||>>|[;&|<>()]", re.S)
QUOTED = re.compile(r"'([^']*)'|\"((?:\\.|[^\"\\])*)\"|\\(.)", re.S)
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


def patched_files(text: str) -> tuple[str, ...]:
    """Return the files that a patch in the `*** Update File:` notation touches."""
    return tuple(dict.fromkeys(PATCHED.findall(text))) if "*** " in text else ()


def read_by(command: str) -> tuple[str, int, int | None] | None:
    """Return path, first line and the line after the last that `cat`, `head` or `sed -n` show; else None."""
    folder, words = _plain(command) if SHOWS.match(command) else ("", [])
    match words:
        case ["cat", path] | ["cat", "-n", path] | ["nl", "-ba", path] | ["nl", path]:
            read: tuple[str, int, int | None] | None = (path, 1, None)
        case ["head", path]:
            read = (path, 1, 11)
        case ["head", "-n", count, path] if count.isdecimal():
            read = (path, 1, int(count) + 1)
        case ["sed", "-n", range_, path] if lines := RANGE.match(range_):
            last = lines[2] or lines[1]
            read = (path, int(lines[1]), None if last == "$" else int(last) + 1)
        case _:
            read = None
    return None if read is None or _odd(read[0]) else (_joined(folder, read[0]), *read[1:])


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
