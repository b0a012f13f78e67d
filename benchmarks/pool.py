"""What several benchmarks share: work on all cores with a progress bar, and rows as JSON lines or as tables."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from msgspec import to_builtins
from rich.console import Console
from rich.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.table import Table

__all__ = ["print_rows", "worked"]

Row = TypeVar("Row")


def worked(
    label: str, work: Callable[..., list[Row]], first: Sequence[object], *others: object, jobs: int | None = None
) -> Iterator[list[Row]]:
    """Yield what work returns for each of `first`, in order; `others` are the same for all."""
    with ProcessPoolExecutor(jobs) as pool, Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=len(first))
        for rows in pool.map(work, first, *([other] * len(first) for other in others)):
            yield rows
            progress.advance(task)


def print_rows(rows: Iterable[object], tables: Iterable[Table], *, as_json: bool, width: int) -> None:
    """Print rows as JSON lines, or their tables, at least as wide as they need."""
    if as_json:
        for row in rows:
            print(json.dumps(to_builtins(row)))
        return
    console = Console(width=max(Console().width, width))
    for table in tables:
        console.print(table)
