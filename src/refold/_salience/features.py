"""Features of each identifier of a conversation: frequency, recency, who mentioned it, and its kind."""

from __future__ import annotations

import re
from itertools import chain
from math import log
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._salience.atoms import KNOWN, kind_of
from refold._salience.lazy_table import LazyTable
from refold._salience.mentions import Manner, Mentions, mentions_of
from refold.core._speakers import is_turn
from refold.core.messages import memoized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from refold.core.messages import Message
    from refold.core.transcript import Transcript

__all__ = [
    "COLUMNS",
    "CONTEXT",
    "FAR",
    "LASTING",
    "LIFE",
    "NAMES",
    "PLACES",
    "AtomStatistics",
    "AtomTraits",
    "Rows",
    "RunningTally",
    "counted",
    "features",
    "lasting",
    "prepare",
    "running_tally",
    "tallied",
    "traits",
]  # fmt: skip

RECENT = 6  # newest messages whose words say what is being worked on
CALLS = 40  # newest messages whose calls say which files are
LATEST = 2  # messages that were just said
EARLY = 3  # messages that open a conversation
LIFE = 4  # messages between the first mention and the last of an atom that lives on
OFTEN = 3  # showings from which an atom that the assistant never wrote is a background
FAR = (0.0, 0.0, False)  # the features of `CONTEXT` of an atom far from what is being worked on
NEVER = 9.0  # the logarithm that stands for an age where there was no such mention
BITS = 24  # of each count in the number of a note
MOST = (1 << BITS) - 1
PART = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}|\d{2,}")
ENDINGS = "py js jsx ts tsx go rs java kt rb php c h cc cpp hpp cs md toml json yml yaml sql sh css html vue swift"
CODE = frozenset(ENDINGS.split())

Rows = dict[str, tuple[float, ...]]
Values = tuple[float, ...]
Mentioned = tuple[int, int, int, int, int]
Itself = tuple[str, int, bool]
Context = tuple[float, float, bool]
Noted = tuple[dict[str, Mentioned], list[frozenset[str]]]  # of messages: notes by atom, and what each introduced
FIRST, LAST, OWN, CALLED, COUNTS = range(5)  # of a note


def _age(position: int, total: int) -> float:
    return log(total - position) if position >= 0 else NEVER


# What is known of an atom, with the names of its features: places in the conversation, then counts and 0 or 1.
COLUMNS: tuple[tuple[tuple[str, ...], Callable[[int, int], Values]], ...] = (
    (("age_first", "early"), lambda position, total: (_age(position, total), position < EARLY)),
    (
        ("age", "last_2", "last_6"),
        lambda position, total: (_age(position, total), total - position <= LATEST, total - position <= RECENT),
    ),
    (
        ("age_own", "own_6"),
        lambda position, total: (_age(position, total), position >= 0 and total - position <= RECENT),
    ),
    (("age_called",), lambda position, total: (_age(position, total),)),
    (("count", "share"), lambda count, total: (log(1 + count), count / total)),
    (("count_own", "own", "own_twice"), lambda count, _: (log(1 + count), count > 0, count > 1)),
    (("count_called", "called", "called_twice"), lambda count, _: (log(1 + count), count > 0, count > 1)),
    (("count_shown",), lambda count, _: (log(1 + count),)),
    (("count_asked", "asked"), lambda count, _: (log(1 + count), count > 0)),
    (("error",), lambda failed, _: (failed > 0,)),
    (("changed",), lambda count, _: (log(1 + count),)),
    (("life",), lambda lives, _: (lives > 0,)),
    (("only_shown_often",), lambda background, _: (background > 0,)),
)
PLACES = 4  # the columns that are places
LASTING = ("path", "dotted", "number", "length", "code_path")  # of the atom itself
CONTEXT = ("parts_recent", "parts_recent_own", "same_file")  # of the atom beside what is being worked on
NAMES = (*(name for names, _ in COLUMNS for name in names), *LASTING, *CONTEXT, "density")


