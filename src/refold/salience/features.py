"""Features of each atom of a conversation: how often, how lately and by whom it was mentioned, and what it is."""

from __future__ import annotations

import re
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from refold.core.messages import ToolCall
from refold.salience.atoms import KNOWN, kind_of
from refold.salience.mentions import mentions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refold.core.messages import Message
    from refold.salience.mentions import Mentions

__all__ = [
    "COLUMNS", "CONTEXT", "COUNTS", "LASTING", "NAMES", "Rows", "Tally", "Traits", "features", "lasting", "prepare",
    "tallied", "traits",
]  # fmt: skip

RECENT = 6  # newest messages whose words say what is being worked on
CALLS = 40  # newest messages whose calls say which files are
LATEST = 2  # messages that were just said
EARLY = 3  # messages that open a conversation
LIFE = 4  # messages between the first mention and the last of an atom that lives on
OFTEN = 3  # showings from which an atom that the assistant never wrote is a background
NEVER = 9.0  # the logarithm that stands for an age where there was no such mention
PART = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}|\d{2,}")
ENDINGS = "py js jsx ts tsx go rs java kt rb php c h cc cpp hpp cs md toml json yml yaml sql sh css html vue swift"
CODE = frozenset(ENDINGS.split())
WRITING = re.compile(r"edit|write|patch|replace|create", re.I)

Rows = dict[str, tuple[float, ...]]
Values = tuple[float, ...]
FIRST, LAST, OWN, CALLED, N, N_OWN, N_CALLED, N_SHOWN, N_ASKED, ERRORS, CHANGED, LIVED, N_ONLY_SHOWN = range(13)


def _age(place: int, total: int) -> float:
    return log(total - place) if place >= 0 else NEVER


# What each entry of an atom's note says, with the names of its features: a place in the conversation, or a count.
COLUMNS: tuple[tuple[tuple[str, ...], Callable[[int, int], Values]], ...] = (
    (("age_first", "early"), lambda place, total: (_age(place, total), place < EARLY)),
    (
        ("age", "last_2", "last_6"),
        lambda place, total: (_age(place, total), total - place <= LATEST, total - place <= RECENT),
    ),
    (("age_own", "own_6"), lambda place, total: (_age(place, total), place >= 0 and total - place <= RECENT)),
    (("age_called",), lambda place, total: (_age(place, total),)),
    (("count", "share"), lambda count, total: (log(1 + count), count / total)),
    (("count_own", "own", "own_twice"), lambda count, _: (log(1 + count), count > 0, count > 1)),
    (("count_called", "called", "called_twice"), lambda count, _: (log(1 + count), count > 0, count > 1)),
    (("count_shown",), lambda count, _: (log(1 + count),)),
    (("count_asked", "asked"), lambda count, _: (log(1 + count), count > 0)),
    (("error",), lambda count, _: (count > 0,)),
    (("changed",), lambda count, _: (log(1 + count),)),
    (("life",), lambda messages, _: (messages > LIFE,)),
    (("only_shown_often",), lambda count, _: (count > OFTEN,)),
)
COUNTS = 4  # the first column that is a count; those before are places
LASTING = ("path", "dotted", "number", "length", "code_path")  # of the atom itself
CONTEXT = ("parts_recent", "parts_recent_own", "same_file")  # of the atom beside what is being worked on
NAMES = (*(name for names, _ in COLUMNS for name in names), *LASTING, *CONTEXT, "density")


