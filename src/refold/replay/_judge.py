"""Judges a compaction without a model: how much of what the rest of a recording needed is still present.

All functions are pure, over messages: the *history* before a cut, the *future* after it, and what was *kept* of the
history. Shares are from 0 to 1, and 1 where nothing was asked for.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold._condense.call_facts import files_of, is_shell, reads, writes
from refold._condense.call_outline import call_line
from refold._condense.file_views import command_of
from refold._condense.pins import pins_of
from refold._condense.shell_commands import displayed_by
from refold._salience.atoms import WEIGHTS, atoms_of, kind_of, spoken
from refold.core._speakers import words_of_user
from refold.core.messages import (
    Image,
    Text,
    ToolCall,
    ToolResult,
    memoized,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from refold.core.messages import Message, Part

__all__ = [
    "Recall",
    "age_gap",
    "ages_of",
    "artifact_trail",
    "atoms_in",
    "constraints_kept",
    "copy_precision",
    "edit_anchors",
    "lines_kept",
    "needed_atoms",
    "recall",
    "repeated",
    "strings_in",
]

ANCHOR = 8  # characters of a line that is worth finding: braces and blanks are everywhere
OWN = frozenset({"JSON", "REMAINING", "TRUNCATED"})  # words that policies write, and that look like identifiers
SHINGLE = 5  # lines in a row that are compared
DECILES = 10
OLD_TEXT = frozenset({"old_string", "old_str", "oldText", "old_text", "oldString", "search"})


class Recall(Struct, frozen=True):
    """Shares of the needed weight: what is present, what a pointer still leads to, what is lost for good."""

    present: float
    pointed: float = 0.0
    lost: float = 0.0

    @property
    def recoverable(self) -> float:
        """Return what is present, and half of what a pointer leads to."""
        return self.present + self.pointed / 2


def needed_atoms(history: Sequence[Message], future: Sequence[Message]) -> dict[str, float]:
    """Return what the future needed of the history, with weights: the test of a memory.

    Needed is what the history has, no user or system message says, and the assistant writes after the cut before a
    tool or a user has shown it again. Weights are by kind: path 1.5, dotted 1.2, name 1.0, number 0.6.
    """
    known = frozenset().union(*(atoms_in(message) for message in history))
    visible: set[str] = set()
    for message in history:
        if message.role in ("system", "user"):
            visible |= _words(message)
    needed: dict[str, float] = {}
    for message in future:
        anchors = atoms_in(message)
        if message.role == "assistant":
            needed.update((atom, WEIGHTS[kind_of(atom)]) for atom in sorted((anchors & known) - visible))
        visible |= anchors
    return needed


def recall(needed: Mapping[str, float], history: Sequence[Message], left: Sequence[Message]) -> Recall:
    """Return which share of the needed weight is present, which a pointer leads to, and which is lost.

    A pointer is the path or the call, named in what was kept, of a tool call that wrote or showed the atom.
    """
    total = sum(needed.values())
    if not total:
        return Recall(1.0)
    present_atoms = frozenset().union(*(atoms_in(message) for message in left))
    absent = needed.keys() - present_atoms
    left_text = "\n".join(text for message in left for text in texts(message))
    reachable = set(absent & frozenset().union(*_reachable(history, left_text))) if absent else set()
    present, pointed = (
        sum(needed[atom] for atom in atoms) / total for atoms in (needed.keys() & present_atoms, reachable)
    )
    return Recall(present, pointed, max(1 - present - pointed, 0.0))


def edit_anchors(history: Sequence[Message], future: Sequence[Message]) -> tuple[str, ...]:
    """Return the lines that later edits quote as old text, that the history has and nothing after it showed again."""
    known = _lines_of(history)
    visible: set[str] = set()
    anchors: dict[str, None] = {}
    for message in future:
        for part in message.parts:
            if isinstance(part, ToolCall):
                lines = [line for old in _old_texts(part) for line in old.split("\n")]
                anchors.update(
                    dict.fromkeys(line for line in map(_plain, lines) if line in known and line not in visible)
                )
        visible |= _lines_of([message])
    return tuple(line for line in anchors if len(line) >= ANCHOR)


def lines_kept(lines: Sequence[str], left: Sequence[Message]) -> float:
    """Return which share of lines is still there word for word, blanks at their ends and line numbers aside."""
    there = _lines_of(left)
    return sum(line in there for line in lines) / len(lines) if lines else 1.0


def artifact_trail(history: Sequence[Message], left: Sequence[Message]) -> tuple[float, float]:
    """Return precision and recall of the files that what was kept names as changed, against the calls of history."""
    _, true = files_of(history)
    _, reported = files_of(left)
    right = len(set(true) & set(reported))
    return (right / len(set(reported)) if reported else 1.0), (right / len(set(true)) if true else 1.0)


def constraints_kept(history: Sequence[Message], left: Sequence[Message], planted: Iterable[str] = ()) -> float:
    """Return which share of the sentences that set a limit is kept word for word in words of users or notes.

    Only users and systems set one: reminders, reports and files that a harness puts into a user's turn do not.
    """
    wanted = dict.fromkeys(planted) or dict.fromkeys(
        sentence
        for message in history
        if message.role in ("user", "system") and message.note is None
        for sentence in pins_of(words_of_user(message))
    )
    # a digest that was joined with a user's message and read back is a part of that message
    spoken = (message for message in left if message.role in ("user", "system"))
    parts = (part.text for message in spoken for part in message.parts if isinstance(part, Text))
    left_text = " ".join("\n".join(parts).split())
    return sum(" ".join(sentence.split()) in left_text for sentence in wanted) / len(wanted) if wanted else 1.0


def copy_precision(history: Sequence[Message], left: Sequence[Message]) -> float:
    """Return which share of the atoms in what was kept, numbers aside, stands in the history: what was not invented.

    What a placeholder says of an image, and words that placeholders are made of, are no inventions.
    """
    written = {atom for message in left for atom in atoms_in(message) if kind_of(atom) != "number"} - OWN
    strange = written.difference(*map(atoms_in, history))
    if not strange:
        return 1.0
    source = frozenset().union(*(atoms_in(message) for message in history))
    strange -= {part for atom in source for part in (*atom.split("/"), *atom.split("."))}
    strange -= {left_text for message in history for part in message.parts for left_text in _pictured(part)}
    whole = "\n".join(left_text for message in history for left_text in _texts_and_arguments(message))
    names = {part.name for message in history for part in message.parts if isinstance(part, ToolCall)}
    invented = [atom for atom in strange if atom not in whole and atom not in names]
    return 1 - len(invented) / len(written)


def ages_of(history: Sequence[Message]) -> dict[str, int]:
    """Return in which tenth of the history each atom was last mentioned, 0 the oldest."""
    return {
        atom: place * DECILES // len(history) for place, message in enumerate(history) for atom in atoms_in(message)
    }


def age_gap(needed: Mapping[str, float], ages: Mapping[str, int], left: Sequence[Message]) -> float:
    """Return how far the ages of what was kept are from the ages of what was needed, from 0 (alike) to 1.

    It is the total variation distance of the two distributions over tenths of the history, of `ages_of`.
    """
    wanted, present_atoms = [0.0] * DECILES, [0.0] * DECILES
    for atom, weight in needed.items():
        wanted[ages[atom]] += weight
    for atom in frozenset().union(*(atoms_in(message) for message in left)) & ages.keys():
        present_atoms[ages[atom]] += 1
    if not sum(wanted) or not sum(present_atoms):
        return 0.0 if not sum(wanted) else 1.0
    return (
        sum(abs(one / sum(wanted) - two / sum(present_atoms)) for one, two in zip(wanted, present_atoms, strict=True))
        / 2
    )


def repeated(left: Iterable[Message]) -> float:
    """Return which share of the runs of five lines in what was kept stood there before."""
    seen: set[int] = set()
    count = 0
    for message in left:
        for text in texts(message):
            lines = [line for line in text.split("\n") if line.strip()]
            for start in range(len(lines) - SHINGLE + 1):
                seen.add(hash(tuple(lines[start : start + SHINGLE])))
                count += 1
    return 1 - len(seen) / count if count else 0.0


def strings_in(call: ToolCall) -> Iterator[str]:
    """Yield the texts in a call's arguments, numbers as text."""
    yield from _strings(_decoded(call.arguments))


