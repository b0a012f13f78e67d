"""Old tool results become a placeholder; the calls stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.call_facts import act_of
from refold._condense.view_positions import first_unseen, with_text
from refold.core.edits import Rewrite
from refold.core.messages import Message, MessageId
from refold.core.policy import Pure, require_counts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.edits import Edit
    from refold.core.messages import ToolResult
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["Clear"]

_BARE = Message(MessageId("bare"), "tool")


class Clear(Pure, frozen=True):  # N03, L02
    """Clear results, older than the protected newest ones, if enough tokens are saved.

    `tools` names the tools whose results may be cleared, `acts` says what such a tool does ("read", "write", "search",
    "run"; see `Act`); neither: all tools. Those that `never` names are not cleared. The newest `keep` results and the
    newest `protect` tokens of them stay, with the result that crosses this number; so do results of `larger_than`
    tokens or fewer and those that the model has not seen yet. `saving` is the least that all together must bring: what
    is cleared, less what the placeholders cost if `net`.
    """

    placeholder: str
    tools: frozenset[str] = frozenset()
    acts: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    keep: int = 0
    protect: int = 0
    larger_than: int = 0
    saving: int = 0
    net: bool = True

    def __post_init__(self) -> None:
        require_counts(self, "keep", "protect", "larger_than", "saving")

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the placeholders, oldest first, or nothing where they would save too little."""
        cost = view.counter.text(self.placeholder) if self.net else 0
        chosen = [candidate for candidate in self._older(view) if candidate[2] > max(self.larger_than, cost)]
        if not chosen or sum(size - cost for _, _, size in chosen) < self.saving:
            return ()
        return tuple(
            Rewrite(message.id, result.at, with_text(result, self.placeholder))
            for message, result, _ in reversed(chosen)
        )

    def _older(self, view: View) -> Iterator[tuple[Message, ToolResult, int]]:
        """Yield results with their tokens, newest first, beyond what is protected."""
        seen = first_unseen(view)
        count = protected = 0
        for position in range(len(view.messages) - 1, -1, -1):
            message = view.messages[position]
            for result in reversed(message.results):
                if not self._may(view, message, result):
                    continue
                size = _tokens(view, message, result)
                if (
                    count >= self.keep
                    and protected >= self.protect
                    and position < seen
                    and result.text != self.placeholder
                ):
                    yield message, result, size
                count, protected = count + 1, protected + size

    def _may(self, view: View, message: Message, result: ToolResult) -> bool:
        call = view.call_of(message, result)
        anything = not self.tools and not self.acts
        if call is None or anything:
            return anything and (call is None or call.name not in self.never)
        return (call.name in self.tools or act_of(call) in self.acts) and call.name not in self.never


def _tokens(view: View, message: Message, result: ToolResult) -> int:
    """Return the tokens of a result alone, without what frames a message."""
    counter = view.counter
    alone = len(message.parts) == 1
    size = view.size(message) if alone else counter.message(Message(_BARE.id, "tool", (result,)))
    return size - counter.message(_BARE)
