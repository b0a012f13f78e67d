"""The picture: one line a row, a dot for each goal; what is needed later on the left, standing instructions on the right."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from msgspec import Struct

from refold.replay._charts import standalone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMES, PANEL, GAP = 290, 300, 46  # pixels across
TOP, LINE, BOTTOM = 62, 21, 40  # pixels down
RADII = {"10%": 3.0, "25%": 4.5, "50%": 6.0}  # so that dots on one place are all seen
COLORS = {"10%": 3, "25%": 1, "50%": 2}  # classes of refold.replay._charts


class Line(Struct, frozen=True):
    """One row: its name, whether it is a policy of refold, and shares by goal for each panel."""

    name: str
    ours: bool
    panels: Sequence[Mapping[str, float]]


def drawn(lines: Sequence[Line], titles: Sequence[str], title: str, said: str) -> str:
    """Return the picture as a file of SVG."""
    height = TOP + LINE * len(lines) + BOTTOM
    width = NAMES + len(titles) * (PANEL + GAP)
    made: list[str] = []
    for place, heading in enumerate(titles):
        left = NAMES + place * (PANEL + GAP)
        made.append(f'<text class="name" x="{left}" y="20" style="font-weight:600">{escape(heading)}</text>')
        for tick in range(0, 101, 25):
            x = left + PANEL * tick / 100
            made.append(f'<line class="grid" x1="{x:.0f}" x2="{x:.0f}" y1="{TOP - 12}" y2="{height - BOTTOM}"/>')
            made.append(f'<text x="{x:.0f}" y="{height - BOTTOM + 18}" text-anchor="middle">{tick}%</text>')
    for place, goal in enumerate(COLORS):
        x = NAMES + place * 125
        made.append(f'<circle class="f{COLORS[goal]}" cx="{x + 5}" cy="36" r="{RADII[goal]}"/>')
        made.append(f'<text x="{x + 14}" y="40">{goal} of the size</text>')
    for place, line in enumerate(lines):
        made += _row(line, TOP + LINE * place + 4)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    told = f"<title>{escape(title)}</title>\n<desc>{escape(said)}</desc>"
    return standalone(f"{head}{told}{''.join(made)}</svg>")


def _row(line: Line, y: int) -> list[str]:
    weight = ' style="font-weight:700"' if line.ours else ""
    made = [f'<text class="name" x="{NAMES - 14}" y="{y + 4}" text-anchor="end"{weight}>{escape(line.name)}</text>']
    for place, shares in enumerate(line.panels):
        left = NAMES + place * (PANEL + GAP)
        if not shares:
            made.append(f'<text x="{left + 6}" y="{y + 4}">–</text>')
            continue
        low, high = min(shares.values()), max(shares.values())
        ends = f'x1="{left + PANEL * low:.1f}" x2="{left + PANEL * high:.1f}"'
        made.append(f'<line class="grid" {ends} y1="{y}" y2="{y}" stroke-width="2"/>')
        for goal, share in sorted(shares.items(), key=lambda each: -RADII[each[0]]):
            told = escape(f"{line.name}, {goal}: {share:.0%}")
            place_of = f'cx="{left + PANEL * share:.1f}" cy="{y}" r="{RADII[goal]}"'
            made.append(f'<circle class="dot f{COLORS[goal]}" {place_of}><title>{told}</title></circle>')
    return made