@memoized
def atoms_in(message: Message) -> frozenset[str]:
    """Return the atoms of a message's words, calls and output; the message remembers them."""
    calls = (_called(part) for part in message.parts if isinstance(part, ToolCall))
    return _words(message).union(*calls, *map(_result_atoms, message.results))


@memoized
def _words(message: Message) -> frozenset[str]:
    return atoms_of("\n".join(part.text for part in message.parts if isinstance(part, Text)))


def _pictured(part: Part) -> Iterator[str]:
    """Yield what a placeholder may say of images, those in output too."""
    match part:
        case Image(media_type=kind, height=height):
            yield from (kind, f"x{height}")
        case ToolResult(content=content):
            for inner in content:
                yield from _pictured(inner)
        case _:
            pass


def _reachable(history: Sequence[Message], left_text: str) -> Iterator[frozenset[str]]:
    """Yield the atoms of every call, with its output, that what was kept still points to."""
    open_: dict[str, ToolCall] = {}
    for message in history:
        for part in message.parts:
            if isinstance(part, ToolCall):
                open_[part.call_id or part.name] = part
                if any(path in left_text for path in writes(part)):
                    yield _called(part)
        for result in message.results:
            call = open_.get(result.call_id or result.name)
            if call is not None:
                ref = reads(call)
                parts = displayed_by(command_of(call)) if ref is None and is_shell(call) else ()
                paths = {ref.path} if ref is not None else {path for path, *_ in parts}
                if (paths and all(path in left_text for path in paths)) or call_line(call, result) in left_text:
                    yield _result_atoms(result)


