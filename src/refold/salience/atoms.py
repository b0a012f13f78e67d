"""Atoms: the identifiers that a later turn may have to write exactly: paths, dotted names, names, numbers."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from refold.core.messages import Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.messages import Message

__all__ = ["WEIGHTS", "Mentions", "atoms_of", "kind_of", "mentions_of", "names_of", "spoken"]

# One look at a word between separators: what of it is an atom (plain words match, and are dropped by their kind).
TOKEN = re.compile(
    r"(?:[\w.\-]+/)+[\w.\-]+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z_]\w{3,}|0x[0-9a-fA-F]+|\d{2,}(?:\.\d+)*"
)
WORD = re.compile(r"[\w./-]+")
BETWEEN = {code: " " for code in range(128) if not WORD.fullmatch(chr(code))}  # ASCII signs that no atom holds
COMPOUND = re.compile(r"_|[a-z][A-Z]|[A-Z]{2,}|\d")
WRONG = re.compile(r"Error|Exception|error:|FAILED|failed|fatal|panic")
WRONG_LINES = 20  # of one message
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


class Mentions(Struct, frozen=True, dict=True):
    """The atoms of one message by who wrote them: the assistant in words and in calls, tools, the user or system.

    `failed` are those of `shown` that stand in a line that tells of an error.
    """

    said: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()

    @cached_property
    def every(self) -> frozenset[str]:
        """All atoms of the message."""
        return self.said | self.called | self.shown | self.asked

    @cached_property
    def own(self) -> frozenset[str]:
        """What the assistant wrote."""
        return self.said | self.called


def mentions_of(message: Message) -> Mentions:
    """Return the names of a message by who wrote them; a message remembers the answer, so it is found as it arrives."""
    found: Mentions | None = message.__dict__.get("mentions")
    if found is None:
        found = message.__dict__["mentions"] = _mentions(message)
    return found


def _mentions(message: Message) -> Mentions:
    words = "\n".join(part.text for part in message.parts if isinstance(part, Text))
    calls = "\n".join(spoken(part) for part in message.parts if isinstance(part, ToolCall))
    shown = "\n".join(part.text for part in message.parts if isinstance(part, ToolResult))
    own = message.role == "assistant"
    failed = "\n".join(_wrong_lines(shown)) if shown else ""
    return Mentions(
        failed=_some(failed),
        said=_some(words if own else ""),
        called=_some(calls),
        shown=_some(shown),
        asked=_some("" if own else words),
    )


def _wrong_lines(text: str) -> Iterator[str]:
    """Yield the first lines of a text that tell of an error."""
    end = 0
    for count, found in enumerate(WRONG.finditer(text)):
        if found.start() < end:
            continue
        if count >= WRONG_LINES:
            return
        start = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.end())
        end = len(text) if end < 0 else end
        yield text[start:end]


def _some(text: str) -> frozenset[str]:
    return names_of(text) if text else frozenset()


@lru_cache(maxsize=KNOWN)
def _within(word: str) -> tuple[str, ...]:
    found = (atom.strip("./-") if "/" in atom else atom for atom in TOKEN.findall(word))
    return tuple(atom for atom in found if 1 < len(atom) <= LONGEST and kind_of(atom))


@lru_cache(maxsize=KNOWN)
def _with_parts(word: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for atom in _within(word):
        last = atom.rsplit("/", 1)[-1]
        pieces = last.split(".") if "." in last and not last[0].isdigit() else ()
        found.update(dict.fromkeys((atom, last, *(piece for piece in pieces if len(piece) > 3))))
    return tuple(atom for atom in found if len(atom) > 1 and kind_of(atom))
