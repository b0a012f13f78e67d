"""Of several reads of one file only the latest stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import FileRef, reads, writes
from refold._condense.view_positions import with_text
from refold.core.edits import Rewrite
from refold.core.messages import Message, ToolResult
from refold.core.policy import Pure, require_shares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.edits import Edit
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["DeduplicateReads"]


class Read(Struct, frozen=True):
    """One successful read: its position, what it shows, and how many edits of the file came before it."""

    message: Message
    result: ToolResult
    ref: FileRef
    edits: int


class DeduplicateReads(Pure, frozen=True):  # N04
    """Replace a read by a reference if a later read shows all its lines.

    Reads are known by tool and arguments, never by prose. A later read counts only if it succeeded, was not shortened
    since, and shows at least half as much, or a quarter after an edit in between. Applied when at least `saving` of the
    tokens of the results that are replaced is saved.
    """

    placeholder: str = "[File {path} - refer to latest read below]"  # N04
    saving: float = 0.30  # N04

    def __post_init__(self) -> None:
        require_shares(self, "saving")

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the references, or nothing where they would save too little."""
        rewrites: list[Rewrite] = []
        saved = before = 0
        for read in _superseded(list(_reads(view))):
            text = self.placeholder.format(path=read.ref.path)
            size = view.counter.text(read.result.text)
            gain = size - view.counter.text(text)
            if gain > 0:
                rewrites.append(Rewrite(read.message.id, read.result.at, with_text(read.result, text)))
                saved, before = saved + gain, before + size
        return tuple(reversed(rewrites)) if rewrites and saved >= self.saving * before else ()


def _reads(view: View) -> Iterator[Read]:
    """Yield every read that succeeded and still says what it said, in order."""
    edited: dict[str, int] = {}
    for message in view.messages:
        rewritten = {patch.at for patch in message.patches}
        for call in message.calls:
            for path in writes(call):
                edited[path] = edited.get(path, 0) + 1
        for result in message.results:
            call_of = view.call_of(message, result)
            ref = reads(call_of) if call_of else None
            touched = result.at in rewritten or any(inner.at in rewritten for inner in result.content)
            if ref is not None and not result.is_error and not touched:
                yield Read(message, result, ref, edited.get(ref.path, 0))


def _superseded(reads: list[Read]) -> Iterator[Read]:
    """Yield the reads that a later one replaces, newest first."""
    later: dict[str, list[Read]] = {}
    for read in reversed(reads):
        staying = later.setdefault(read.ref.path, [])
        if any(_replaces(newer, read) for newer in staying):
            yield read
        else:
            staying.append(read)


def _replaces(newer: Read, older: Read) -> bool:
    """Tell whether a later read can stand for an earlier one; a short note that nothing changed cannot."""
    if not newer.ref.covers(older.ref):
        return False
    share = 4 if newer.edits > older.edits else 2
    return share * len(newer.result.text) >= len(older.result.text)