class AtomStatistics(Struct, frozen=True):
    """What a conversation says of its atoms, and what is being worked on.

    `notes` are by atom: the places of its first mention, its last, the last by the assistant and the last in a call,
    and how often it was mentioned in which manner, as one number: see `counted`. Atoms with the same history share one
    note, so that what follows from it is computed once for all of them. `lately` and `lately_own` are words
    of names in the newest messages, of all and of the assistant and the user; `bases` are the names of files lately
    called for. `introduced` are, for each message, the atoms but for numbers that no message before it mentions; a few
    that stand between the ends of a very long text before it are among them: their notes say so.
    """

    total: int
    notes: dict[str, Mentioned]
    lately: frozenset[str]
    lately_own: frozenset[str]
    bases: frozenset[str]
    introduced: list[frozenset[str]]

    @property
    def density(self) -> float:
        """How many atoms there are for a message, as a logarithm."""
        return log(1 + len(self.notes)) - log(1 + self.total)

    def context(self, parts: tuple[str, ...], base: str) -> Context:
        """Return the features of `CONTEXT` of an atom with these words and this name without folders."""
        near = self.lately.intersection(parts)
        if not near:
            return 0.0, 0.0, base in self.bases
        own = near & self.lately_own  # a part of `lately`
        return len(near) / len(parts), len(own) / len(parts), base in self.bases


def features(messages: Sequence[Message]) -> Rows:
    """Return the features of every atom of a conversation, in the order of `NAMES`.

    Ages are in messages, counted back from the end.
    """
    tally = tallied(messages)

    def row(atom: str, note: Mentioned) -> tuple[float, ...]:
        entries = *note[:PLACES], *counted(note[COUNTS], lived=note[LAST] - note[FIRST] > LIFE)
        columns = zip(COLUMNS, entries, strict=True)
        values = [value for (_, feature), entry in columns for value in feature(entry, tally.total)]
        of = traits[atom]
        return (*values, *lasting(*of.itself), *tally.context(of.parts, of.base), tally.density)

    return {atom: row(atom, note) for atom, note in tally.notes.items()}


def prepare(message: Message) -> None:
    """Find what the features will ask of a message and of its atoms; both remember it."""
    for _, atoms in mentions_of(message).by_manner:
        for atom in atoms:
            traits[atom]


