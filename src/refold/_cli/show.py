"""Printing: tables, bars and notes, in colour on a terminal and as plain aligned text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import rich_click as click

from refold._text.printable import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "bar",
    "clean",
    "emit",
    "line",
    "lines",
    "note",
    "number",
    "progress",
    "progress_bar",
    "share",
    "side_by_side",
    "table",
    "working",
]

T = TypeVar("T")
PAGE = 160  # two texts side by side have to be broken somewhere
MARKS = ">*#~"
READABLE = 16  # columns below which text that wraps is no longer read
CUT = 12  # columns below which text that is cut says nothing
BLOCKS = 60  # rows that may become blocks
WIDE = 100_000  # plain output is never cut: whoever reads it is a program, or scrolls


def terminal(*, err: bool = False) -> Console:
    """Return the console of standard output or standard error; it knows whether it is a terminal and how wide."""
    from rich.console import Console

    return Console(stderr=err, highlight=False, markup=False, emoji=False)


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", styles: Sequence[str] = ()
) -> None:
    """Print rows under heads; `styles` colours whole rows.

    A head that begins with `>` stands over numbers, with `#` over a bar, with `*` over text that takes the room left
    over and wraps, with `~` over such text that is cut. On a terminal that is too narrow other texts wrap too;
    where that is not enough, columns go into several tables or, with long texts, each row becomes a block of lines.
    Numbers are never cut.
    """
    from rich import box

    wrap = False
    if terminal().is_terminal:
        console, look = terminal(), {"box": box.SIMPLE_HEAD, "header_style": "bold", "padding": (0, 1, 0, 0)}
        wrap = _needed(headers, rows) > console.width
        room = console.width - _needed(headers, rows, wrap=True)
        if wrap and len(rows) <= BLOCKS and room < 0:
            _broken(headers, rows, title, styles)
            return
        if wrap and room < CUT:  # no room for text that is cut: the rest is read better without
            columns_kept = [place for place, head in enumerate(headers) if head[:1] != "~"]
            headers, rows = (
                [headers[place] for place in columns_kept],
                [[row[place] for place in columns_kept] for row in rows],
            )
    else:
        console, look, styles = _plain(WIDE), {"box": None, "padding": (0, 2, 0, 0)}, ()
    if title.strip():
        line(f"\n{title}", style="bold")
    elif title and not terminal().is_terminal:
        line("")
    _print(console, _table(headers, rows, styles, wrap=wrap, **look))


def side_by_side(headers: tuple[str, str, str], rows: Sequence[tuple[str, str, str]], styles: Sequence[str]) -> None:
    """Print a narrow column and two broad ones of equal width, side by side; texts wrap."""
    from rich import box

    console = terminal()
    if not console.is_terminal:
        console = _plain(PAGE)
    marked = (f">{headers[0]}", f"*{headers[1]}", f"*{headers[2]}")
    _print(console, _table(marked, rows, styles, box=box.SIMPLE_HEAD, show_lines=True, expand=True))


def lines(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and what they are, aligned."""
    console = terminal() if terminal().is_terminal else _plain(WIDE)
    _print(console, _table(("", "*"), pairs, (), box=None, padding=(0, 2, 0, 0), show_header=False))


def line(text: str, style: str = "") -> None:
    """Print one line on standard output."""
    console = terminal()
    if console.is_terminal:
        console.print(text, style=style, soft_wrap=True)
    else:
        click.echo(text)


def note(text: str) -> None:
    """Say something beside the output, on standard error."""
    console = terminal(err=True)
    if console.is_terminal:
        console.print(clean(text), style="dim", soft_wrap=True)
    else:
        click.echo(clean(text), err=True)


def emit(value: object) -> None:
    """Print a value as JSON, laid out for eyes on a terminal and in one line elsewhere."""
    encoded = msgspec.json.encode(msgspec.to_builtins(value, enc_hook=str))
    click.echo(msgspec.json.format(encoded, indent=2 if sys.stdout is not None and sys.stdout.isatty() else -1))


def progress(items: Sequence[T], doing: str) -> Iterator[T]:
    """Yield items, with a bar on standard error while a terminal watches."""
    with progress_bar(len(items), doing) as reached:
        for place, item in enumerate(items, 1):
            yield item
            reached(place)


