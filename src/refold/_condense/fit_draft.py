"""A working copy of a view while a fit is sought: every change is counted exactly, and can be taken back.

Theory of operation of the fit engine (`stages.fit` drives it). The goal is a number of tokens; what is to be kept is
what will be needed again. Both ends are approached:

    view ── regions ──► draft ── reduce ──► too small a draft ── select / refill ──► the goal, filled
                          ▲                      │
                          └── digest written, its size known ◄┘   (up to five rounds)

1. `regions` splits the view by age: an old part, a protected newest part, the users' turns, and the newest turn with
   results that nothing has followed yet.
2. A `Draft` holds the messages with changes on trial. Every change returns the tokens it saves, counted by the view's
   own counter, so that no estimate is ever trusted. `undo` and `restore` take a change back exactly, but for what was
   settled: markers of pictures that were seen, and marks of sentences that were taken back.
3. `reduction_order.shrink` applies `reductions`, the cheapest loss first, until the draft meets the goal less what the
   digest will need. Each is taken down in a `ReductionLog`.
4. `selection` goes the other way for the old part: it is emptied, and then batches, calls and lines come back in the
   order of predicted use for their size (`_salience`), as far as there is room.
5. The digest of what left is written; if it needs more than was reserved, the draft is shrunk again.
6. `refill` puts back what left last while there is room, so that the goal is filled and not only met.

The result is edits like those of any stage: rewrites and one hide. Nothing here changes a message.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold.core._typed_placeholders import shaped
from refold.core.edits import Edit, Hide, Rewrite, patched
from refold.core.messages import MessageId, Patch, Text, ToolCall, ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from refold.core.messages import Message, Part, Path
    from refold.core.view import View

__all__ = ["Draft"]


BRIEF = 600  # characters of what stands in place of a part, such as a pointer, that the next pass will put there again
VERSIONS = 4  # of a message that are remembered


class Unchanged(Enum):
    """Says that a part is as the view has it."""

    SAME = "same"


SAME = Unchanged.SAME


class Draft:
    """The messages of a view with changes on trial; `total` is the size of the whole request, on the view's scale."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.base = view.messages
        self.messages: list[Message] = list(view.messages)
        self.sizes: list[int] = list(view.sizes)
        self.hidden: list[bool] = [False] * len(self.messages)
        self.changes: dict[int, dict[Path, Part | None]] = {}
        self.settled: dict[int, dict[Path, Part | None]] = {}
        self.annotations: dict[tuple[int, Path], list[Callable[[str], str]]] = {}
        self.total = view.tokens
        self.extra = 0
        self.dropped: frozenset[int] = frozenset()
        self.pinned = frozenset(view.index[id] for id in view.pinned if id in view.index)
        self.immovable = frozenset(view.index[id] for id in view.kept_by_pins) if self.pinned else self.pinned

    def change(self, position: int, patches: Iterable[Patch], undoing: Iterable[Path] = ()) -> int:
        """Change parts of a message, in place of earlier changes to the same parts; return the tokens saved.

        Changes to parts at paths in `undoing` are taken back before. A message that is pinned stays as it is.
        """
        if position in self.pinned:
            return 0
        changes = self.changes.setdefault(position, {})
        self._take_back(position, undoing)
        kinds = self.view.traits.picture_results
        changes.update(
            (patch.at, shaped(self.base[position], patch.at, self._annotated(position, patch), kinds))
            for patch in patches
        )
        return self._recounted(position)

    def settle(self, position: int, patches: Sequence[Patch]) -> int:
        """Change parts of a message for good: `undo` goes back to this; return the tokens saved."""
        saved = self.change(position, patches)
        changes = self.changes.get(position)
        if not changes:
            return saved
        self.settled.setdefault(position, {}).update((patch.at, changes[patch.at]) for patch in patches)
        return saved

    def annotate(self, position: int, at: Path, annotated: Callable[[str], str]) -> None:
        """Settle a text of a message as a function returns it; every text that takes its place passes through, too."""
        self.annotations.setdefault((position, at), []).append(annotated)
        now = next((part for part in self.messages[position].parts if part.at == at), None)
        if isinstance(now, Text) and annotated(now.text) != now.text:
            self.settle(position, [Patch(at, now)])

    def undo(self, position: int, paths: Iterable[Path]) -> int:
        """Take changes to parts of a message back, to what was settled; return the tokens saved, which is negative."""
        self._take_back(position, paths)
        return self._recounted(position)

    def changed(self, position: int, patches: Iterable[Patch]) -> dict[Path, Part | Unchanged | None]:
        """Return what this run has made of the parts that patches name: for `restore`."""
        changes = self.changes.get(position, {})
        return {patch.at: changes.get(patch.at, SAME) for patch in patches}

    def restore(self, position: int, before: dict[Path, Part | Unchanged | None]) -> int:
        """Make parts again what `changed` said; return the tokens saved, which is negative."""
        if position in self.pinned:
            return 0
        changes = self.changes.setdefault(position, {})
        for path, part in before.items():
            if isinstance(part, Unchanged):
                changes.pop(path, None)
            else:
                changes[path] = part
        return self._recounted(position)

    def hide(self, positions: Iterable[int]) -> None:
        """Let messages leave the view."""
        for position in positions:
            if not self.hidden[position] and position not in self.immovable:
                self.hidden[position] = True
                self.total -= self._leaves(position)

    def drop(self, positions: Iterable[int]) -> None:
        """Let messages leave for good."""
        self.dropped |= frozenset(positions)
        self.hide(self.dropped)

    def show(self, positions: Iterable[int]) -> None:
        """Let hidden messages return, but for those dropped."""
        for position in positions:
            if self.hidden[position] and position not in self.dropped:
                self.hidden[position] = False
                self.total += self._leaves(position)

    def add(self, tokens: int) -> None:
        """Set what messages of ours will add, in place of what was set before."""
        self.total += tokens - self.extra
        self.extra = tokens

    def remaining(self) -> list[Message]:
        """Return the messages that stay, as changed."""
        return [message for message, is_hidden in zip(self.messages, self.hidden, strict=True) if not is_hidden]

    def size(self, positions: Sequence[int]) -> int:
        """Return the tokens of messages as they are now, hidden or not."""
        return sum(self.sizes[position] for position in positions)

    def edits(self) -> tuple[Edit, ...]:
        """Return the changes as edits: rewrites in order, then one hide."""
        edits: list[Edit] = [
            Rewrite(self.base[position].id, at, to)
            for position in sorted(self.changes)
            if not self.hidden[position]
            for at, to in self.changes[position].items()
        ]
        leaving: list[MessageId] = [
            message.id for message, is_hidden in zip(self.base, self.hidden, strict=True) if is_hidden
        ]
        return (*edits, Hide(tuple(leaving))) if leaving else tuple(edits)

    def _take_back(self, position: int, paths: Iterable[Path]) -> None:
        changes, settled = self.changes.get(position, {}), self.settled.get(position, {})
        for path in paths:
            if path in settled:
                changes[path] = settled[path]
            else:
                changes.pop(path, None)

    def _leaves(self, position: int) -> int:
        """Return the tokens that hiding a message saves: all but those of parts that carry state."""
        message = self.messages[position]
        stays = message.opaques or message.id in self.view.stuck
        return self.view.leaves(message) if stays else self.sizes[position]

    def _annotated(self, position: int, patch: Patch) -> Part | None:
        """Return what a patch puts in a place, with the marks that belong there."""
        to = patch.to
        if isinstance(to, Text):
            for annotated in self.annotations.get((position, patch.at), ()):
                to = replace(to, text=annotated(to.text))
        return to

    def _recounted(self, position: int) -> int:
        changes = self.changes.get(position)
        if changes:
            patches = tuple([Patch(at, to) for at, to in changes.items()])
            self.messages[position] = changed = _changed(self.base[position], patches)
            size = self.view.size(changed)
        else:
            self.messages[position], size = self.base[position], self.view.sizes[position]
        saved = self.sizes[position] - size
        self.sizes[position] = size
        if not self.hidden[position]:
            self.total -= saved
        return saved


def _changed(message: Message, patches: tuple[Patch, ...]) -> Message:
    """Return a message with its parts changed.

    With pointers in their place it is the one of the pass before, which remembers its size and the names in it.
    """
    if not all(map(_is_brief, patches)):
        return patched(message, patches)
    known = _versions(message)
    version = known.get(patches)
    if version is None:
        if len(known) >= VERSIONS:
            known.clear()
        version = known[patches] = patched(message, patches)
    return version


def _is_brief(patch: Patch) -> bool:
    to = patch.to
    match to:
        case None:
            return True
        case Text(text=text) | ToolResult(text=text) | ToolCall(arguments=text):
            return len(text) <= BRIEF
        case _:
            return False


@memoized
def _versions(message: Message) -> dict[tuple[Patch, ...], Message]:
    """Return the versions of a message with brief parts in place of others, by its patches."""
    return {}
