"""Single messages have the form that the provider's own request types demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from refold._rules.base import CutAnywhere
from refold.core.messages import Message, Part, Path
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Flaw", "WellFormed"]


class Flaw(NamedTuple):
    """A value inside a message that the provider refuses, its path, and the part that it is rewritten as.

    Without a part the value is removed.
    """

    text: str
    at: Path
    to: Part | None = None


class WellFormed(CutAnywhere, frozen=True):
    """No message holds a value that the provider's types exclude and that a repair can put right.

    `flaws` finds them in a message as it was received. What is unknown is no flaw: a format that does not know a kind
    of block carries it.
    """

    flaws: Callable[[Message], tuple[Flaw, ...]]
    name: str = "form"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return every flaw that no edit has put right."""
        return tuple(
            Violation(self.name, flaw.text, (position,), (message.id,))
            for position, message in enumerate(messages)
            if message.native is not None and self.flaws(message)
            for flaw in self.left(message)
        )

    def left(self, message: Message) -> tuple[Flaw, ...]:
        """Return the flaws of a message that no edit has put right."""
        if message.native is None or not (flaws := self.flaws(message)):
            return ()
        rewritten = [patch.at for patch in message.patches]
        return tuple(flaw for flaw in flaws if not any(flaw.at[: len(at)] == at for at in rewritten))
