"""What a compaction makes an agent read again: identifiers it writes that left its view, and where they stood."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._salience.atoms import atoms_of, kind_of
from refold._salience.segments import split
from refold.core.messages import texts
from refold.replay._judge import atoms_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.core.messages import Message

__all__ = ["Refetching"]

CHARS = 4  # characters a token of what is read again


class Refetching:
    """Follows a conversation under a policy and says what has to be read again before each answer.

    Numbers are left out: no one opens a file for a number that may be one of many. An identifier that a tool or a user
    has shown again, or that was read again, is there again.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._seen: dict[str, int] = {}
        self._removed: set[str] = set()

    def compacted(self, view: Iterable[Message]) -> None:
        """Take note of what a view no longer holds."""
        visible: set[str] = set()
        for message in view:
            visible |= atoms_in(message)
        self._removed = {atom for atom in self._seen if atom not in visible}

    def passed(self, place: int) -> int:
        """Pass a message of the recording; return the tokens that have to be read again before it can be written."""
        message = self._messages[place]
        atoms = atoms_in(message)
        missing = atoms & self._removed if self._removed else frozenset()
        self._removed -= missing
        for atom in atoms:
            if kind_of(atom) != "number":
                self._seen[atom] = self._seen[atom] if atom in missing else place
        if message.role != "assistant" or not missing:
            return 0
        sources: dict[int, set[str]] = {}
        for atom in missing:
            sources.setdefault(self._seen[atom], set()).add(atom)
            self._seen[atom] = place
        return sum(self._smallest(source, wanted) for source, wanted in sources.items())

    def _smallest(self, source: int, wanted: set[str]) -> int:
        """Return the tokens of the smallest segments of a message that hold what is wanted."""
        shortest: dict[str, str] = {}
        for segment in split("\n".join(texts(self._messages[source]))):
            for atom in wanted & atoms_of(segment):
                if atom not in shortest or len(segment) < len(shortest[atom]):
                    shortest[atom] = segment
        read = set(shortest.values())
        for segment in read:
            self._removed -= atoms_of(segment)
        return sum(map(len, read)) // CHARS + 1
