"""The tables on replayed conversations, as data: the report and the terminal show the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold.replay._run import NONE
from refold.replay._summary import (
    Figure,
    PolicySummary,
    limits_of,
    summed,
    verdicts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refold.replay._run import Run
    from refold.replay._summary import Comparison

__all__ = ["COST", "NAMES", "Cell", "ReportTable", "TableRow", "tables", "tables_of", "verdict_table"]


class Cell(Struct, frozen=True):
    """What a cell says, and whether no other policy has a better figure."""

    text: str = ""
    best: bool = False


class TableRow(Struct, frozen=True):
    """One line of a table: its name, and its cells."""

    name: str
    cells: tuple[Cell, ...]


class ReportTable(Struct, frozen=True):
    """A table: its title, a sentence on what it contains, the headings of its columns after the first, and its lines.

    `words` says that its cells are words, not figures.
    """

    title: str
    note: str
    headers: tuple[str, ...]
    lines: tuple[TableRow, ...]
    words: bool = False


class _Measure(Struct, frozen=True):
    """A line of a table of policies: what it is called, how it is read and said, and whether more is better (1, -1)."""

    name: str
    value: Callable[[PolicySummary], float | None]
    text: Callable[[PolicySummary], str]
    better: int = 0


LONGER = 0.15  # of a run whose agent saw less, as has been measured for masked output
COST = (
    _Measure("compactions", lambda row: row.compactions, lambda row: f"{row.compactions:,}"),
    _Measure("mean context", lambda row: row.mean, lambda row: f"{row.mean:,}", -1),
    _Measure("peak", lambda row: row.peak, lambda row: f"{row.peak:,}", -1),
    _Measure("US$ calls", lambda row: row.dollars, lambda row: f"{row.dollars:,.2f}", -1),
    _Measure("summaries", lambda row: row.summaries, lambda row: f"{row.summaries:,}"),
    _Measure("US$ summaries", lambda row: row.summary, lambda row: f"{row.summary:,.2f}", -1),
    _Measure("reads again", lambda row: row.refetches, lambda row: f"{row.refetches:,}"),
    _Measure("US$ read again", lambda row: row.refetch, lambda row: f"{row.refetch:,.2f}", -1),
    _Measure("US$ in all", lambda row: row.bill, lambda row: f"{row.bill:,.2f}", -1),
    _Measure(f"against {NONE}", lambda row: row.change.value, lambda row: _as_text(row.change, sign=True), -1),
    _Measure(f"if {LONGER:.0%} longer", lambda row: row.change.value, lambda row: _longer(row)),  # noqa: PLW0108 - stands below
    _Measure("US$ cache damage", lambda row: row.damage, lambda row: f"{row.damage:,.2f}", -1),
    _Measure("calls too long", lambda row: row.over, lambda row: f"{row.over:,}"),
    _Measure("rules broken", lambda row: row.broken, lambda row: f"{row.broken:,}"),
)
# What each figure is called, and whether more is better.
NAMES: dict[str, tuple[str, int]] = {
    "fits": ("came down to it", 1),
    "used": ("budget used", 0),
    "recall": ("recall", 1),
    "bound": ("of the bound", 1),
    "recoverable": ("recoverable", 1),
    "lost": ("lost", -1),
    "anchors": ("edit anchors", 1),
    "trail": ("trail", 1),
    "trail_precision": ("trail precision", 1),
    "constraints": ("constraints", 1),
    "copied": ("copied", 1),
    "valid": ("valid", 1),
    "age": ("age gap", -1),
    "repeated": ("repeated", -1),
    "density": ("density", 1),
    "planted_once": ("planted, cycle 1", 1),
    "planted": ("planted, cycle 5", 1),
    "own": ("own, cycle 5", 1),
    "drift": ("recall 5 / once", 0),
}
LIMITS = {"certified": "certified bound", "oracle": "oracle", "recency": "newest text", "random": "by chance"}
NOTHING = "–"  # no figure
PLAIN = frozenset({"density"})  # not a share


def tables(conversations: Sequence[Sequence[Run]]) -> list[ReportTable]:
    """Return the tables on what policies cost and kept; those that nothing was judged for are left out."""
    return tables_of(summed(conversations), limits_of(conversations))


def tables_of(rows: Sequence[PolicySummary], limits: dict[str, dict[str, Figure]]) -> list[ReportTable]:
    """Return the same tables of summaries; `limits` has the sizes in order, with what any choice could preserve."""
    if not rows:
        return []
    many = "conversation" if rows[0].conversations == 1 else "conversations"
    tables = [
        _table(
            f"Cost: {rows[0].conversations:,} {many}, {rows[0].calls:,} calls",
            "Each policy compacts where it would; summaries and what has to be read again are charged.", rows, COST,
        )
    ]  # fmt: skip
    judged = [row for row in rows if row.policy != NONE]
    if any(row.quality for row in judged):
        note = "At the same calls for all, from the first compaction of any policy on; sizes differ."
        tables.append(_figures("Kept of what the rest needed", note, judged, [row.quality for row in judged]))
    sizes = list(limits) if judged else []
    if sizes:
        tables.append(_recall(judged, limits, sizes))
    for size in sizes:
        at_size = [row.at_sizes.get(size, {}) for row in judged]
        note = "The same room for all, over the cuts where a policy came down to it."
        tables.append(_figures(f"Kept at {_size(size)}", note, judged, at_size))
    if any(row.cycles for row in judged):
        note = "Each into a quarter of the history so far; a tool's output asks to drop the planted instructions."
        tables.append(_figures("Five compactions in a row", note, judged, [row.cycles for row in judged]))
    return [table for table in tables if table.lines]


def verdict_table(conversations: Sequence[Sequence[Run]]) -> ReportTable | None:
    """Return whether the best policy on each figure differs from the others; None for fewer than two policies."""
    by_name: dict[str, list[Comparison]] = {}
    for verdict in verdicts(conversations):
        by_name.setdefault(verdict.figure, []).append(verdict)
    if not by_name:
        return None
    lines = [
        TableRow(f"{figure}: {some[0].best}", tuple(Cell(_others(some, kind)) for kind in (True, False)))
        for figure, some in by_name.items()
    ]
    note = "Whether the best is better in 95 % of resampled sets of conversations."
    return ReportTable(
        "Can they be told apart?", note, ("supported: better than", "not supported"), tuple(lines), words=True
    )


def _others(verdicts: Sequence[Comparison], supported: bool) -> str:
    return ", ".join(each.other for each in verdicts if each.supported is supported)


def _size(size: str) -> str:
    return f"{size} of the history" if size.endswith("%") else f"{size} tokens"


def _recall(rows: Sequence[PolicySummary], limits: dict[str, dict[str, Figure]], sizes: Sequence[str]) -> ReportTable:
    """Return recall at equal sizes: bound and oracle above, policies by their recall, floors below."""
    by_name = {row.policy: [row.at_sizes.get(size, {}).get("recall") for size in sizes] for row in rows}
    best = [max((each.value for each in some if each), default=None) for some in zip(*by_name.values(), strict=True)]
    known = {LIMITS[name]: [limits[size].get(name) for size in sizes] for name in LIMITS}
    order = sorted(by_name, key=lambda name: -sum(figure.value for figure in by_name[name] if figure))
    names = [*list(LIMITS.values())[:2], *order, *list(LIMITS.values())[2:]]
    several = len(order) > 1
    lines = [
        TableRow(name, tuple(
            Cell(_as_text(figure), several and name in by_name and figure is not None and figure.value == top)
            for figure, top in zip({**known, **by_name}[name], best, strict=True)
        ))
        for name in names
    ]  # fmt: skip
    note = "No choice of segments keeps more than the bound; the oracle chooses them knowing the rest."
    return ReportTable("Recall at equal size", note, tuple(map(_size, sizes)), tuple(lines))


def _figures(title: str, note: str, rows: Sequence[PolicySummary], by_name: Sequence[dict[str, Figure]]) -> ReportTable:
    """Return a table of figures, one line each, a column for each policy."""
    counts = [max((each.count for each in figures.values()), default=0) for figures in by_name]
    lines = [TableRow("conversations", tuple(Cell(f"{count:,}") for count in counts))]
    for name, (label, better) in NAMES.items():
        some = [figures.get(name) for figures in by_name]
        if any(some):
            values = [round(figure.value, 3) if figure else None for figure in some]
            marks = _best(values, better)
            cells = (Cell(_as_text(each, plain=name in PLAIN), mark) for each, mark in zip(some, marks, strict=True))
            lines.append(TableRow(label, tuple(cells)))
    return ReportTable(title, note, tuple(row.policy for row in rows), tuple(lines))


def _table(title: str, note: str, rows: Sequence[PolicySummary], measures: Sequence[_Measure]) -> ReportTable:
    lines = []
    for measure in measures:
        values = [measure.value(row) if row.policy != NONE else None for row in rows]
        marks = _best(values, measure.better)
        cells = (Cell(measure.text(row), mark) for row, mark in zip(rows, marks, strict=True))
        lines.append(TableRow(measure.name, tuple(cells)))
    return ReportTable(title, note, tuple(row.policy for row in rows), tuple(lines))


def _best(values: Sequence[float | None], better: int) -> list[bool]:
    """Return which values are the best; none where half or more are, which tells nothing."""
    known = [value for value in values if value is not None]
    if not better or not known:
        return [False] * len(values)
    best = max(known) if better > 0 else min(known)
    marked = known.count(best) * 2 < max(len(known), 3)
    return [marked and value is not None and value == best for value in values]


def _longer(row: PolicySummary) -> str:
    """Return the change of the bill if the agent took more calls for the same after compactions."""
    return f"{100 * ((1 + row.change.value) * (1 + LONGER) - 1):+.1f}%" if row.compactions else NOTHING


def _as_text(figure: Figure | None, *, sign: bool = False, plain: bool = False) -> str:
    if figure is None:
        return NOTHING
    scale, unit = (1, "") if plain else (100, "%")
    value = f"{scale * figure.value:{'+' if sign else ''}.{2 if plain else 1}f}{unit}"
    return value if figure.error is None else f"{value} ±{scale * figure.error:.{2 if plain else 1}f}"
