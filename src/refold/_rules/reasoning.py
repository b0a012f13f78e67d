"""Signed reasoning is preserved or removed as a whole, together with the calls it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold.core.messages import Message, Reasoning
from refold.core.view import Constraints, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Part, Path

__all__ = ["ReasoningBeforeItem", "SealedReasoning", "seal_of"]


class SealedReasoning(Struct, frozen=True):
    """Reasoning with a signature is not changed, and leaves a message whole or not at all.

    `first`: models with manual extended thinking demand that a tool loop (the answers and results between two user
    messages) begins with its reasoning, so a range may begin or end only before an answer with reasoning of its own.
    Newer models put words before it (adaptive and interleaved thinking), so its place alone is never a fault.
    `first=False`: a signature vouches for one part and may stand anywhere (Gemini).
    """

    first: bool = True
    name: str = "reasoning"

    def cuts(self, messages: Sequence[Message]) -> set[int]:
        """Return the positions that do not part an answer from the reasoning that opened its tool loop."""
        cuts = set(range(len(messages) + 1))
        if not self.first:
            return cuts
        opened = False
        for position, message in enumerate(messages):
            if message.role in ("user", "system") and not message.results:  # words beside results end no loop
                opened = False
            elif message.role == "assistant":
                thinks = any(isinstance(part, Reasoning) for part in message.parts)
                if opened and not thinks:
                    cuts.discard(position)
                opened = opened or thinks
        return cuts

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return messages whose reasoning was changed or halved."""
        violations: list[Violation] = []
        for position, message in enumerate(messages):
            if message.role != "assistant":
                continue
            sealed = [part.at for part in message.parts if isinstance(part, Reasoning) and part.sealed]
            if message.patches and sealed and _touched(message, sealed):
                text = "signed reasoning, or what it vouches for, was changed"
                violations.append(Violation(self.name, text, (position,), (message.id,)))
        return tuple(violations)

    def spoiled(self, message: Message) -> tuple[Path, ...]:
        """Return the paths of reasoning that may not stay in a message whose reasoning was changed or halved.

        A signature that stands inside the part it vouches for leaves alone with it; reasoning blocks leave together.
        """
        thoughts = [part.at for part in message.parts if isinstance(part, Reasoning)]
        inside = [at for at in thoughts if _inside(at)]
        return tuple(at for at in thoughts if at not in inside or _touched(message, [at]))


class ReasoningBeforeItem(Struct, frozen=True):
    """A reasoning item stands directly before the item it led to, and neither goes alone (OpenAI Responses)."""

    name: str = "reasoning"

    def cuts(self, messages: Sequence[Message]) -> set[int]:
        """Return the positions that do not part reasoning from what follows it."""
        return {
            position
            for position in range(len(messages) + 1)
            if not position or not _only_reasoning(messages[position - 1])
        }

    def constraints(self, messages: Sequence[Message]) -> Constraints:
        """Return each reasoning item with the item that it led to."""
        lone = {violation.at[0] for violation in self.broken(messages)}
        return Constraints(
            tuple(
                (position, position + 1)
                for position, message in enumerate(messages)
                if _only_reasoning(message) and position not in lone
            )
        )

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return reasoning that no item of the assistant follows."""
        violations: list[Violation] = []
        for position, message in enumerate(messages):
            after = messages[position + 1] if position + 1 < len(messages) else None
            if _only_reasoning(message) and (after is None or after.role != "assistant" or after.native is None):
                violations.append(
                    Violation(self.name, "reasoning without the item it led to", (position,), (message.id,))
                )
        return tuple(violations)


def seal_of(message: Message, part: Part) -> Reasoning | None:
    """Return the signature inside a part that vouches for it (Gemini), or None."""
    for other in message.parts:
        if isinstance(other, Reasoning) and other.sealed and _inside(other.at) and other.at[:-1] == part.at:
            return other
    return None


def _inside(at: Path) -> bool:
    """Tell whether reasoning stands at a key of another part."""
    return len(at) > 1 and isinstance(at[-1], str) and isinstance(at[-2], int)


def _only_reasoning(message: Message) -> bool:
    return len(message.parts) == 1 and isinstance(message.parts[0], Reasoning)


def _touched(message: Message, sealed: list[Path]) -> bool:
    """Tell whether a patch lies at, inside or around sealed reasoning, or took a sibling of it away."""
    for patch in message.patches:
        if any(at[: len(patch.at)] == patch.at or patch.at[: len(at)] == at for at in sealed):
            return True
    return False
