"""Tools for the files of one folder: read, write, edit, list, glob, grep. Nothing outside of it is read or written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from refold._files import write_atomically
from refold._text.graphemes import grapheme_prefix
from refold.agent._tools import Tool, tool
from refold.errors import UsageError
from refold.models._tool_output import MAX_BYTES, MAX_LINES, truncate_output

__all__ = ["Workspace"]

FilePath: TypeAlias = Annotated[str, msgspec.Meta(description="path of a file, relative to the folder")]
Folder: TypeAlias = Annotated[str, msgspec.Meta(description="path of a folder, relative to the folder that is shared")]

LARGEST = 10_000_000  # bytes of a file that is read or edited
WIDEST = 2_000  # characters of one line that are shown
NAMES, HITS = 1_000, 200  # that one call lists
PASSED_OVER = frozenset(
    {".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache", ".transcripts"}
)
SNIFFED = 8_192  # bytes by which a file is known to be no text


class Workspace:
    """A folder and tools for its files; `max_bytes` and `max_lines` are what one answer may have (N14).

    Paths are resolved before they are used: one that leads outside, by `..` or by a link, is refused. What lies in
    `also_read` may be read and searched by its whole path, and not written.

    Raises:
        UsageError: it is no folder.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        max_bytes: int = MAX_BYTES,
        max_lines: int = MAX_LINES,
        also_read: Sequence[Path] = (),
    ) -> None:
        self.root = Path(root).expanduser().resolve()
        if not self.root.is_dir():
            raise UsageError(f"{root} is no folder: name one that is there")
        self._bytes, self._lines = max_bytes, max_lines
        self._readable = tuple(place.resolve() for place in also_read)

    def tools(self) -> tuple[Tool, ...]:
        """Return the six tools."""
        named: dict[str, Callable[..., str]] = {
            "read": self.read, "write": self.write, "edit": self.edit,
            "list": self.listing, "glob": self.glob, "grep": self.grep,
        }  # fmt: skip
        return tuple(tool(name=name)(function) for name, function in named.items())

    def read(self, path: FilePath, offset: int = 1, limit: int = MAX_LINES) -> str:
        """Read a text file, or `limit` lines of it from line `offset` on."""
        lines = self._text(self._file(path)).split("\n")
        if lines and not lines[-1]:
            lines.pop()
        first = max(offset, 1)
        part = [_short(line) for line in lines[first - 1 : first - 1 + max(limit, 1)]]
        if not part:
            return "(the file is empty)" if not lines else f"(the file has {len(lines):,} lines)"
        text = self._cut("\n".join(part))
        last = first + len(part) - 1
        if last < len(lines):
            text += f"\n[Lines {first:,} to {last:,} of {len(lines):,}; go on with offset={last + 1}]"
        return text

    def write(self, path: FilePath, content: str) -> str:
        """Write a whole file; it is made, with its folders, or replaced."""
        place = self._inside(path, writing=True)
        if place.is_dir():
            raise UsageError(f"{path} is a folder")
        new = not place.exists()
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, content.encode("utf-8", "surrogatepass"), mode=0o644)
        lines = len(content.splitlines())
        return f"{'Made' if new else 'Replaced'} {self._name(place)}: {lines:,} line{'' if lines == 1 else 's'}"

    def edit(self, path: FilePath, old: str, new: str, every: bool = False) -> str:
        """Replace a text in a file by another. `old` must stand in it exactly once, unless `every` is true."""
        place = self._file(path, writing=True)
        text = self._text(place, exact=True)
        matches = text.count(old) if old else 0
        if not matches:
            raise UsageError(f"the old text does not stand in {path}: read the file, and give it exactly")
        if matches > 1 and not every:
            raise UsageError(f"the old text stands {matches:,} times in {path}: give more around it, or every=true")
        if old == new:
            raise UsageError("old and new text are the same")
        write_atomically(place, text.replace(old, new).encode("utf-8", "surrogatepass"), mode=0o644)
        return f"Changed {self._name(place)}: {matches:,} place{'s' if matches > 1 else ''}"

    def listing(self, path: Folder = ".") -> str:
        """List the files and folders in a folder, with the bytes of each file."""
        place = self._inside(path)
        if not place.is_dir():
            raise UsageError(f"{path} is no folder")
        with os.scandir(place) as entries:
            matches = sorted(entries, key=lambda entry: entry.name)
        return self._some([_entry(entry) for entry in matches], NAMES) or "(the folder is empty)"

    def glob(self, pattern: Annotated[str, msgspec.Meta(description="as in **/*.py")], path: Folder = ".") -> str:
        """Find files by a pattern of their paths, the last changed first."""
        wanted = re.compile(_translated(pattern))
        start = self._inside(path)
        matches = [place for place in self._walk(start) if wanted.fullmatch(place.relative_to(start).as_posix())]
        matches.sort(key=_changed, reverse=True)
        return self._some(list(map(self._name, matches)), NAMES) or "(no file)"

    def grep(
        self,
        pattern: Annotated[str, msgspec.Meta(description="a regular expression of Python")],
        path: Folder = ".",
        glob: Annotated[str, msgspec.Meta(description="only files of this pattern, as in **/*.py")] = "**",
    ) -> str:
        """Find lines by a regular expression: path, line number and line."""
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{pattern!r} is no regular expression: {error}") from None
        hits = []
        for line in self._matches(wanted, self._inside(path), re.compile(_translated(glob))):
            hits.append(line)
            if len(hits) > HITS:
                break
        return self._some(hits, HITS) or "(no line)"

    def _matches(self, wanted: re.Pattern[str], start: Path, names: re.Pattern[str]) -> Iterator[str]:
        places = [start] if start.is_file() else self._walk(start)
        for place in places:
            if start.is_dir() and not names.fullmatch(place.relative_to(start).as_posix()):
                continue
            with suppress(OSError, UsageError):
                for number, line in enumerate(self._text(place).split("\n"), 1):
                    if wanted.search(line[:WIDEST]):
                        yield f"{self._name(place)}:{number}:{_short(line)}"

    def _walk(self, start: Path) -> Iterator[Path]:
        """Yield files below a folder in order of their paths; a link is passed over where it leads outside."""
        for folder, folders, names in os.walk(start):
            folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
            for name in sorted(names):
                place = Path(folder, name)
                if not place.is_symlink() or place.resolve().is_relative_to(self.root):
                    yield place

    def _inside(self, path: str, *, writing: bool = False) -> Path:
        try:
            place = (self.root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError(f"{path!r} is no path: {error}") from None
        if not any(map(place.is_relative_to, (self.root,) if writing else (self.root, *self._readable))):
            raise UsageError(f"{path} lies outside of {self.root}, which alone may be read and written")
        return place

    def _file(self, path: str, *, writing: bool = False) -> Path:
        place = self._inside(path, writing=writing)
        if not place.is_file():
            raise UsageError(f"{path} is {'a folder' if place.is_dir() else 'no file'}")
        return place

    def _text(self, place: Path, *, exact: bool = False) -> str:
        """Return a file's text; with `exact`, only what can be written back as it is."""
        if (size := place.stat().st_size) > LARGEST:
            raise UsageError(f"{self._name(place)} has {size:,} bytes, more than {LARGEST:,}: look at it by a command")
        raw = place.read_bytes()
        if b"\0" in raw[:SNIFFED]:
            raise UsageError(f"{self._name(place)} is no text")
        try:
            return raw.decode("utf-8", "strict" if exact else "replace")
        except UnicodeDecodeError as error:
            raise UsageError(f"{self._name(place)} is not UTF-8 ({error.reason}): change it by a command") from None

    def _name(self, place: Path) -> str:
        return place.relative_to(self.root).as_posix() if place.is_relative_to(self.root) else str(place)

    def _some(self, lines: list[str], most: int) -> str:
        more = f"\n[More than {most:,}: narrow it down]" if len(lines) > most else ""
        return self._cut("\n".join(lines[:most])) + more

    def _cut(self, text: str) -> str:
        return truncate_output(text, self._bytes, self._lines, keep="head").text


def _short(line: str) -> str:
    line = line.rstrip("\r")
    return (
        line if len(line) <= WIDEST else f"{grapheme_prefix(line, WIDEST)} [… {len(line) - WIDEST:,} characters more]"
    )


def _entry(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return f"{entry.name} (link)"
    return f"{entry.name}/" if entry.is_dir() else f"{entry.name} ({entry.stat().st_size:,})"


def _changed(place: Path) -> float:
    try:
        return place.stat().st_mtime
    except OSError:
        return 0.0


def _translated(pattern: str) -> str:
    """Return the regular expression of a pattern: `*` and `?` stay in a folder, `**` goes through folders."""
    if "/" not in pattern and "**" not in pattern:
        pattern = f"**/{pattern}"  # a bare name is looked for everywhere
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\{[^{}]*\})", pattern.removeprefix("./"))
    known: dict[str, str] = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(known.get(part) or _choice(part) for part in parts)


def _choice(part: str) -> str:
    if part.startswith("{") and part.endswith("}"):
        return f"(?:{'|'.join(re.escape(each) for each in part[1:-1].split(','))})"
    return re.escape(part)
