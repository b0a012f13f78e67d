"""Runs as one HTML file: no network, no script, light and dark; and the same plots as SVG files."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from refold.replay import _charts as charts
from refold.replay._legend import MEANINGS
from refold.replay._run import NONE, Run
from refold.replay._summary import PolicySummary, summed
from refold.replay._tables import ReportTable, tables, verdict_table

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["page", "plots", "report"]

HEADROOM = 1.5  # of the largest prompt under a policy; above it doing nothing is not drawn
WITH_PLOTS = 2  # tables under the plots of a conversation: cost, and what was kept
OPEN = 6  # conversations that are shown unfolded
STYLE = (
    "body{margin:0 auto;max-width:1080px;padding:24px 20px 60px;background:var(--surface);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:36px 0 8px}"
    "p,figcaption{color:var(--muted);margin:4px 0 10px}figure{margin:14px 0}svg{width:100%;height:auto;display:block}"
    ".wide{overflow-x:auto;margin:0 0 18px}.words td,.words th{text-align:left}"
    "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}"
    "th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}"
    "th{color:var(--muted);font-weight:500}th:first-child,td:first-child{text-align:left}"
    "td.best{font-weight:700}td.best::before{content:'★ '}summary{cursor:pointer;font-weight:600;margin:26px 0 6px;"
    "overflow-wrap:anywhere}.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(440px,1fr));gap:12px}"
    ".one{max-width:760px}dt{font-weight:600}dd{margin:0 0 6px;color:var(--muted)}"
    "@media(max-width:520px){.pair{grid-template-columns:1fr}}"
)

BEST = ' class="best"'


def report(conversations: Sequence[Sequence[Run]]) -> str:
    """Return the report on the runs of each conversation as HTML."""
    rows, report_tables = summed(conversations), tables(conversations)
    calls = rows[0].calls if rows else 0
    noun = "conversation" if len(conversations) == 1 else "conversations"
    ordered = sorted(conversations, key=lambda runs: -runs[0].bill)
    intro = (
        f"{len(conversations):,} {noun}, {calls:,} calls. “{NONE}” is doing nothing. Errors are by bootstrap "
        "over conversations; ★ marks the best figure among the policies."
    )
    extra = [table] if (table := verdict_table(conversations)) else []
    details = [_conversation(runs, unfolded=place < OPEN) for place, runs in enumerate(ordered)]
    return page("Replay", intro, rows, [*report_tables, *extra], ["<h2>Conversations</h2>", *details])


def page(
    title: str, intro: str, rows: Sequence[PolicySummary], report_tables: Sequence[ReportTable],
    details: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return a report as HTML: a sentence or two of text, the plot of the policies, tables, and `details` as HTML."""
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(intro)}</p>",
        _one(_scatter(rows), "Quality against cost: up and to the left is better. Bars are standard errors."),
        *map(_titled, report_tables),
        *details,
        _legend(report_tables),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{charts.STYLE}{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def plots(conversations: Sequence[Sequence[Run]], palette: dict[str, str] | None = None) -> dict[str, str]:
    """Return each plot as an SVG file of its own, by its name."""
    plots = {"quality-against-cost": _scatter(summed(conversations))}
    for number, runs in enumerate(conversations, 1):
        plots[f"{number:03}-context"] = _context(runs)
        plots[f"{number:03}-cost"] = _cost(runs)
    return {name: charts.standalone(svg, palette) for name, svg in plots.items() if svg}


def _conversation(runs: Sequence[Run], *, unfolded: bool) -> str:
    name = escape(runs[0].file)
    return (
        f'<details{" open" if unfolded else ""}><summary>{name}</summary><div class="pair">'
        + _figure(
            _context(runs), f"Tokens of each prompt; dots are compactions. {NONE} ends at {runs[0].context[-1]:,}."
        )
        + _figure(_cost(runs), "US dollars so far, with summaries and what had to be read again.")
        + f"</div>{''.join(_table(table) for table in tables([runs])[:WITH_PLOTS])}</details>"
    )


def _context(runs: Sequence[Run]) -> str:
    peak = max((run.peak for run in runs if run.policy != NONE), default=runs[0].peak)
    series = [
        charts.ChartLine(
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
    series = [charts.ChartLine(run.policy, _color(place, run.policy), run.dollars) for place, run in enumerate(runs)]
    return charts.lines(series, title="Cost over time", unit=charts.dollars)


def _scatter(rows: Sequence[PolicySummary]) -> str:
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


def _titled(table: ReportTable) -> str:
    return f"<h2>{escape(table.title)}</h2>{_table(table)}"


def _legend(report_tables: Sequence[ReportTable]) -> str:
    """Return what the lines of the tables mean, folded."""
    names = dict.fromkeys(line.name for table in report_tables for line in table.lines if line.name in MEANINGS)
    entries = "".join(f"<dt>{escape(name)}</dt><dd>{escape(MEANINGS[name])}</dd>" for name in names)
    return f"<details><summary>What the lines mean</summary><dl>{entries}</dl></details>" if entries else ""


def _one(svg: str, caption: str) -> str:
    return f'<div class="one">{_figure(svg, caption)}</div>'


def _table(table: ReportTable) -> str:
    """Return a table as HTML, without its title."""
    headers = "".join(f"<th>{escape(head)}</th>" for head in table.headers)
    lines = []
    for line in table.lines:
        cells = "".join(f"<td{BEST if cell.best else ''}>{escape(cell.text)}</td>" for cell in line.cells)
        lines.append(f"<tr><td>{escape(line.name)}</td>{cells}</tr>")
    body = f"<thead><tr><th></th>{headers}</tr></thead><tbody>{''.join(lines)}</tbody>"
    kind = "wide words" if table.words else "wide"
    return f'<p>{escape(table.note)}</p><div class="{kind}"><table>{body}</table></div>'
