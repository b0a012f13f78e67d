"""Runs as one HTML file: no network, no script, light and dark; and the same plots as SVG files."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from refold.replay import charts
from refold.replay.run import NONE, Run
from refold.replay.summary import Figure, Row, Verdict, summed, verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["plots", "report"]

HEADROOM = 1.5  # of the largest prompt under a policy; above it doing nothing is not drawn
OPEN = 6  # conversations that are shown unfolded
STYLE = (
    "body{margin:0 auto;max-width:1080px;padding:24px 20px 60px;background:var(--surface);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:36px 0 8px}"
    "p,figcaption{color:var(--muted);margin:4px 0 10px}figure{margin:14px 0}svg{width:100%;height:auto;display:block}"
    ".wide{overflow-x:auto;margin:0 0 18px}.words td,.words th{text-align:left}"
    "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}"
    "th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}"
    "th{color:var(--muted);font-weight:500}th:first-child,td:first-child{text-align:left}"
    "td.best{font-weight:700}td.best::after{content:' ★'}summary{cursor:pointer;font-weight:600;margin:26px 0 6px;"
    "overflow-wrap:anywhere}.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(440px,1fr));gap:12px}"
    ".one{max-width:760px}"
    "@media(max-width:520px){.pair{grid-template-columns:1fr}}"
)

Column = tuple[str, "Callable[[Row], float | None]", "Callable[[Row], str]", int]  # 1: more is better, -1: less is


def report(conversations: Sequence[Sequence[Run]]) -> str:
    """Return the report on the runs of each conversation as HTML."""
    rows = summed(conversations)
    calls = rows[0].calls if rows else 0
    ordered = sorted(conversations, key=lambda runs: -runs[0].bill)
    body = [
        "<h1>Replay</h1>",
        f"<p>{len(conversations):,} conversations, {calls:,} calls. “{NONE}” is doing nothing. Errors are by bootstrap "
        "over conversations; ★ marks the best figure of a column among the policies.</p>",
        _table(rows, COST),
        _table(rows, _kept(rows)),
        _one(_scatter(rows), "Quality against cost: up and to the left is better. Bars are standard errors."),
        _told(verdicts(conversations)),
        "<h2>Conversations</h2>",
        *(_conversation(runs, shown=place < OPEN) for place, runs in enumerate(ordered)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Replay</title><style>{charts.STYLE}{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def plots(conversations: Sequence[Sequence[Run]]) -> dict[str, str]:
    """Return each plot as an SVG file of its own, by the name of the file."""
    made = {"quality-against-cost.svg": _scatter(summed(conversations))}
    for number, runs in enumerate(conversations, 1):
        made[f"{number:03}-context.svg"] = _context(runs)
        made[f"{number:03}-cost.svg"] = _cost(runs)
    return {name: charts.standalone(svg) for name, svg in made.items() if svg}


def _conversation(runs: Sequence[Run], *, shown: bool) -> str:
    name, rows = escape(runs[0].file), summed([runs])
    return (
        f'<details{" open" if shown else ""}><summary>{name}</summary><div class="pair">'
        + _figure(
            _context(runs), f"Tokens of each prompt; dots are compactions. {NONE} ends at {runs[0].context[-1]:,}."
        )
        + _figure(_cost(runs), "US dollars so far, what had to be read again included.")
        + f"</div>{_table(rows, COST)}{_table(rows, _kept(rows))}</details>"
    )


def _context(runs: Sequence[Run]) -> str:
    peak = max((run.peak for run in runs if run.policy != NONE), default=runs[0].peak)
    series = [
        charts.Line(
            run.policy, _color(place, run.policy), _below(run.context, peak * HEADROOM),
            [(each.call, f"{each.before:,} → {each.after:,} tokens") for each in run.compactions],
        )
        for place, run in enumerate(runs)
    ]  # fmt: skip
    window = runs[0].window
    limit = (float(window), f"window {charts.tokens(window)}")
    return charts.lines(series, title="Context over time", unit=charts.tokens, limit=limit)


def _below(context: Sequence[int], most: float) -> Sequence[int]:
    """Return a line up to where it leaves the plot for good: doing nothing would press all others flat."""
    last = next((call for call in range(len(context) - 1, -1, -1) if context[call] <= most), 0)
    return context[: last + 1]


def _cost(runs: Sequence[Run]) -> str:
    series = [charts.Line(run.policy, _color(place, run.policy), run.dollars) for place, run in enumerate(runs)]
    return charts.lines(series, title="Cost over time", unit=charts.dollars)


def _scatter(rows: Sequence[Row]) -> str:
    """Return recall against the change of the bill; nothing where no policy was judged."""
    dots = [
        charts.Dot(row.policy, _color(place, row.policy), row.change.value, recall.value,
                   row.change.error or 0.0, recall.error or 0.0)
        for place, row in enumerate(rows)
        if (recall := row.quality.get("recall")) is not None
    ]  # fmt: skip
    if not dots:
        return ""
    across = "bill against doing nothing"
    return charts.points(dots, title="Quality against cost", across=across, upward="recall of what the rest needed")


def _color(place: int, policy: str) -> int:
    return charts.GREY if policy == NONE else 1 + (place - 1) % charts.COLORS


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>" if svg else ""


def _one(svg: str, caption: str) -> str:
    return f'<div class="one">{_figure(svg, caption)}</div>'


def _table(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    if not columns:
        return ""
    heads = "".join(f"<th>{name}</th>" for name, *_ in columns)
    best = {name: _best(rows, value, sign) for name, value, _, sign in columns if sign}
    lines = []
    for row in rows:
        cells = "".join(
            f'<td class="best">{said(row)}</td>'
            if row.policy != NONE and name in best and value(row) is not None and value(row) == best[name]
            else f"<td>{said(row)}</td>"
            for name, value, said, _ in columns
        )
        lines.append(f"<tr><td>{escape(row.policy)}</td>{cells}</tr>")
    head, body = f"<thead><tr><th>policy</th>{heads}</tr></thead>", f"<tbody>{''.join(lines)}</tbody>"
    return f'<div class="wide"><table>{head}{body}</table></div>'


def _best(rows: Sequence[Row], value: Callable[[Row], float | None], sign: int) -> float | None:
    """Return the best value among the policies, None where all are alike."""
    found = [each for row in rows if row.policy != NONE and (each := value(row)) is not None]
    return None if len(set(found)) < 2 else max(found) if sign > 0 else min(found)


def _kept(rows: Sequence[Row]) -> list[Column]:
    """Return the columns on what was kept; none where nothing was compacted."""
    names = dict.fromkeys(name for row in rows for name in row.quality)
    return [(name, _value(name), _words(name), -1 if name == "lost" else 1) for name in names]


def _value(name: str) -> Callable[[Row], float | None]:
    return lambda row: round(found.value, 3) if (found := row.quality.get(name)) else None


def _words(name: str) -> Callable[[Row], str]:
    return lambda row: _said(row.quality.get(name))


def _said(figure: Figure | None, *, sign: bool = False) -> str:
    if figure is None:
        return ""
    value = f"{100 * figure.value:{'+' if sign else ''}.1f}%"
    return value if figure.error is None else f"{value} ± {100 * figure.error:.1f}"


COST: tuple[Column, ...] = (
    ("compactions", lambda row: row.compactions, lambda row: f"{row.compactions:,}", 0),
    ("mean context", lambda row: row.mean, lambda row: f"{row.mean:,}", -1),
    ("peak", lambda row: row.peak, lambda row: f"{row.peak:,}", -1),
    ("US$ calls", lambda row: row.dollars, lambda row: f"{row.dollars:,.2f}", -1),
    ("US$ read again", lambda row: row.refetch, lambda row: f"{row.refetch:,.2f}", -1),
    ("US$ in all", lambda row: row.bill, lambda row: f"{row.bill:,.2f}", -1),
    ("change", lambda row: row.change.value, lambda row: _said(row.change, sign=True), -1),
    ("US$ cache damage", lambda row: row.damage, lambda row: f"{row.damage:,.2f}", -1),
    ("too long", lambda row: row.over, lambda row: f"{row.over:,}", 0),
)


def _told(found: Sequence[Verdict]) -> str:
    if not found:
        return ""
    rows = "".join(
        f"<tr><td>{each.figure}</td><td>{escape(each.best)}</td><td>{escape(each.other)}</td><td>{each.said}</td></tr>"
        for each in found
    )
    return (
        '<h2>Can they be told apart?</h2><div class="wide words"><table><thead><tr><th>figure</th><th>best</th>'
        f"<th>than</th><th>is it so</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
