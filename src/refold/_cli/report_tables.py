"""Prints the tables of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._cli import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.replay._tables import ReportTable

__all__ = ["print_table"]

GAP = 2  # blanks between two columns


def print_table(table: ReportTable) -> None:
    """Print a table, in as many blocks of columns as the terminal needs."""
    console = show.terminal()
    first = max(len(line.name) for line in table.lines)
    cells = [[f"{'★ ' if cell.best else ''}{cell.text}" for cell in line.cells] for line in table.lines]
    widths = [max(map(len, column)) for column in zip(table.headers, *cells, strict=True)]
    whole = sum(widths) + GAP * len(widths)
    narrow = console.is_terminal and not table.words  # words wrap
    room = console.width - first - GAP - 1 if narrow else whole
    for number, (start, stop) in enumerate(_blocks(widths, room)):
        headers = ["", *(f"{'*' if table.words else '>'}{head}" for head in table.headers[start:stop])]
        rows = [(line.name, *some[start:stop]) for line, some in zip(table.lines, cells, strict=True)]
        show.table(headers, rows, title="" if number else table.title)


def _blocks(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Return columns as ranges that fit a room, one column at least."""
    replayed_runs, start, taken = [], 0, 0
    for place, width in enumerate(widths):
        taken += width + GAP
        if taken > room and place > start:
            replayed_runs.append((start, place))
            start, taken = place, width + GAP
    return [*replayed_runs, (start, len(widths))]