@contextmanager
def progress_bar(total: int, doing: str) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error while a terminal watches; call what is yielded with what is done so far."""
    console = terminal(err=True)
    if total < 2 or not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(doing, total=total)
        yield lambda count: bars.update(task, completed=count)


@contextmanager
def working(doing: str, *, alone: bool = True) -> Iterator[None]:
    """Show on standard error that work goes on, while a terminal watches and no bar of `progress` says so already."""
    console = terminal(err=True)
    if not console.is_terminal or not alone:
        yield
        return
    with console.status(clean(doing)):
        yield


def bar(part: int, whole: int) -> str:
    """Return a bar as long as a part is of a whole; anything above nothing shows."""
    console = terminal()
    width = max(8, min(24, console.width // 7))
    eighths = round(width * 8 * part / whole) if whole else 0
    eighths = max(eighths, 1) if part else 0
    if not console.is_terminal:
        return "#" * max(eighths // 8, 1 if part else 0)
    full, rest = divmod(min(eighths, width * 8), 8)
    return "█" * full + " ▏▎▍▌▋▊▉"[rest].strip()


def number(value: int) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}"


def many(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not one."""
    ending = "" if count == 1 else "es" if noun.endswith(("ch", "s")) else "s"
    return f"{count:,} {noun}{ending}"


def share(part: float, whole: float) -> str:
    """Return a part of a whole in percent."""
    return f"{100 * part / whole:.1f}%" if whole else ""


def _plain(width: int) -> Console:
    from rich.console import Console

    return Console(width=width, color_system=None, force_terminal=False, highlight=False, markup=False, emoji=False)


def _print(console: Console, rendered: Table) -> None:
    """Print a table without the blanks that fill its last column."""
    with console.capture() as captured:
        console.print(rendered)
    for text in captured.get().splitlines():
        click.echo(text.rstrip(), color=console.is_terminal)


def _needed(headers: Sequence[str], rows: Sequence[Sequence[str]], *, wrap: bool = False) -> int:
    """Return the width from which on a table can be read; with `wrap` texts are broken between words."""
    from rich.cells import cell_len

    width_needed = 0
    for place, head in enumerate(headers):
        broad = max(map(cell_len, (head.lstrip(MARKS), *(row[place] for row in rows))))
        match head[:1]:
            case "*":
                width_needed += min(READABLE, broad)
            case "~" | "#":
                pass
            case ">":
                width_needed += broad
            case _:
                width_needed += _word(place, head, rows) if wrap else broad
    return width_needed + 2 * len(headers)


def _word(place: int, head: str, rows: Sequence[Sequence[str]]) -> int:
    """Return the width of the longest word of a column, of numbers the longest number."""
    from rich.cells import cell_len

    texts = (head.lstrip(MARKS), *(row[place] for row in rows))
    return max((cell_len(word) for text in texts for word in text.split()), default=0)


def _broken(headers: Sequence[str], rows: Sequence[Sequence[str]], title: str, styles: Sequence[str]) -> None:
    """Print a table that is too broad: figures as several tables with the first column in each, texts as blocks."""
    if any(head[:1] == "*" for head in headers[1:]):
        _stacked(headers, rows, title)
        return
    width = terminal().width
    groups: list[list[int]] = [[0]]
    for place in range(1, len(headers)):
        wider = [*groups[-1], place]
        part = [[row[each] for each in wider] for row in rows]
        if len(wider) > 2 and _needed([headers[each] for each in wider], part) > width:
            groups.append([0, place])
        else:
            groups[-1] = wider
    if len(groups) == 1:
        _stacked(headers, rows, title)
        return
    for number, group in enumerate(groups):
        part = [[row[each] for each in group] for row in rows]
        table([headers[each] for each in group], part, title="" if number else title, styles=styles)


def _stacked(headers: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    """Print each row as a block: a line for each cell that holds something, after the name of its column."""
    if title.strip():
        line(f"\n{title}", style="bold")
    for row in rows:
        line("")
        lines([(head.lstrip(MARKS), cell) for head, cell in zip(headers, row, strict=True) if cell and head[:1] != "#"])


def _table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str], *, wrap: bool = False, **look: Any
) -> Table:
    from rich.table import Table

    rendered = Table(pad_edge=False, **look)
    for place, head in enumerate(headers):
        mark = head[:1]
        rendered.add_column(
            head.lstrip(MARKS), justify="right" if mark == ">" else "left",
            no_wrap=mark == ">" or not (wrap or mark in ("*", "~", "#")),
            min_width=_word(place, head, rows) if wrap and mark not in ("*", "~", "#") else None,
            overflow="fold" if mark == "*" else "ellipsis", ratio=1 if mark in ("*", "~") else None,
            style="cyan" if mark == "#" else "",
        )  # fmt: skip
    for place, row in enumerate(rows):
        cells = [_cell(cell, head[:1]) for head, cell in zip(headers, row, strict=True)]
        rendered.add_row(*cells, style=styles[place] if place < len(styles) else "")
    return rendered


def _cell(text: str, mark: str) -> Text:
    from rich.text import Text

    match mark:
        case "~":
            return Text(text, no_wrap=True, overflow="ellipsis")
        case "#":
            return Text(text, no_wrap=True, overflow="crop")
        case _:
            return Text(text)
