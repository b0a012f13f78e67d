"""Records the identifiers of each message by who wrote them."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from refold._salience.atoms import names_of, spoken, words_between
from refold._salience.segments import harness_segments, segments_of
from refold.core._speakers import speech
from refold.core.messages import Text, ToolCall, ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.messages import Message

__all__ = ["Manner", "Mentions", "mentioned_in", "mentions_of"]

WRONG = re.compile(r"Error|Exception|error:|FAILED|failed|fatal|panic")
WRONG_LINES = 20  # of one message
WRITING = re.compile(r"edit|write|patch|replace|create", re.I)


class Manner(NamedTuple):
    """How one message mentions an atom: 0 or 1 for each of what can be said of it, the commonest first."""

    mentioned: bool = True  # at all
    by_tool: bool = False
    by_user: bool = False
    own: bool = False
    called: bool = False
    failed: bool = False
    changed: bool = False


class Mentions(Struct, frozen=True, dict=True):
    """The atoms of one message by who wrote them: the assistant in words and in calls, tools, the user or system.

    What a harness says in a user's turn counts as said by a tool. `failed` are those of
    `shown` that stand in a line that tells of an error; `writes` says that a call changes files.
    `between` are words between the ends of very long texts: see `words_between`.
    """

    in_text: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    by_tool: frozenset[str] = frozenset()
    by_user: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    between: frozenset[str] = frozenset()
    writes: bool = False

    @cached_property
    def every(self) -> frozenset[str]:
        """All atoms of the message."""
        return self.in_text | self.called | self.by_tool | self.by_user

    @cached_property
    def own(self) -> frozenset[str]:
        """What the assistant wrote."""
        return self.in_text | self.called

    @cached_property
    def by_manner(self) -> tuple[tuple[Manner, frozenset[str]], ...]:
        """All atoms of the message, each once, together with those that it mentions in the same manner."""
        changed = self.called if self.writes else frozenset()
        groups: list[tuple[tuple[bool, ...], frozenset[str]]] = [((True,), self.every)]
        for atoms in (self.by_tool, self.by_user, self.own, self.called, self.failed, changed):
            groups = [
                ((*manner, inside), some)
                for manner, every in groups
                for inside, some in (((True, every & atoms), (False, every - atoms)) if atoms else ((False, every),))
                if some
            ]
        return tuple((Manner(*manner), atoms) for manner, atoms in groups)


@memoized
def mentions_of(message: Message) -> Mentions:
    """Return the names of a message by who wrote them."""
    own = message.role == "assistant"
    utterance = speech(message)
    words = (
        utterance.typed
        if utterance.harness
        else "\n".join(part.text for part in message.parts if isinstance(part, Text))
    )
    calls = "\n".join(spoken(part) for part in message.parts if isinstance(part, ToolCall))
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    outputs = [part.text for part in results]
    pieces = [segment for part in results for segment in segments_of(part)]
    if utterance.harness:  # what a harness says in a user's turn is output
        outputs += [span.body(one.text.text) for one in utterance.harness for span in one.spans]
        pieces += [segment for bodies in harness_segments(message).values() for body in bodies for segment in body]
    failed = _names("\n".join(line for text in outputs for line in _wrong_lines(text)))
    return Mentions(
        failed=failed,
        in_text=_names(words if own else ""),
        called=_names(calls),
        by_tool=failed.union(*[segment.atoms for segment in pieces if not segment.between]),
        by_user=_names("" if own else words),
        between=words_between(words).union(
            words_between(calls), *[segment.atoms for segment in pieces if segment.between]
        ),
        writes=any(WRITING.search(part.name) for part in message.parts if isinstance(part, ToolCall)),
    )


def mentioned_in(message: Message) -> frozenset[str]:
    """Return all atoms of a message; of one that a plan has changed nobody asks who wrote them."""
    if message.patches:
        return _names_in(message)
    mentions = mentions_of(message)
    return mentions.every | mentions.between if mentions.between else mentions.every


@memoized
def _names_in(message: Message) -> frozenset[str]:
    words = [part.text for part in message.parts if isinstance(part, Text | ToolResult)]
    words += [spoken(part) for part in message.parts if isinstance(part, ToolCall)]
    return frozenset().union(*map(names_of, words), *map(words_between, words))


def _wrong_lines(text: str) -> Iterator[str]:
    """Yield the first lines of a text that tell of an error."""
    end = 0
    for count, match in enumerate(WRONG.finditer(text)):
        if match.start() < end:
            continue
        if count >= WRONG_LINES:
            return
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        end = len(text) if end < 0 else end
        yield text[start:end]


def _names(text: str) -> frozenset[str]:
    return names_of(text) if text else frozenset()
