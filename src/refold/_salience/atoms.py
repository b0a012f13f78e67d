"""Atoms: the identifiers that a later turn may have to write exactly: paths, dotted names, names, numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._text.sign_runs import SignRuns
from refold._text.text_cache import words_cache

if TYPE_CHECKING:
    from refold.core.messages import ToolCall

__all__ = ["END", "KNOWN", "WEIGHTS", "atoms_of", "kind_of", "names_of", "spoken", "words_between", "words_in"]

# One look at a word between separators: what of it is an atom (plain words match, and are dropped by their kind). A
# path is looked for only where one can begin, so that a long run of letters without a slash is read once.
TOKEN = re.compile(
    r"(?<![\w.\-])(?:[\w.\-]+/)+[\w.\-]+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z_]\w{3,}|0x[0-9a-fA-F]+|\d{2,}(?:\.\d+)*"
)
WORDS = SignRuns(r"[\w./-]")
COMPOUND = re.compile(r"_|[a-z][A-Z]|[A-Z]{2,}|\d")
SHORTEST = 4  # characters of a name that stands in a longer one, or alone
LONGEST = 200  # characters of an atom; a longer run is encoded data
WEIGHTS = {"path": 1.5, "dotted": 1.2, "name": 1.0, "number": 0.6}  # of a need, by the kind of its atom
END = 65_536  # characters at each end of a text whose names are all looked for; a recorded text with more is rare
KNOWN = 131_072  # words that are remembered
ESCAPED = re.compile(r"\\[\\nrt\"]")  # a path of Windows has two signs before "themes", and no tab


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
    return frozenset().union(*_within(text, words_in(text)))


def names_of(text: str) -> frozenset[str]:
    """Return the atoms of a text, and beside a path or a dotted name the names in it, which are used alone too.

    Of a text of more than twice `END` characters these are the names at its ends: see `words_between`.
    """
    if len(text) > 2 * END:
        text = f"{text[:END]}\n{text[-END:]}"
    return frozenset().union(*_with_parts(text, words_in(text)))


def words_between(text: str) -> frozenset[str]:
    """Return the words between the ends of a very long text: those among them count that are names elsewhere, too.

    To look at each as `names_of` does takes seconds for a text of some megabytes, and of a hundred thousand names that
    were shown once and never mentioned nothing tells one from another.
    """
    return words_in(text[END:-END]) if len(text) > 2 * END else frozenset()


def words_in(text: str) -> frozenset[str]:
    """Return the words of a text: what stands between signs that no atom holds."""
    return frozenset(WORDS(text))


def spoken(call: ToolCall) -> str:
    """Return the arguments of a call as text, the commonest escapes of JSON undone."""
    return ESCAPED.sub(" ", call.arguments) if "\\" in call.arguments else call.arguments


@words_cache(KNOWN)
def _within(word: str) -> tuple[str, ...]:
    return tuple(_names_in(word))


def _names_in(word: str) -> list[str]:
    names = [atom.strip("./-") if "/" in atom else atom for atom in TOKEN.findall(word)]
    return [atom for atom in names if 1 < len(atom) <= LONGEST and kind_of(atom)]


@words_cache(KNOWN)
def _with_parts(word: str) -> tuple[str, ...]:
    if word.isalpha() and word[1:].islower():  # most words are plain
        return ()
    if word.isascii() and SHORTEST <= len(word) <= LONGEST and word.isidentifier():  # one name, or none
        return (word,) if COMPOUND.search(word) else ()
    names: list[str] = []
    for atom in _names_in(word):
        names.append(atom)
        last = atom
        if "/" in atom:
            last = atom.rsplit("/", 1)[1]
            if len(last) > 1 and kind_of(last):
                names.append(last)
        if "." in last and not last[0].isdigit():
            names += [piece for piece in last.split(".") if len(piece) >= SHORTEST and kind_of(piece)]
    return tuple(dict.fromkeys(names)) if len(names) > 1 else tuple(names)
