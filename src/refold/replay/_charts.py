"""Plots as SVG: lines over calls with marks on them, and points with names; light and dark, without a script."""

from __future__ import annotations

import re
from html import escape
from math import floor, log10
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "DARK",
    "LIGHT",
    "STYLE",
    "ChartLine",
    "Dot",
    "dollars",
    "lines",
    "percent",
    "points",
    "standalone",
    "tokens",
]

WIDTH, HEIGHT = 600, 290
LEFT, RIGHT, TOP, BOTTOM = 58, 132, 14, 40
LABEL = 15  # pixels between two names
MOST = 700  # points of a line; more than a screen shows
FEW, FEW_DOT, MANY_DOT = 40, 3.5, 2  # compactions that are marked large; their radius; the radius of more
VARIABLE = re.compile(r"var\(--(\w+)\)")
GREY, COLORS = 0, 7  # class of what is only a comparison; how many others there are

# The colors differ in lightness as well as in hue, and every line has its name next to it.
_LIGHT = ("#6b6a65", "#1f6fd0", "#13895c", "#b87400", "#6f4fd0", "#cc3a55", "#0b7f8e", "#9c4672")
_DARK = ("#a3a29c", "#6aa9f5", "#45c893", "#e8b04a", "#ab94f5", "#f48796", "#4dc3d2", "#e095bb")


def _palette(colors: Sequence[str], ink: str, muted: str, grid: str, surface: str) -> dict[str, str]:
    named = {f"c{place}": color for place, color in enumerate(colors)}
    return named | {"ink": ink, "muted": muted, "grid": grid, "surface": surface}


LIGHT = _palette(_LIGHT, "#1c1c1a", "#5d5c57", "#e3e2dc", "#fcfcfa")
DARK = _palette(_DARK, "#ecebe6", "#aaa9a3", "#393835", "#1a1a19")
_RULES = (
    "svg text{font:12px system-ui,sans-serif;fill:var(--muted)}svg text.name{fill:var(--ink)}"
    "svg .grid{stroke:var(--grid);stroke-width:1}svg .line{fill:none;stroke-width:2;stroke-linejoin:round}"
    "svg .dot{stroke:var(--surface);stroke-width:1.5}svg .limit{stroke:var(--muted);stroke-dasharray:5 4}"
    + "".join(f"svg .s{n}{{stroke:var(--c{n})}}svg .f{n}{{fill:var(--c{n})}}" for n in range(COLORS + 1))
    + "svg .s0{stroke-dasharray:2 3}"
)


def _root(palette: dict[str, str]) -> str:
    return "".join(f"--{name}:{color};" for name, color in palette.items())


STYLE = (
    f":root{{color-scheme:light dark;{_root(LIGHT)}}}"
    f"@media(prefers-color-scheme:dark){{:root{{{_root(DARK)}}}}}{_RULES}"
)


class ChartLine(Struct, frozen=True):
    """A line: its name, the number of its color, its values over calls, and the calls to mark with what to say."""

    name: str
    color: int
    values: Sequence[float]
    marks: Sequence[tuple[int, str]] = ()


class Dot(Struct, frozen=True):
    """A named point, with errors to either side where they are known."""

    name: str
    color: int
    x: float
    y: float
    x_error: float = 0.0
    y_error: float = 0.0


def lines(
    series: Sequence[ChartLine], *, title: str, unit: Callable[[float], str], limit: tuple[float, str] | None = None
) -> str:
    """Return lines over calls as SVG; `limit` is a level with its name, shown where it lies within the plot."""
    count = max((len(line.values) for line in series), default=1)
    top = max((max(line.values, default=0.0) for line in series), default=1.0) or 1.0
    ticks = _ticks(0.0, top)
    top = max(top, ticks[-1])
    x, y = _scale(0, max(count - 1, 1), LEFT, WIDTH - RIGHT), _scale(0.0, top, HEIGHT - BOTTOM, TOP)
    parts = [_level(y(tick), unit(tick)) for tick in ticks]
    parts += [
        f'<text x="{x(call):.0f}" y="{HEIGHT - 22}" text-anchor="middle">{call:,.0f}</text>'
        for call in _ticks(0, count - 1)
        if call <= count - 1
    ]
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 4}" text-anchor="middle">call</text>')
    if limit and limit[0] <= top:
        at = y(limit[0])
        parts.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT + 4}" y="{at - 4:.1f}">{escape(limit[1])}</text>')
    for line in series:
        drawn = " ".join(f"{x(call):.1f},{y(line.values[call]):.1f}" for call in _drawn_points(line))
        parts.append(
            f'<polyline class="line s{line.color}" points="{drawn}"><title>{escape(line.name)}</title></polyline>'
        )
    for line in series:
        radius = FEW_DOT if len(line.marks) <= FEW else MANY_DOT
        for call, text in line.marks:
            place = f'cx="{x(call):.1f}" cy="{y(line.values[call]):.1f}" r="{radius}"'
            title = escape(f"{line.name}, call {call + 1}: {text}")
            parts.append(f'<circle class="dot f{line.color}" {place}><title>{title}</title></circle>')
    parts += _names([(line.name, line.color, y(line.values[-1])) for line in series if line.values])
    return _svg(title, parts)