@memoized
def _called(call: ToolCall) -> frozenset[str]:
    return atoms_of(spoken(call))


@memoized
def _result_atoms(result: ToolResult) -> frozenset[str]:
    return atoms_of(result.text)


def _texts_and_arguments(message: Message) -> Iterator[str]:
    """Yield the words, arguments and output of a message, escapes undone: half of one belongs to no identifier."""
    for part in message.parts:
        match part:
            case Text(text=text):
                yield text
            case ToolCall():
                yield spoken(part)
            case ToolResult():
                yield part.text
            case _:
                pass


def _lines_of(messages: Iterable[Message]) -> set[str]:
    """Return the lines of messages without line numbers and blanks around, those inside the arguments of calls too."""
    return set().union(*map(_lines, messages))


@memoized
def _lines(message: Message) -> frozenset[str]:
    called = [text for part in message.parts if isinstance(part, ToolCall) for text in strings_in(part)]
    left_text = [part.text for part in message.parts if isinstance(part, Text)]
    visible = [result.text for result in message.results]
    return frozenset(_plain(line) for text in (*called, *left_text, *visible) for line in text.split("\n"))


def _plain(line: str) -> str:
    number, arrow, rest = line.partition("→")
    if not arrow:
        number, arrow, rest = line.partition("\t")
    return (rest if arrow and number.strip().isdigit() else line).strip()


def _old_texts(call: ToolCall) -> Iterator[str]:
    waiting = [_decoded(call.arguments)]
    while waiting:
        match waiting.pop():
            case dict() as value:
                yield from (inner for key, inner in value.items() if key in OLD_TEXT and isinstance(inner, str))
                waiting += [inner for inner in value.values() if isinstance(inner, dict | list)]
            case list() as value:
                waiting += value
            case _:
                pass


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case bool():
            pass
        case int() | float():
            yield str(value)
        case dict():
            for inner in value.values():
                yield from _strings(inner)
        case list():
            for inner in value:
                yield from _strings(inner)
        case _:
            pass


def _decoded(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
