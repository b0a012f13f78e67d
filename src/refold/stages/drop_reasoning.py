"""Removes reasoning that a provider does not accept back; everything else of its message stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from refold.core.edits import Hide, Rewrite
from refold.core.messages import Opaque, Reasoning, Text
from refold.core.policy import Pure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.edits import Edit
    from refold.core.messages import Message
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["DropReasoning", "reasoning_removals"]


class DropReasoning(Pure, frozen=True):
    """Remove reasoning that was sealed, or that is a block or an item of its own; a message left empty is hidden.

    `since` is the first message that loses it, counted in the list as it was sent; formats whose list is not the
    provider's own (chat, Responses) lose all. With `older` the newest turn keeps its own, whose calls need it (Gemini).
    `item` names a Responses item by its id or by both ends of its encrypted content: a compaction item of that name is
    hidden too, and the messages before it are read again (their reasoning leaves in a second run).
    """

    since: int = 0
    older: bool = False
    item: str = ""
    grows: ClassVar[bool] = True  # what leaves may count for nothing
    takes_state: ClassVar[bool] = True

    def edits(self, view: View, answers: tuple[Answer, ...] = ()) -> tuple[Edit, ...]:
        """Return the removals, in the order of the messages."""
        messages = view.messages
        start = max(self.since - len(view.ignored), 0) if view.traits.alternates else 0
        stop = _newest_turn(messages) if self.older else len(messages)
        edits: list[Edit] = []
        for message in messages[start:stop]:
            edits += [Hide((message.id,))] if self._named(message) else reasoning_removals(message)
        return tuple(edits)

    def _named(self, message: Message) -> bool:
        """Tell whether a message is the compaction item that the refusal names."""
        native = message.native
        if not self.item or not isinstance(native, dict) or not any(isinstance(part, Opaque) for part in message.parts):
            return False
        kind, sealed = native.get("type"), native.get("encrypted_content")
        if not isinstance(kind, str) or not kind.startswith("compaction"):
            return False
        head, dots, tail = self.item.partition("...")
        ends = dots and isinstance(sealed, str) and sealed.startswith(head) and sealed.endswith(tail)
        return bool(ends) or native.get("id") == self.item


def _newest_turn(messages: Sequence[Message]) -> int:
    """Return where the newest turn begins: at the last message of a user that is no result."""
    return next((position for position in range(len(messages) - 1, -1, -1) if messages[position].role == "user"), 0)


def reasoning_removals(message: Message) -> Iterator[Edit]:
    """Yield the edits that take sealed reasoning, and reasoning that is a block of its own, out of a message."""
    parts = message.parts
    leaving = [part.at for part in parts if isinstance(part, Reasoning) and _refusable(part)]
    if not leaving:
        return
    # a signature stands inside its part: words that are empty but for it go with it
    leaving += [part.at for part in parts if isinstance(part, Text) and not part.text and _bears(part, leaving)]
    if all(part.at in leaving for part in parts):
        yield Hide((message.id,))
        return
    yield from (Rewrite(message.id, at) for at in leaving)


def _bears(part: Text, leaving: list[tuple[str | int, ...]]) -> bool:
    return any(at[:-1] == part.at for at in leaving)


def _refusable(part: Reasoning) -> bool:
    """Tell whether a provider verifies a part; plain words in a field beside the content (DeepSeek) it does not."""
    return part.sealed or not part.at or isinstance(part.at[-1], int)
