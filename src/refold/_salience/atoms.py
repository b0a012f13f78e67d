"""Atoms: the identifiers that a later turn may have to write exactly: paths, dotted names, names, numbers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refold.core.messages import ToolCall

__all__ = ["KNOWN", "WEIGHTS", "atoms_of", "kind_of", "names_of", "spoken"]

# One look at a word between separators: what of it is an atom (plain words match, and are dropped by their kind).
TOKEN = re.compile(
    r"(?:[\w.\-]+/)+[\w.\-]+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z_]\w{3,}|0x[0-9a-fA-F]+|\d{2,}(?:\.\d+)*"
)
WORD = re.compile(r"[\w./-]+")
BETWEEN = {code: " " for code in range(128) if not WORD.fullmatch(chr(code))}  # ASCII signs that no atom holds
COMPOUND = re.compile(r"_|[a-z][A-Z]|[A-Z]{2,}|\d")
LONGEST = 200  # characters of an atom; a longer run is encoded data
WEIGHTS = {"path": 1.5, "dotted": 1.2, "name": 1.0, "number": 0.6}  # of a need, by the kind of its atom
KNOWN = 131_072  # words that are remembered
ESCAPED = re.compile(r"\\[nrt\"]")


@lru_cache(maxsize=KNOWN)
def kind_of(atom: str) -> str:
    """Return "path", "dotted", "name", "number", or nothing for a plain word."""
    if "/" in atom:
        return "path"
    if atom[0].isdigit():
        return "number"
    if "." in atom:
        return "dotted"
    return "name" if COMPOUND.search(atom) else ""


def atoms_of(text: str) -> frozenset[str]:
    """Return the atoms of a text."""
    return frozenset().union(*map(_within, _words(text)))


def names_of(text: str) -> frozenset[str]:
    """Return the atoms of a text, and beside a path or a dotted name the names in it, which are used alone too."""
    return frozenset().union(*map(_with_parts, _words(text)))


def _words(text: str) -> set[str]:
    return set(text.translate(BETWEEN).split() if text.isascii() else WORD.findall(text))


def spoken(call: ToolCall) -> str:
    """Return the arguments of a call as text, the commonest escapes of JSON undone."""
    return ESCAPED.sub(" ", call.arguments) if "\\" in call.arguments else call.arguments


@lru_cache(maxsize=KNOWN)
def _within(word: str) -> tuple[str, ...]:
    names = [atom.strip("./-") if "/" in atom else atom for atom in TOKEN.findall(word)]
    return tuple([atom for atom in names if 1 < len(atom) <= LONGEST and kind_of(atom)])


@lru_cache(maxsize=KNOWN)
def _with_parts(word: str) -> tuple[str, ...]:
    if word.isalpha() and word[1:].islower():  # most words are plain
        return ()
    names: dict[str, None] = {}
    for atom in _within(word):
        last = atom.rsplit("/", 1)[-1]
        pieces = last.split(".") if "." in last and not last[0].isdigit() else ()
        names.update(dict.fromkeys((atom, last, *[piece for piece in pieces if len(piece) > 3])))
    return tuple([atom for atom in names if len(atom) > 1 and kind_of(atom)])