class Tally(Struct, frozen=True):
    """What a conversation says of its atoms, and what is being worked on.

    `notes` are the entries of `COLUMNS` by atom; `lately` and `lately_own` are words of names in the newest
    messages, of all and of the assistant and the user; `bases` are the names of files lately called for.
    """

    total: int
    notes: dict[str, list[int]]
    lately: frozenset[str]
    lately_own: frozenset[str]
    bases: frozenset[str]

    @property
    def density(self) -> float:
        """How many atoms there are for a message, as a logarithm."""
        return log(1 + len(self.notes)) - log(1 + self.total)

    def context(self, of: Traits) -> tuple[float, float, bool]:
        """Return the features of `CONTEXT`."""
        parts = of.parts
        if self.lately.isdisjoint(parts):  # holds for most; what is own is among it
            return 0.0, 0.0, of.base in self.bases
        near, own = len(parts & self.lately), len(parts & self.lately_own)
        return near / len(parts), own / len(parts), of.base in self.bases


def features(messages: Sequence[Message]) -> Rows:
    """Return the features of every atom of a conversation, in the order of `NAMES`.

    Ages are in messages, counted back from the end.
    """
    tally = tallied(messages)

    def row(atom: str, note: list[int]) -> tuple[float, ...]:
        columns = zip(COLUMNS, note, strict=True)
        counted = [value for (_, feature), entry in columns for value in feature(entry, tally.total)]
        of = traits(atom)
        return (*counted, *lasting(*of[:3]), *tally.context(of), tally.density)

    return {atom: row(atom, note) for atom, note in tally.notes.items()}


def prepare(message: Message) -> None:
    """Find what the features will ask of a message and of its atoms; both remember it."""
    for atom in mentions_of(message).every:
        traits(atom)


def tallied(messages: Sequence[Message]) -> Tally:
    """Return what a conversation says of its atoms: first and last place, by whom and how often, errors, changes."""
    mentions = [mentions_of(message) for message in messages]
    notes: dict[str, list[int]] = {}
    for place, (message, found) in enumerate(zip(messages, mentions, strict=True)):
        _take_down(notes, place, message, found)
    for note in notes.values():
        note[LIVED] = note[LAST] - note[FIRST]
        note[N_ONLY_SHOWN] = 0 if note[N_OWN] else note[N_SHOWN]
    recent = mentions[-RECENT:]
    return Tally(
        len(messages),
        notes,
        frozenset([part for each in recent for atom in each.every for part in traits(atom).parts]),
        frozenset([part for each in recent for atom in each.own | each.asked for part in traits(atom).parts]),
        frozenset([traits(atom).base for each in mentions[-CALLS:] for atom in each.called if "/" in atom]),
    )


def _take_down(notes: dict[str, list[int]], place: int, message: Message, found: Mentions) -> None:
    """Count the mentions of one message."""
    for atom in found.every:
        note = notes.get(atom)
        if note is None:
            note = notes[atom] = [place, place, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        note[LAST] = place
        note[N] += 1
    for atom in found.shown:
        notes[atom][N_SHOWN] += 1
    for atom in found.asked:
        notes[atom][N_ASKED] += 1
    for atom in found.own:
        note = notes[atom]
        note[OWN] = place
        note[N_OWN] += 1
    for atom in found.called:
        note = notes[atom]
        note[CALLED] = place
        note[N_CALLED] += 1
    if found.called and any(WRITING.search(part.name) for part in message.parts if isinstance(part, ToolCall)):
        for atom in found.called:
            notes[atom][CHANGED] += 1
    for atom in found.failed:
        notes[atom][ERRORS] += 1


class Traits(NamedTuple):
    """What an atom is in every conversation: what its features say, the words in it, and its name without folders."""

    kind: str
    length: int
    code: bool
    parts: frozenset[str]
    base: str


@lru_cache(maxsize=KNOWN)
def traits(atom: str) -> Traits:
    """Return what an atom is in every conversation."""
    code = "." in atom and atom.rsplit(".", 1)[1] in CODE
    parts = frozenset([part.lower() for part in PART.findall(atom)])
    return Traits(kind_of(atom), len(atom), code, parts, atom.rsplit("/", 1)[-1])


def lasting(kind: str, length: int, code: bool) -> Values:
    """Return the features of `LASTING` of an atom with these traits."""
    return kind == "path", kind == "dotted", kind == "number", log(length), code