class RunningTally:
    """The notes of the first messages of a growing conversation, taken down as they arrive.

    A pass then has to take down the rest only. Each name has one entry of some 200 bytes, and one of 40 where it was
    introduced. A pass gets a copy, since it may run beside the thread in which messages arrive.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._length = 0
        self._tip = ""
        self._notes: dict[str, Mentioned] = {}
        self._introduced: list[frozenset[str]] = []  # by message, notes of ours aside

    def advance(
        self, transcript: Transcript, length: int, as_read: Callable[[Message], Message] = lambda message: message
    ) -> None:
        """Take down the first messages of a transcript up to a length, each as it is read, but for notes of ours."""
        messages = transcript.messages
        with self._lock:
            if not self._begins(messages):
                self._length, self._notes, self._introduced = 0, {}, []
            for message in messages[self._length : length]:
                if message.note is None:
                    self._introduced.append(_taken(self._notes, len(self._introduced), mentions_of(as_read(message))))
                self._length, self._tip = self._length + 1, message.id

    def noted(self, transcript: Transcript) -> Noted:
        """Return the notes of the first messages that are taken down, and what each introduced."""
        with self._lock:
            return (self._notes.copy(), self._introduced.copy()) if self._begins(transcript.messages) else ({}, [])

    def _begins(self, messages: Sequence[Message]) -> bool:
        """Tell whether messages begin with those that are taken down: an id stands for all up to its message."""
        return 0 < self._length <= len(messages) and messages[self._length - 1].id == self._tip


@memoized
def running_tally(first: Message) -> RunningTally:
    """Return the running tally of the conversation that begins with this message."""
    return RunningTally()


def tallied(messages: Sequence[Message], noted: Noted | None = None) -> AtomStatistics:
    """Return what a conversation says of its atoms: first and last place, by whom and how often, errors, changes.

    `noted` are the notes of the first messages, and what each introduced, to which those of the rest are added.
    """
    mentions = [mentions_of(message) for message in messages]
    notes, introduced = noted or ({}, [])
    for position, each_mentions in enumerate(mentions[len(introduced) :], len(introduced)):
        introduced.append(_taken(notes, position, each_mentions))
    for position, (message, each_mentions) in enumerate(zip(messages, mentions, strict=True)):
        if each_mentions.between:  # of its words those count that are names elsewhere
            own, typed = message.role == "assistant", message.role == "system" or is_turn(message)
            manner = Manner(by_tool=not (own or typed), by_user=typed, own=own)
            words = (notes.keys() & each_mentions.between) - each_mentions.every
            introduced[position] |= _names(word for word in words if notes[word][FIRST] > position)
            _take_down(notes, position, manner, words)
    recent = mentions[-RECENT:]
    return AtomStatistics(
        len(messages),
        notes,
        frozenset([part for each in recent for atom in each.every for part in traits[atom].parts]),
        frozenset([part for each in recent for atom in each.own | each.by_user for part in traits[atom].parts]),
        frozenset([traits[atom].base for each in mentions[-CALLS:] for atom in each.called if "/" in atom]),
        introduced,
    )


def _taken(notes: dict[str, Mentioned], position: int, mentions: Mentions) -> frozenset[str]:
    """Note what a message mentions; return the atoms that no message before it does, but for numbers."""
    new = [_take_down(notes, position, manner, atoms) for manner, atoms in mentions.by_manner]
    return _names(chain.from_iterable(new))


def _names(atoms: Iterable[str]) -> frozenset[str]:
    return frozenset([atom for atom in atoms if not atom[0].isdigit()])


def _take_down(notes: dict[str, Mentioned], position: int, manner: Manner, atoms: AbstractSet[str]) -> AbstractSet[str]:
    """Note one more mention of atoms; return those that had no note.

    All counts are one number, so that adding to it is all the work there is.
    """
    counts = sum([count << BITS * column for column, count in enumerate(manner) if count])
    own, called = position if manner.own else -1, position if manner.called else -1
    known = notes.keys() & atoms
    for atom in known:
        first, last, last_own, last_called, before = notes[atom]
        if position < first:
            first = position
        if position > last:
            last = position
        if own > last_own:
            last_own = own
        if called > last_called:
            last_called = called
        notes[atom] = first, last, last_own, last_called, before + counts
    note = position, position, own, called, counts
    new = atoms - known if known else atoms
    notes.update(dict.fromkeys(new, note))
    return new


def counted(counts: int, *, lived: bool) -> tuple[int, ...]:
    """Return what the number of a note says, in the order of `COLUMNS`; `lived` if an atom is there for long."""
    mentioned, by_tool, by_user, own, called, failed, changed = (counts >> BITS * column & MOST for column in range(7))
    return mentioned, own, called, by_tool, by_user, failed, changed, lived, not own and by_tool > OFTEN


class AtomTraits(Struct, frozen=True, gc=False):
    """What an atom is in every conversation: what its features say, the words in it, and its name without folders.

    `itself` are its kind, its length, and whether it names a file with code: what `lasting` asks for.
    """

    itself: Itself
    parts: tuple[str, ...]
    base: str


def _traits_of(atom: str) -> AtomTraits:
    kind = kind_of(atom)
    itself = kind, len(atom), "." in atom and atom.rsplit(".", 1)[1] in CODE
    parts = (atom,) if atom.isdecimal() else tuple(dict.fromkeys([words[part] for part in PART.findall(atom)]))
    base = atom.rsplit("/", 1)[-1] if kind == "path" else atom
    return AtomTraits(_shared.setdefault(itself, itself), parts, base)


words = LazyTable(str.lower, KNOWN)  # of names, in small letters: each once, since most names share theirs
traits = LazyTable(_traits_of, KNOWN)  # of each atom what it is in every conversation
_shared: dict[Itself, Itself] = {}  # what is one and the same is found quickest


def lasting(kind: str, length: int, code: bool) -> Values:
    """Return the features of `LASTING` of an atom that is this."""
    return kind == "path", kind == "dotted", kind == "number", log(length), code
