"""Identifiers that a summary names and its source does not: paths, dotted names, hashes, numbers."""

from __future__ import annotations

import re
from functools import cached_property

from msgspec import Struct

__all__ = ["Invented", "invented_identifiers", "named_in"]

HASH = re.compile(r"(?<![\w./-])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}(?![\w/-])")
PATH = re.compile(
    r"(?<![\w:/.])(?:~|\.{1,2})?/?(?:[\w@+.-]+/)+[\w@+.-]*|(?<![\w./@-])[\w-]+(?:\.[\w-]+)*\.[a-z]{1,5}\b"
)
DOTTED = re.compile(r"(?<![\w./@-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![\w/-])")
NUMBER = re.compile(r"(?<![\w.,/-])\d[\d,]*\d{2}(?:\.\d+)?(?![\w/-])")
WORDS = re.compile(r"[\w@+.~-]+(?:/[\w@+.~-]+)*|/[\w@+.~/-]+")
PROSE = frozenset(["e.g", "i.e", "a.m", "p.m", "vs", "etc", "Node.js", "Next.js", "Vue.js", "Nuxt.js", "Three.js"])
ENDS = ".,;:)-"


class Invented(Struct, frozen=True):
    """Identifiers that occur nowhere in the source, of `total` that the summary names.

    `certain` are those that no summary has of its own: hashes. A path or number among `likely` may be put together or
    added up by a careful writer.
    """

    certain: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()
    total: int = 0


class _KnownWords(Struct, dict=True):
    """What a source holds, looked through once and only where a plain search does not find a word."""

    text: str

    @cached_property
    def numbers(self) -> frozenset[str]:
        return frozenset(number.replace(",", "") for number in re.findall(r"\d[\d,]*(?:\.\d+)?", self.text))

    @cached_property
    def suffixes(self) -> frozenset[str]:
        """Every ending of every path at a border of its parts, and every word."""
        endings: set[str] = set()
        for word in set(WORDS.findall(self.text)):
            word = word.strip("/").rstrip(ENDS)
            parts = word.split("/")[-12:]
            endings.update("/".join(parts[start:]) for start in range(len(parts)))
        return frozenset(endings)

    @cached_property
    def prefixes(self) -> frozenset[str]:
        """Every beginning of every path at a border of its parts, and every word."""
        beginnings: set[str] = set()
        for word in set(WORDS.findall(self.text)):
            parts = word.strip("/").rstrip(ENDS).split("/")[:12]
            beginnings.update("/".join(parts[:stop]) for stop in range(1, len(parts) + 1))
        return frozenset(beginnings)

    def path(self, path: str) -> bool:
        """Tell whether a path stands in the source: as it is, as the end of one, or joined from a folder and one."""
        bare = path.strip("./~")
        if path in self.text or bare in self.suffixes or bare in self.prefixes:
            return True
        parts = bare.split("/")
        return any(
            "/".join(parts[:cut]) in self.prefixes and "/".join(parts[cut:]) in self.suffixes
            for cut in range(1, len(parts))
        )


def invented_identifiers(summary: str, source: str) -> Invented:
    """Return the identifiers of a summary that its source does not hold."""
    known = _KnownWords(source)
    hashes = set(HASH.findall(summary))
    paths = {word for raw in PATH.findall(summary) if _is_path(word := raw.rstrip(ENDS))}
    dotted = {word for word in DOTTED.findall(summary) if word not in PROSE and word not in paths}
    numbers = {word for word in NUMBER.findall(summary) if word not in hashes}
    likely = [word for word in sorted(paths) if not known.path(word)]
    likely += [word for word in sorted(dotted) if word not in source]
    likely += [
        word for word in sorted(numbers) if word not in known.text and word.replace(",", "") not in known.numbers
    ]
    certain = tuple(word for word in sorted(hashes) if word not in source)
    return Invented(certain, tuple(likely), len(hashes) + len(paths) + len(dotted) + len(numbers))


def named_in(path: str, text: str) -> bool:
    """Tell whether a text names a file: by its path, or by an ending of it of at least the file's name."""
    if path in text:
        return True
    name = path.rsplit("/", 1)[-1]
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def _is_path(word: str) -> bool:
    """Tell a path from prose with a slash ("and/or", "N/A", "read/write") and from abbreviations."""
    if word in PROSE or len(word) < 4:
        return False
    if "/" not in word:
        return not word[0].isdigit()
    parts = [part for part in word.split("/") if part]
    if word[0] in "/~." or any(char in word for char in "._@") or any(char.isdigit() for char in word):
        return bool(parts) and not all(part.isdigit() for part in parts)
    return len(parts) > 2
