"""How much file content a request may carry: a share of the remaining window, by size, per file and in total (N15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._text.graphemes import boundary_before
from refold.core.counting import CharCounter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.counting import Counter

__all__ = ["Attached", "FileReading", "file_budget", "fit_files", "how_to_read"]

SHARE = 60  # per cent of what remains, N15
PASSES = 100 * 1024  # bytes, N15: below, a file is read without a look at the budget
PREVIEW_ABOVE = 5 * 1024 * 1024  # bytes, N15
PREVIEW = 2_000  # characters, N15
CHARS_PER_TOKEN = 4  # N15
TRIES = 12  # each try at least halves what is too much


class FileReading(Struct, frozen=True):
    """How to take a file: whole, its first `max_chars` characters, or those as a preview."""

    truncate: bool
    max_chars: int | None = None
    preview: bool = False


class Attached(Struct, frozen=True):
    """A file that travels with a request; `chars` is its length before it was cut, 0 when it is whole."""

    content: str
    path: str = ""
    chars: int = 0


def file_budget(window: int, used: int, max_output: int = 0) -> int:  # N15
    """Return the tokens for files: 60 % of what the window has left, rounded down; 0 when nothing is left."""
    return max(0, window - used - max_output) * SHARE // 100


def how_to_read(size: int, budget: int) -> FileReading:  # N15
    """Return how to take a file of so many bytes.

    Below 100 KB it passes, above 5 MB it is a preview of 2,000 characters, otherwise it is cut to the budget at
    4 characters a token.
    """
    if size > PREVIEW_ABOVE:
        return FileReading(True, PREVIEW, preview=True)
    if size < PASSES or -(-size // CHARS_PER_TOKEN) <= budget:
        return FileReading(False)
    return FileReading(True, max(0, budget) * CHARS_PER_TOKEN)


def fit_files(files: Sequence[Attached], budget: int, counter: Counter | None = None) -> tuple[Attached, ...]:  # N15
    """Return the files so that all together stay inside the budget, in their order.

    Small ones stay whole; the large ones share what is left evenly, and say what was cut. One for which there is no
    room at all becomes empty. Files above 5 MB are previews. Default counter: 4 characters a token.
    """
    counter = counter or CharCounter(CHARS_PER_TOKEN)
    taken = [_previewed(file) for file in files]
    costs = [counter.text(file.content) for file in taken]
    left = max(0, budget)
    if sum(costs) <= left:
        return tuple(taken)
    order = sorted(range(len(taken)), key=costs.__getitem__)
    for rank, position in enumerate(order):
        share = left // (len(order) - rank)
        if costs[position] > share:
            taken[position] = _cut(taken[position], share, costs[position], counter)
            costs[position] = counter.text(taken[position].content)
        left -= costs[position]
    return tuple(taken)


def _previewed(file: Attached) -> Attached:
    size = len(file.content)
    if size <= PREVIEW_ABOVE // 4 or len(file.content.encode("utf-8", "surrogatepass")) <= PREVIEW_ABOVE:
        return file
    head = file.content[: boundary_before(file.content, PREVIEW)]
    return replace(file, content=f"{head}\n{_notice(file.path, len(head), size)}", chars=size)


def _cut(file: Attached, share: int, cost: int, counter: Counter) -> Attached:
    """Return a file cut to so many tokens, its notice among them; empty when not even that fits."""
    whole = file.chars or len(file.content)
    size = len(file.content) * share // max(1, cost)
    for _ in range(TRIES):
        head = file.content[: boundary_before(file.content, size)]
        content = f"{head}\n{_notice(file.path, len(head), whole)}"
        tokens = counter.text(content)
        if tokens <= share:
            return replace(file, content=content, chars=whole)
        size = min(size * share // tokens, size - (tokens - share)) if tokens < 2 * share else size // 2
        if size <= 0:
            break
    return replace(file, content="", chars=whole)


def _notice(path: str, chars: int, whole: int) -> str:
    return f"[File {path or 'attachment'}: the first {chars:,} of {whole:,} characters]"
