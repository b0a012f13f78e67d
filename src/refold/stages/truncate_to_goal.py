"""The longest texts are cut to a common length that meets the goal: the last step, and an addition of ours.

No seed has it. Without it a conversation whose protected part is too large could not be sent at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import failed
from refold._condense.view_positions import first_unseen, last_request, leading, original_texts, with_text
from refold._text.graphemes import head_and_tail
from refold.core.edits import Rewrite
from refold.core.messages import Text, ToolResult
from refold.core.policy import Pure, require_counts, require_shares

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.edits import Edit
    from refold.core.messages import Message
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["TruncateToGoal"]

TRIES = 12  # an estimate by length is off where a tokenizer is uneven: then a little shorter, a few times


class CuttableText(Struct, frozen=True):
    """A text that may be cut: of a message or of one of its results, with its size in tokens."""

    message: Message
    text: Text
    result: ToolResult | None
    tokens: int


class TruncateToGoal(Pure, frozen=True):
    """Cut the longest texts until the view meets its goal; no text is cut below `floor` characters.

    The least valuable goes first: old tool output and assistant texts, then output that no model has seen yet, then
    older requests, then the last request and our own messages. Arguments, reasoning, images and leading system
    messages are never cut. `enough`, a share of the input budget, is where it stops above the goal.
    """

    floor: int = 400
    enough: float = 0.0
    label: str = "[Shortened: {omitted:,} of {original:,} characters are left out here]"

    def __post_init__(self) -> None:
        require_shares(self, "enough")
        require_counts(self, "floor")

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the cut texts, or nothing where the goal is met."""
        if self._excess(view) <= 0:
            return ()
        pieces: list[CuttableText] = []
        for tier in self._tiers(view):
            pieces.extend(tier)
            if self._saved(pieces, self.floor) >= self._excess(view):
                return self._fitting(view, pieces)
        return self._cut(view, pieces, self.floor)

    def _excess(self, view: View) -> int:
        return view.tokens - max(view.goal_tokens, int(view.budget.input * self.enough))

    def _tiers(self, view: View) -> tuple[list[CuttableText], ...]:
        tiers: tuple[list[CuttableText], ...] = ([], [], [], [])
        request, seen = last_request(view), first_unseen(view)
        for position in range(leading(view), len(view.messages)):
            message = view.messages[position]
            for piece in self._pieces(view, message):
                if piece.result is not None:
                    tier = 0 if position < seen and not failed(piece.result) else 1
                elif message.note is not None or (request is not None and message.id == request.id):
                    tier = 3
                else:
                    tier = 0 if message.role == "assistant" else 2
                tiers[tier].append(piece)
        return tiers

    def _pieces(self, view: View, message: Message) -> Iterator[CuttableText]:
        for part in message.parts:
            if isinstance(part, Text) and len(part.text) > self.floor:
                yield CuttableText(message, part, None, view.counter.text(part.text))
            elif isinstance(part, ToolResult) and not part.server:
                for inner in part.content:
                    if isinstance(inner, Text) and len(inner.text) > self.floor:
                        yield CuttableText(message, inner, part, view.counter.text(inner.text))

    def _saved(self, pieces: Sequence[CuttableText], level: int) -> int:
        """Estimate what cutting all texts longer than a level to that level saves."""
        return sum(
            int(piece.tokens * (1 - level / len(piece.text.text))) for piece in pieces if len(piece.text.text) > level
        )

    def _fitting(self, view: View, pieces: Sequence[CuttableText]) -> tuple[Edit, ...]:
        """Find the greatest level that saves enough, then lower it until the counter agrees."""
        excess = self._excess(view)
        low, high = self.floor, max(len(piece.text.text) for piece in pieces)
        while high - low > 16:
            middle = (low + high) // 2
            low, high = (middle, high) if self._saved(pieces, middle) >= excess else (low, middle)
        edits: tuple[Edit, ...] = ()
        for _ in range(TRIES):
            edits = self._cut(view, pieces, low)
            if low <= self.floor or self._excess(view.after(edits)) <= 0:
                break
            low = max(int(low * 0.9), self.floor)
        return edits

    def _cut(self, view: View, pieces: Sequence[CuttableText], level: int) -> tuple[Edit, ...]:
        edits: list[Edit] = []
        for piece in pieces:
            if len(piece.text.text) <= level:
                continue
            whole = original_texts(view, piece.message).get(piece.text.at, piece.text.text)
            room = max(level - len(self.label) - 16, 0)
            new = head_and_tail(whole, room - room // 3, room // 3, self.label)
            if piece.result is not None and not piece.text.at:
                edits.append(Rewrite(piece.message.id, piece.result.at, with_text(piece.result, new)))
            else:
                edits.append(Rewrite(piece.message.id, piece.text.at, Text(new)))
        return tuple(edits)
