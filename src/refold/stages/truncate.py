"""Head, label and tail in place of a long text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._condense.view_positions import loop_start, original_texts
from refold._text.graphemes import head_and_tail
from refold.core.edits import Rewrite
from refold.core.messages import Reasoning, Text
from refold.core.policy import Pure, require_counts, require_shares
from refold.stages.selectors import LargestThenOldest, TextTarget

if TYPE_CHECKING:
    from refold.core.edits import Edit
    from refold.core.messages import Path
    from refold.core.needs import Answer
    from refold.core.view import View
    from refold.stages.selectors import TextSelector

__all__ = ["Truncate"]


class Truncate(Pure, frozen=True):  # W08
    """Shorten the selected texts to a head and a tail, with a label between that states the sizes in characters.

    A text that was cut before is cut again from the original, so labels never nest. An assistant message also loses
    its reasoning, except sealed reasoning of the running turn, which providers require. Calls stay.
    """

    targets: TextSelector = LargestThenOldest()
    head: float = 0.15  # W08
    head_cap: int = 6_000  # W08
    tail: float = 0.08  # W08
    tail_cap: int = 3_000  # W08
    slack: int = 200  # a text that would lose less than this stays whole
    label: str = (
        "[TRUNCATED — {original:,} chars original, {omitted:,} chars omitted, "
        "showing first {head:,} + last {tail:,} chars]"  # W08
    )

    def __post_init__(self) -> None:
        require_shares(self, "head", "tail")
        require_counts(self, "head_cap", "tail_cap", "slack")

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the shortened texts of all targets."""
        loop = loop_start(view.messages)
        edits: list[Edit] = []
        for target in self.targets(view):
            edits.extend(self._shorter(view, target))
            if target.result is None and target.message.role == "assistant":
                edits.extend(_unthought(target, running=-1 < loop < view.index[target.message.id]))
        return tuple(edits)

    def _shorter(self, view: View, target: TextTarget) -> list[Edit]:
        originals = original_texts(view, target.message)
        edits: list[Edit] = []
        for part in target.words:
            new = self._cut(originals.get(part.at, part.text), len(part.text))
            if new is None:
                continue
            if target.result is not None and not part.at:  # a result we wrote: its content has no address
                result = replace(target.result, content=(Text(new),))
                edits.append(Rewrite(target.message.id, target.result.at, result))
            else:
                edits.append(Rewrite(target.message.id, part.at, Text(new)))
        return edits

    def _cut(self, whole: str, present: int) -> str | None:
        head = min(int(present * self.head), self.head_cap)
        tail = min(int(present * self.tail), self.tail_cap)
        return None if present <= head + tail + self.slack else head_and_tail(whole, head, tail, self.label)


def _unthought(target: TextTarget, *, running: bool) -> list[Edit]:
    """Remove the reasoning of a message: all of it or, where a seal may be asked for, none."""
    paths: list[Path] = [part.at for part in target.message.parts if isinstance(part, Reasoning)]
    sealed = any(isinstance(part, Reasoning) and part.sealed for part in target.message.parts)
    return [] if sealed and running else [Rewrite(target.message.id, path, None) for path in paths]
