"""Supersede: an older output that a later one repeats, or that a change has made outdated, becomes a pointer."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from refold._condense.call_facts import FileRef, reads, writes
from refold._condense.call_outline import call_line
from refold._condense.placeholders import content_replaced, is_pointer
from refold.core.edits import Edit, Rewrite, patched
from refold.core.messages import Patch, Text, ToolCall, ToolResult
from refold.core.policy import Pure, require_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.messages import Message
    from refold.core.view import View

__all__ = ["Supersede"]

Seen: TypeAlias = dict[tuple[str, str, int], list[str]]  # outputs by tool, arguments and length: long texts unhashed
ReadLines: TypeAlias = dict[str, list[tuple[FileRef, int]]]  # by path: what later reads show, and their characters
UNUSED = 0.1  # of the goal that may be left unused
SAME, CHANGED = 0.8, 0.3  # share of the older output that the later must have; less is a failed or a cut read


class Supersede(Pure, frozen=True):
    """Replace older reads that a later read contains, and older equal outputs of equal calls, by a pointer.

    A read that a later change of the file has made outdated is replaced as well, once the file is read again. `least`
    is the number of characters from which an output is replaced. Above its goal a view loses no more of them than it
    needs to meet the goal: the oldest first, and one that would leave more than a tenth of the goal unused only at
    need.
    """

    least: int = 200

    def __post_init__(self) -> None:
        require_counts(self, "least")

    def edits(self, view: View, answers: tuple[object, ...] = ()) -> tuple[Edit, ...]:
        """Return a rewrite for each output that a later one stands in for."""
        seen: Seen = {}
        later: ReadLines = {}
        written: ReadLines = {}
        rewrites: list[tuple[Message, tuple[Rewrite, ...]]] = []
        for message in reversed(view.messages):
            for result in reversed(message.results):
                call = view.call_of(message, result)
                if call is None or is_pointer(message, result):
                    continue
                plain = all(isinstance(inner, Text) for inner in result.content)
                why = _why(call, result, seen, later, written)
                if why and plain and len(result.text) >= self.least:
                    rewrites.append((message, _rewrites(message, result, call, why)))
                    continue
                _remember(call, result, seen, later, written)
        rewrites.reverse()
        return tuple(_needed(view, rewrites))


def _why(
    call: ToolCall,
    result: ToolResult,
    seen: Seen,
    later: ReadLines,
    written: ReadLines,
) -> str:
    """Return why an output is not needed where it stands, or nothing."""
    text = result.text
    if text and text in seen.get((call.name, call.arguments, len(text)), ()):
        return "repeated: the same output of the same call comes again later"
    ref = reads(call)
    if ref is None or result.is_error or writes(call):
        return ""
    if any(newer.covers(ref) and size >= SAME * len(text) for newer, size in later.get(ref.path, ())):
        return "repeated: the same lines come again later"
    if any(newer.covers(ref) and size >= CHANGED * len(text) for newer, size in written.get(ref.path, ())):
        return "outdated: the file was changed after this and is read again later"
    return ""


def _remember(
    call: ToolCall,
    result: ToolResult,
    seen: Seen,
    later: ReadLines,
    written: ReadLines,
) -> None:
    """Note what this call shows to those that stand before it, going from the newest to the oldest."""
    if result.text:
        seen.setdefault((call.name, call.arguments, len(result.text)), []).append(result.text)
    if result.is_error:
        return
    for path in writes(call):
        written.setdefault(path, []).extend(later.pop(path, ()))
    ref = reads(call)
    if ref is not None:
        later.setdefault(ref.path, []).append((ref, len(result.text)))


def _needed(view: View, rewrites: Sequence[tuple[Message, tuple[Rewrite, ...]]]) -> Iterator[Edit]:
    """Return the rewrites that bring a view to its goal, in order; all of them where it is met already."""
    if view.over_goal <= 0:
        return (edit for _, edits in rewrites for edit in edits)
    excess, most = view.over_goal, view.over_goal + int(view.goal_tokens * UNUSED)
    taken: list[int] = []
    larger: list[tuple[int, int]] = []  # what they save, and which, where that is more than is wanted
    for number, (message, edits) in enumerate(rewrites):
        if excess <= 0:
            break
        saved = view.size(message) - view.counter.message(patched(message, [Patch(at.at, at.to) for at in edits]))
        if saved > most:
            larger.append((saved, number))
        elif saved > 0:
            taken.append(number)
            excess, most = excess - saved, most - saved
    if excess > 0 and larger:
        saved, number = min(larger)
        taken = [number] if saved >= view.over_goal else [*taken, number]
    return (edit for number in sorted(taken) for edit in rewrites[number][1])


def _rewrites(message: Message, result: ToolResult, call: ToolCall, why: str) -> tuple[Rewrite, ...]:
    lines = result.text.count("\n") + 1
    text = f"[output {why}] {call_line(call, result)}, {lines:,} {'line' if lines == 1 else 'lines'}"
    return tuple(Rewrite(message.id, patch.at, patch.to) for patch in content_replaced(result, text))
