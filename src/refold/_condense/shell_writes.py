"""Which files a shell command writes, moves or deletes, as far as it names them, and which scripts it runs.

Those are the files that patches, redirections, `tee`, `sed -i`, `mv`, `cp`, `rm`, `git mv`, `git rm`,
`git checkout --` and `git restore` name, and what a program within the command opens for writing.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from refold._condense.shell_commands import is_odd, joined, patched_files, statements
from refold._text.text_cache import text_cache

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "FileWrite",
    "ends_by_writing",
    "manifests_changed",
    "scripts_run",
    "writes_in",
    "written_by",
    "written_by_program",
]

WRITES = re.compile(
    r">|\btee |\b(?:sed|perl) |\*\*\* |\+\+\+ |\b(?:mv|cp|rm|checkout|restore) |open\(|"
    r"write_text|writeFile|write_bytes|\.save(?:fig)?\(|\bcurl |\bwget "
)
PATCHES = re.compile(r"\b(?:git apply|patch)\b")
DIFFED = re.compile(r"^\+\+\+ (?:b/)?(?!/dev/null)(\S+)", re.M)  # files of a patch in the notation of diff
PROGRAM = re.compile(r"\b(?:python\d?(?:\.\d+)?|node|bun|deno|tsx|ruby)\b")
ASSIGNED = re.compile(r"\b(\w+)\s*=\s*(?:\w+\.)?(?:Path\()?r?['\"]([^'\"\n]+)['\"]")
_TARGET = r"(?:r?['\"]([^'\"\n]+)['\"]|(\w+)\b(?!\s*=))"  # a path in quotes, or a name that has one; no option
OPENED = re.compile(rf"(?:\bopen\(\s*{_TARGET}\s*,\s*(?:mode\s*=\s*)?['\"][wax])")
WRITTEN = re.compile(r"(?:\bPath\(\s*r?['\"]([^'\"\n]+)['\"]\s*\)|\b(\w+))\.write_(?:text|bytes)\(")
STORED = re.compile(rf"(?:\bwriteFile(?:Sync)?|\.save(?:fig)?|\.to_(?:csv|json|excel|parquet|html))\(\s*{_TARGET}")
IN_PLACE = re.compile(r"-\w*i(?:\.\w+)?$|--in-place")
EXPRESSION = re.compile(r"-\w*e$")
INTERPRETERS = frozenset({"python", "python3", "node", "bash", "sh", "zsh", "tsx", "bun", "ruby", "perl"})
SCRIPT = re.compile(r"\.(?:py|[mc]?[jt]s|sh|rb|pl)$")
OUTPUT_FLAGS = {"curl": ("-o", "--output"), "wget": ("-O", "--output-document")}
SUFFIX = re.compile(r"\.\w{1,8}$")  # of what is a file and no folder
PROGRAMS = re.compile(r"\b(?:open\(|write_text|writeFile|write_bytes)|\.save(?:fig)?\(|\.to_\w+\(")


# Files in which package managers write what they add and remove: what a project asks for, and the exact versions.
MANIFESTS = {
    "npm": ("package.json", "package-lock.json"),
    "pnpm": ("package.json", "pnpm-lock.yaml"),
    "yarn": ("package.json", "yarn.lock"),
    "bun": ("package.json", "bun.lock"),
    "cargo": ("Cargo.toml", "Cargo.lock"),
    "uv": ("pyproject.toml", "uv.lock"),
    "poetry": ("pyproject.toml", "poetry.lock"),
    "go": ("go.mod", "go.sum"),
}
ADDS = re.compile(
    r"\b(?:(?:npm|pnpm|yarn|bun) (?:add|i|install|remove|rm|un|uninstall)|"
    r"(?:cargo|uv|poetry) (?:add|remove|rm)|go get)\b"
)
ELSEWHERE = ("-g", "--global", "--prefix", "-C", "--cwd", "--no-save", "-w", "--workspace", "--filter", "--dry-run")


How: TypeAlias = Literal["written", "edited", "deleted", "moved", "copied", "downloaded"]


class FileWrite(Struct, frozen=True):
    """What a command does to a file: it writes it anew, edits it in place, deletes it, or has it from elsewhere.

    It moves or copies it from `source`, which of a copy is empty where only the shell knows it, or downloads it.
    """

    path: str
    how: How = "written"
    source: str = ""


def written_by(command: str) -> tuple[str, ...]:
    """Return the files that a command creates, changes, moves or deletes, without folders."""
    paths = (
        path
        for each in writes_in(command)
        for path in (each.path, each.source if each.how == "moved" else "")
        if path and (each.how not in ("deleted", "moved") or SUFFIX.search(path))
    )
    return tuple(dict.fromkeys(paths))


@text_cache
def writes_in(command: str) -> tuple[FileWrite, ...]:
    """Return what a command does to files, in order; a patch within it stands for all."""
    if not WRITES.search(command):
        return ()
    patched = patched_files(command)
    if not patched and "+++ " in command and PATCHES.search(command):
        patched = tuple(DIFFED.findall(command))
    if patched:
        return tuple(map(FileWrite, patched))
    programs = written_by_program(command) if PROGRAM.search(command) else ()
    simple = (write for folder, words in statements(command) for write in _writes(words, folder))
    return (*(FileWrite(path, "edited") for path in programs), *simple)


def written_by_program(text: str) -> tuple[str, ...]:
    """Return the files that a program in Python or JavaScript opens for writing, where it names them."""
    if not PROGRAMS.search(text):
        return ()
    named = dict(ASSIGNED.findall(text))
    used = (each for pattern in (OPENED, WRITTEN, STORED) for each in pattern.findall(text))
    paths = (quoted or named.get(name, "") for quoted, name in used)
    return tuple(dict.fromkeys(path for path in paths if not is_odd(path) and "{" not in path))


def scripts_run(command: str) -> tuple[str, ...]:
    """Return the scripts that a command runs: files given to an interpreter, or started by their path."""
    return tuple(
        joined(folder, script)
        for folder, words in statements(command)
        for script in (words[1:2] if words[0].rsplit("/", 1)[-1] in INTERPRETERS else words[:1])
        if SCRIPT.search(script) and not is_odd(script)
    )


def manifests_changed(command: str) -> dict[str, str]:
    """Return the files that package managers change as they add and remove packages, each with its command."""
    return {
        joined(folder, path): " ".join(words[: words.index(">")] if ">" in words else words)
        for folder, words in (statements(command) if ADDS.search(command) else ())
        if ADDS.fullmatch(" ".join(words[:2])) and not any(word.startswith(ELSEWHERE) for word in words)
        if any(word[:1].isalpha() or word[:1] == "@" for word in words[2:])
        for path in MANIFESTS[words[0]]
    }


def ends_by_writing(command: str) -> bool:
    """Tell whether the last command in a line writes the files: where it failed, they are unchanged."""
    simple = statements(command)
    if not simple or "*** End Patch" in command[-200:]:
        return True
    folder, last = simple[-1]
    program = PROGRAM.match(last[0]) is not None and bool(written_by_program(command))
    return program or any(_writes(last, folder))


def _writes(words: list[str], folder: str) -> Iterator[FileWrite]:
    """Yield what a simple command does to files."""
    for mark, path in pairwise(words):
        if mark in (">", ">>") and not is_odd(path):
            yield FileWrite(joined(folder, path), "edited" if mark == ">>" else "written")
    for path, how, source in _named(words):
        known = bool(source) and not is_odd(source)
        if not is_odd(path) and (known or not source or how == "copied"):
            yield FileWrite(joined(folder, path), how, joined(folder, source) if known else "")


def _named(words: list[str]) -> Iterator[tuple[str, How, str]]:
    """Yield the files that a program is given to write, how, and where from."""
    stop = next((at for at, word in enumerate(words) if word in (">", ">>", "<")), len(words))
    git = words[0] == "git"
    program, *rest = words[1:stop] if git and stop > 1 else words[:stop] or [""]
    plain = [word for word in rest if word and word[0] != "-"]
    match program:
        case "tee":
            yield from ((path, "edited" if "-a" in rest else "written", "") for path in plain)
        case "sed" | "gsed" | "perl" if any(map(IN_PLACE.match, rest)):
            with_scripts = any(word in ("-e", "-f") or EXPRESSION.match(word) for word in rest)
            files = [
                word for before, word in pairwise((program, *rest)) if not EXPRESSION.match(before) and word in plain
            ]
            yield from ((path, "edited", "") for path in (files if with_scripts else files[1:]))
        case "checkout" | "restore" if git and "--" in rest:
            yield from ((path, "written", "") for path in rest[rest.index("--") + 1 :])
        case "restore" if git and not ({"--staged", "-S"} & {*rest} and not {"--worktree", "-W"} & {*rest}):
            named = pairwise((program, *rest))
            yield from (
                (path, "written", "") for flag, path in named if path in plain and flag not in ("--source", "-s")
            )
        case "mv" | "cp" if len(plain) > 1:
            for source, path in _moves(plain):
                yield path, "moved" if program == "mv" else "copied", source
        case "curl" | "wget":
            yield from ((path, "downloaded", "") for flag, path in pairwise(rest) if flag in OUTPUT_FLAGS[program])
        case "rm" if "--cached" not in rest:
            yield from ((path, "deleted", "") for path in plain)


def _moves(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield source and target of each file that is moved or copied: into a folder, or under another name."""
    *sources, last = names
    if len(sources) > 1 or last.endswith(("/", ".")) or (not SUFFIX.search(last) and any(map(SUFFIX.search, sources))):
        yield from ((source, f"{last.rstrip('/')}/{source.rsplit('/', 1)[-1]}") for source in sources)
    else:
        yield sources[0], last
