"""Features of each atom of a conversation: how often, how lately and by whom it was mentioned, and what it is."""

from __future__ import annotations

import re
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

from refold.core.messages import ToolCall
from refold.salience.atoms import kind_of, mentions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.salience.atoms import Mentions

__all__ = ["NAMES", "Rows", "features"]

NAMES = (
    "age", "age_own", "age_called", "age_first", "count", "count_own", "count_called", "count_shown", "count_asked",
    "own", "own_twice", "called", "called_twice", "asked", "only_shown_often", "last_2", "last_6", "own_6", "life",
    "path", "dotted", "number", "length", "error", "parts_recent", "parts_recent_own", "same_file", "code_path",
    "density", "share", "early", "changed",
)  # fmt: skip
RECENT = 6  # newest messages whose words say what is being worked on
NEVER = 9.0  # the logarithm that stands for an age where there was no such mention
PART = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}|\d{2,}")
CODE = re.compile(
    r"\.(?:py|[jt]sx?|go|rs|java|kt|rb|php|c|h|cc|cpp|hpp|cs|md|toml|json|ya?ml|sql|sh|css|html|vue|swift)$"
)
WRITING = re.compile(r"edit|write|patch|replace|create", re.I)

Rows = dict[str, tuple[float, ...]]
FIRST, LAST, OWN, CALLED, N, N_OWN, N_CALLED, N_SHOWN, N_ASKED, ERRORS, CHANGED = range(11)


def features(messages: Sequence[Message]) -> Rows:
    """Return the features of every atom of a conversation, in the order of `NAMES`.

    Ages are in messages, counted back from the end.
    """
    mentions = [mentions_of(message) for message in messages]
    notes = _tallied(messages, mentions)
    recent = mentions[-RECENT:]
    lately = {part for each in recent for atom in each.every for part in parts_of(atom)}
    lately_own = {part for each in recent for atom in each.own | each.asked for part in parts_of(atom)}
    bases = {_base(atom) for each in mentions[-40:] for atom in each.called if "/" in atom}
    total = len(messages)
    logs = [0.0, *(log(number) for number in range(1, total + 3))]
    density = log(1 + len(notes)) - log(1 + total)
    return {atom: _row(atom, note, total, logs, density, lately, lately_own, bases) for atom, note in notes.items()}


def _tallied(messages: Sequence[Message], mentions: Sequence[Mentions]) -> dict[str, list[int]]:
    """Count mentions: for each atom first and last place, last by the assistant, counts by who, errors, changes."""
    notes: dict[str, list[int]] = {}
    for place, (message, found) in enumerate(zip(messages, mentions, strict=True)):
        for atom in found.every:
            note = notes.get(atom)
            if note is None:
                note = notes[atom] = [place, place, -1, -1, 0, 0, 0, 0, 0, 0, 0]
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
        if found.shown:
            for atom in found.failed:
                notes[atom][ERRORS] += 1
    return notes


def _row(  # a long row, each entry by the name in the same place of NAMES
    atom: str,
    note: list[int],
    total: int,
    logs: list[float],
    density: float,
    lately: set[str],
    lately_own: set[str],
    bases: set[str],
) -> tuple[float, ...]:
    first, last, own, called, n, n_own, n_called, n_shown, n_asked, errors, changed = note
    age = total - last
    kind = kind_of(atom)
    parts = parts_of(atom)
    some = len(parts) or 1
    return (
        logs[age],
        logs[total - own] if own >= 0 else NEVER,
        logs[total - called] if called >= 0 else NEVER,
        logs[total - first],
        logs[1 + n],
        logs[1 + n_own],
        logs[1 + n_called],
        logs[1 + n_shown],
        logs[1 + n_asked],
        n_own > 0,
        n_own > 1,
        n_called > 0,
        n_called > 1,
        n_asked > 0,
        n_shown > 3 and not n_own,
        age <= 2,
        age <= RECENT,
        own >= 0 and total - own <= RECENT,
        last - first > 4,
        kind == "path",
        kind == "dotted",
        kind == "number",
        log(len(atom)),
        errors > 0,
        len(parts & lately) / some,
        len(parts & lately_own) / some,
        (_base(atom) if kind == "path" else atom) in bases,
        "." in atom and CODE.search(atom) is not None,
        density,
        n / total,
        first < 3,
        logs[1 + changed],
    )


@lru_cache(maxsize=131_072)
def parts_of(atom: str) -> frozenset[str]:
    """Return the words that an atom is made of, in small letters."""
    return frozenset([part.lower() for part in PART.findall(atom)])


def _base(atom: str) -> str:
    return atom.rsplit("/", 1)[-1]
