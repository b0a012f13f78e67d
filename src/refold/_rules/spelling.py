"""Ids of calls and names of tools are spelled as the provider demands."""

from __future__ import annotations

import re
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from refold._rules.base import CutAnywhere
from refold._text.text_cache import word_cache
from refold.core.messages import Message
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Spelled"]

OTHERS = re.compile(r"[^a-zA-Z0-9_-]")
DIGITS = 8  # of the digest that stands for the rest of a text that is too long


class Spelled(CutAnywhere, frozen=True):
    """The ids of calls and results, and the names of called tools, match a pattern and are not too long.

    An empty pattern accepts every text, and a length of 0 any length. Calls that the provider answers itself bear the
    ids that it gave them. A missing id is not a matter of spelling.
    """

    id: str = ""
    longest_id: int = 0
    called: str = r"[a-zA-Z0-9_-]+"
    longest_name: int = 64
    name: str = "spelling"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return ids and names that the provider refuses."""
        names = {call.name for message in messages for call in message.calls}
        ids = {call.call_id for message in messages for call in message.calls}
        ids.update([result.call_id for message in messages for result in message.results])
        if all(map(self.valid_name, names)) and all(map(self.valid_id, ids)):  # nearly always; each is looked at once
            return ()
        return tuple(
            Violation(self.name, text, (position,), (message.id,), calls)
            for position, message in enumerate(messages)
            for text, calls in self._misspelled(message)
        )

    def valid_id(self, id: str) -> bool:
        """Tell whether the provider accepts an id."""
        short = not self.longest_id or len(id) <= self.longest_id
        return short and (not id or not self.id or _matches(self.id, id))

    def valid_name(self, name: str) -> bool:
        """Tell whether the provider accepts the name of a tool."""
        short = not self.longest_name or len(name) <= self.longest_name
        return short and (not name or not self.called or _matches(self.called, name))

    def id_for(self, id: str) -> str:
        """Return an accepted id in place of another, the same for the same."""
        return _spelled(id, self.longest_id)

    def name_for(self, name: str) -> str:
        """Return an accepted name in place of another, the same for the same."""
        return _spelled(name, self.longest_name)

    def _misspelled(self, message: Message) -> Iterator[tuple[str, tuple[str, ...]]]:
        labels: list[tuple[str, str | None]] = [(call.call_id, call.name) for call in message.calls]
        labels += [(result.call_id, None) for result in message.results]
        for id, name in labels:
            if not self.valid_id(id):
                yield f"the provider does not accept the id {id!r}", (id,)
            if name is not None and not self.valid_name(name):
                yield f"the provider does not accept the name {name!r}", (id,) if id else ()


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@word_cache(4_096)
def _matches(pattern: str, text: str) -> bool:
    return _pattern(pattern).fullmatch(text) is not None


def _spelled(text: str, longest: int) -> str:
    spelled = OTHERS.sub("_", text)
    if longest and len(spelled) > longest:
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGITS // 2).hexdigest()
        spelled = f"{spelled[: longest - DIGITS - 1]}-{digest}"
    return spelled