def points(dots: Sequence[Dot], *, title: str, across: str, upward: str) -> str:
    """Return named points as SVG, both axes in percent."""
    low_x, high_x = _span([(dot.x - dot.x_error, dot.x + dot.x_error) for dot in dots], -1.0, 9.0)
    low_y, high_y = _span([(dot.y - dot.y_error, dot.y + dot.y_error) for dot in dots], 0.0, 1.0)
    x, y = _scale(low_x, high_x, LEFT, WIDTH - RIGHT), _scale(low_y, high_y, HEIGHT - BOTTOM, TOP + LABEL)
    parts = [_level(y(tick), percent(tick)) for tick in _ticks(low_y, high_y) if low_y <= tick <= high_y]
    parts += [
        f'<text x="{x(tick):.0f}" y="{HEIGHT - 22}" text-anchor="middle">{percent(tick)}</text>'
        for tick in _ticks(low_x, high_x)
        if low_x <= tick <= high_x
    ]
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 4}" text-anchor="middle">{escape(across)}</text>'
    )
    parts.append(f'<text x="{LEFT - 40}" y="{TOP}">{escape(upward)}</text>')
    for dot in dots:
        left, right = x(max(dot.x - dot.x_error, low_x)), x(min(dot.x + dot.x_error, high_x))
        lower, upper = y(max(dot.y - dot.y_error, low_y)), y(min(dot.y + dot.y_error, high_y))
        for one, two in (((left, y(dot.y)), (right, y(dot.y))), ((x(dot.x), lower), (x(dot.x), upper))):
            parts.append(
                f'<line class="s{dot.color}" x1="{one[0]:.1f}" y1="{one[1]:.1f}" x2="{two[0]:.1f}" y2="{two[1]:.1f}"/>'
            )
    for dot in dots:
        text = escape(f"{dot.name}: {percent(dot.y)} at {percent(dot.x)}")
        place = f'cx="{x(dot.x):.1f}" cy="{y(dot.y):.1f}"'
        parts.append(f'<circle class="dot f{dot.color}" {place} r="6"><title>{text}</title></circle>')
    parts += _names([(dot.name, dot.color, y(dot.y)) for dot in dots])
    return _svg(title, parts)


def standalone(svg: str, palette: dict[str, str] | None = None) -> str:
    """Return a plot as a file of its own, with its style and background; in one palette, or as the reader's system is.

    In one palette it has no variables, which not every program that draws SVG understands.
    """
    head, _, body = svg.partition(">")
    ground = '<rect width="100%" height="100%" fill="var(--surface)"/>'
    if palette is None:
        return f"{head}><style>{STYLE}</style>{ground}{body}\n"
    style, ground = (VARIABLE.sub(lambda match: palette[match[1]], text) for text in (_RULES, ground))
    return f"{head}><style>{style}</style>{ground}{body}\n"


def tokens(value: float) -> str:
    """Return tokens in short: 120k."""
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"


def dollars(value: float) -> str:
    """Return US dollars in short."""
    return f"${value:,.6g}"


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.0f}%"


def _svg(title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )


def _level(at: float, text: str) -> str:
    return (
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{escape(text)}</text>'
    )


def _names(wanted: Sequence[tuple[str, int, float]]) -> list[str]:
    """Return names next to the plot, each at the height of what it names, none on top of another."""
    placed: list[tuple[str, int, float, float]] = []
    for name, color, at in sorted(wanted, key=lambda each: each[2]):
        free = placed[-1][3] + LABEL if placed else float(TOP)
        placed.append((name, color, at, max(at, free)))
    over = max(placed[-1][3] - (HEIGHT - 8), 0) if placed else 0
    parts: list[str] = []
    below = float("inf")
    for name, color, at, lowest in reversed(placed):
        height = min(lowest, below - LABEL) if over else lowest
        height = min(height, HEIGHT - 8)
        below = height
        edge = WIDTH - RIGHT
        bent = f"{edge + 4},{at:.1f} {edge + 16},{height:.1f} {edge + 26},{height:.1f}"
        parts.append(f'<polyline class="line s{color}" points="{bent}"/>')
        parts.append(f'<text class="name" x="{edge + 30}" y="{height + 4:.1f}">{escape(name[:16])}</text>')
    return parts


def _drawn_points(line: ChartLine) -> list[int]:
    """Return which calls of a line are drawn: all of a short one, else evenly many, with every turn at a mark."""
    count = len(line.values)
    if count <= MOST:
        return list(range(count))
    chosen = {place * (count - 1) // (MOST - 1) for place in range(MOST)}
    for call, _ in line.marks:
        chosen |= {call, max(call - 1, 0)}
    return sorted(chosen)


def _scale(low: float, high: float, start: float, stop: float) -> Callable[[float], float]:
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (stop - start)


def _span(spans: Sequence[tuple[float, float]], least: float, most: float) -> tuple[float, float]:
    """Return what an axis shows: all spans and a little air, within what can be."""
    low, high = min((span[0] for span in spans), default=0.0), max((span[1] for span in spans), default=1.0)
    air = max((high - low) * 0.08, 0.02)
    return max(low - air, least), min(high + air, most)


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers from the lowest up to at least the highest."""
    raw = (high - low) / 4 or 1.0
    size = 10 ** floor(log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999)
    first = floor(low / step)
    ticks = [round(first * step, 10)]
    while ticks[-1] < high:
        first += 1
        ticks.append(round(first * step, 10))
    return ticks
