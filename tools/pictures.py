"""Pictures for the docs, as SVG: a list of messages before and after a plan, and the whole process.

Each follows the reader's light or dark setting, needs no font from outside, and carries a title and a description.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from refold.core.counting import Counter
from refold.core.edits import Hide, Insert, fold
from refold.core.messages import Message, MessageId, ToolCall, ToolResult
from refold.core.plan import Plan

__all__ = ["Bar", "before_and_after", "process"]

FONT = 'ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif'
ROLES = ("system", "user", "assistant", "tool")
LIGHT = {
    "page": "#ffffff", "edge": "#d0d7de", "ink": "#1f2328", "soft": "#59636e",
    "system": "#e6e8eb #6b7280", "user": "#d8e8ff #2563eb", "assistant": "#e8e1ff #7c3aed", "tool": "#fdeecb #c77700",
}  # fmt: skip
DARK = {
    "page": "#0d1117", "edge": "#30363d", "ink": "#e6edf3", "soft": "#9198a1",
    "system": "#2b3038 #9ca3af", "user": "#173258 #6aaeff", "assistant": "#30255a #a98bff", "tool": "#43320f #f0b429",
}  # fmt: skip

WIDTH, COLUMN, MARGIN = 760, 292, 24
LEFT, RIGHT = MARGIN, WIDTH - MARGIN - COLUMN
TOP, GAP, LEAST, HEIGHT = 74, 3, 18, 720


class Bar(NamedTuple):
    """One message in a column: how it is drawn is its state, "kept", "gone", "shorter" or "new"."""

    id: MessageId
    role: str
    what: str
    tokens: int
    state: str


class Placed(NamedTuple):
    """A bar with its place."""

    bar: Bar
    top: float
    height: float

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height


def before_and_after(plan: Plan, messages: Sequence[Message], counter: Counter) -> str:
    """Return two columns, the messages before and after a plan, one bar each, as high as its tokens are many."""
    before, after, into = _bars(plan, messages, counter)
    scale = _scale([bar.tokens for bar in before])
    left, right = _placed(before, scale), _placed(after, scale)
    low = max(left[-1].bottom, right[-1].bottom if right else TOP)
    saved = f"{plan.sizes.saved:,} tokens saved ({_share(plan.sizes.saved, plan.sizes.before)})"
    title = f"The list before and after one run of the policy {plan.policy}"
    parts = [
        _heading(LEFT, "before", len(before), plan.sizes.before),
        _heading(RIGHT, "after", len(after), plan.sizes.after),
        *_ribbons(left, right, into),
        *(_bar(LEFT, placed) for placed in left),
        *(_bar(RIGHT, placed) for placed in right),
        _legend(low + 26),
    ]
    if right and low - right[-1].bottom > 30:
        parts.append(f'<text class="soft" x="{RIGHT}" y="{right[-1].bottom + 20:.1f}">{escape(saved)}</text>')
    return _svg(WIDTH, low + 52, title, f"{_said(before, after)} {saved}.", parts)


def _bars(
    plan: Plan, messages: Sequence[Message], counter: Counter
) -> tuple[list[Bar], list[Bar], dict[MessageId, MessageId]]:
    """Return the bars of both columns, and which new message each one that leaves goes into."""
    view = fold(messages, [plan.edits], [plan.base.tip])
    sizes = {message.id: counter.message(message) for message in messages}
    stays = {message.id: message for message in view}
    names = {call.call_id: call.name for message in messages for call in message.calls}
    into: dict[MessageId, MessageId] = {}
    for step in plan.steps:
        edits = plan.edits[step.start : step.stop]
        made = [edit.message.id for edit in edits if isinstance(edit, Insert) and edit.message.note]
        for edit in edits:
            if isinstance(edit, Hide) and made:
                into |= dict.fromkeys(edit.messages, made[0])
    before = [
        Bar(m.id, m.role, _what(m, names), sizes[m.id], "gone" if m.id not in stays else "kept") for m in messages
    ]
    after = []
    for message in view:
        size, was = counter.message(message), sizes.get(message.id)
        state = "new" if was is None else "shorter" if message.patches and size < was else "kept"
        after.append(Bar(message.id, message.role, _what(message, names), size, state))
    return before, after, into


def _what(message: Message, names: dict[str, str]) -> str:
    """Return what a message is besides its role: the note of one that we made, else the tools it calls or answers."""
    if message.note is not None:
        return message.note.kind
    found = [part.name for part in message.parts if isinstance(part, ToolCall)]
    found += [part.name or names.get(part.call_id, "") for part in message.parts if isinstance(part, ToolResult)]
    return ", ".join(f"{name} ×{found.count(name)}" if found.count(name) > 1 else name for name in dict.fromkeys(found))


def _scale(tokens: Sequence[int]) -> float:
    """Return points a token, so that the column is about `HEIGHT` high and no bar lower than `LEAST`."""
    low, high = 0.0, float(HEIGHT)
    for _ in range(60):
        middle = (low + high) / 2
        if sum(max(LEAST, size * middle) for size in tokens) > HEIGHT:
            high = middle
        else:
            low = middle
    return low


def _placed(bars: Sequence[Bar], scale: float) -> list[Placed]:
    placed: list[Placed] = []
    top = float(TOP)
    for bar in bars:
        height = max(LEAST, bar.tokens * scale)
        placed.append(Placed(bar, top, height))
        top += height + GAP
    return placed


def _bar(x: int, placed: Placed) -> str:
    bar, top, height = placed
    y, h, middle = f"{top:.1f}", f"{height:.1f}", f"{top + height / 2 + 4:.1f}"
    label = " · ".join(filter(None, (bar.role, _cut(bar.what, 26), f"{bar.tokens:,}")))
    box = f'x="{x}" y="{y}" width="{COLUMN}" height="{h}" rx="3"'
    kind = f'class="{bar.role} {bar.state}"'
    hatch = f'<rect {box} fill="url(#hatch)" class="line-{bar.role}"/>' if bar.state == "shorter" else ""
    strip = f'<rect x="{x}" y="{y}" width="4" height="{h}" rx="2" class="strip-{bar.role} {bar.state}"/>'
    text = f'<text x="{x + 13}" y="{middle}" class="{bar.state}">{escape(label)}</text>'
    return f"<rect {box} {kind}/>{hatch}{strip}{text}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _ribbons(left: Sequence[Placed], right: Sequence[Placed], into: dict[MessageId, MessageId]) -> Iterable[str]:
    """Yield a ribbon from each bar that stays to itself, and from each run of bars that leave to what replaces them."""
    there = {placed.bar.id: placed for placed in right}
    for placed in left:
        if placed.bar.id in there:
            yield _ribbon(placed.top, placed.bottom, there[placed.bar.id], f"ribbon-{placed.bar.role}")
    run: list[Placed] = []
    for each in (*left, None):
        target = into.get(each.bar.id) if each is not None and each.bar.state == "gone" else None
        if run and (target is None or target != into[run[0].bar.id]):
            if (end := there.get(into[run[0].bar.id])) is not None:
                yield _ribbon(run[0].top, run[-1].bottom, end, "ribbon-gone")
            run = []
        if each is not None and target is not None:
            run.append(each)


def _ribbon(top: float, bottom: float, end: Placed, name: str) -> str:
    start, stop, bend = LEFT + COLUMN, RIGHT, (LEFT + COLUMN + RIGHT) // 2
    path = (
        f"M{start} {top:.1f}C{bend} {top:.1f} {bend} {end.top:.1f} {stop} {end.top:.1f}"
        f"V{end.bottom:.1f}C{bend} {end.bottom:.1f} {bend} {bottom:.1f} {start} {bottom:.1f}Z"
    )
    return f'<path d="{path}" class="{name}"/>'


def _heading(x: int, name: str, count: int, tokens: int) -> str:
    said = f"{count} {'message' if count == 1 else 'messages'} · {tokens:,} tokens"
    return f'<text x="{x}" y="36" class="head">{name}</text><text x="{x}" y="56" class="soft">{said}</text>'


def _legend(y: float) -> str:
    named = (("kept", "unchanged"), ("shorter", "shortened or cleared"), ("gone", "left the view"), ("new", "inserted"))
    made, x = [], float(LEFT)
    for state, words in named:
        box = f'x="{x:.0f}" y="{y - 10:.1f}" width="22" height="13" rx="2"'
        hatch = f'<rect {box} fill="url(#hatch)" class="line-tool"/>' if state == "shorter" else ""
        made.append(f'<rect {box} class="tool {state}"/>{hatch}')
        made.append(f'<text x="{x + 29:.0f}" y="{y + 1:.1f}" class="soft">{words}</text>')
        x += 52 + 6.6 * len(words)
    return "".join(made)


def _said(before: Sequence[Bar], after: Sequence[Bar]) -> str:
    gone = sum(bar.state == "gone" for bar in before)
    shorter = sum(bar.state == "shorter" for bar in after)
    new = [bar.what for bar in after if bar.state == "new"]
    inserted = f"{len(new)} inserted ({', '.join(new)})" if new else "none inserted"
    return (
        f"Of {len(before)} messages {gone} left the view, {shorter} were shortened or cleared, "
        f"{inserted}; {len(after)} are sent."
    )


def _share(part: int, whole: int) -> str:
    return f"{round(100 * part / whole)} %" if whole else "0 %"


def _colors(palette: dict[str, str]) -> str:
    rules = [
        f".page{{fill:{palette['page']};stroke:{palette['edge']}}}",
        f"text{{fill:{palette['ink']}}}.soft{{fill:{palette['soft']}}}.edge{{stroke:{palette['soft']}}}"
        f".arrow{{fill:{palette['soft']}}}",
        f"#hatch path{{stroke:{palette['ink']}}}.ribbon-gone{{fill:{palette['soft']}}}",
    ]
    for role in ROLES:
        tint, strong = palette[role].split()
        rules.append(
            f".{role}{{fill:{tint};stroke:{tint}}}.strip-{role}{{fill:{strong}}}.ribbon-{role}{{fill:{strong}}}"
            f".line-{role}{{stroke:{strong}}}.{role}.gone,.{role}.new{{stroke:{strong}}}"
        )
    return "".join(rules)


STYLE = (
    f"text{{font:12px {FONT}}}.head{{font:600 15px {FONT}}}.page{{stroke-width:1}}"
    ".gone{fill-opacity:.18;stroke-dasharray:3 3;stroke-opacity:.7}text.gone{fill-opacity:.6;stroke:none}"
    ".new{stroke-width:2}text.new{font-weight:600;stroke:none}text.shorter,text.kept{stroke:none}"
    '[class^="strip"]{stroke:none}[class^="ribbon"]{fill-opacity:.13}.ribbon-gone{fill-opacity:.09}'
    "#hatch path{stroke-opacity:.22;stroke-width:2}.edge{fill:none;stroke-width:1.5}.dash{stroke-dasharray:4 4}"
    f".small{{font:11px {FONT}}}"
)


def _svg(width: int, height: float, title: str, said: str, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" width="{width}" '
        f'height="{height:.0f}" role="img" aria-labelledby="title said">\n'
        f'<title id="title">{escape(title)}</title>\n<desc id="said">{escape(said)}</desc>\n'
        f"<style>{STYLE}{_colors(LIGHT)}@media (prefers-color-scheme:dark){{{_colors(DARK)}}}</style>\n"
        '<defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path d="M0 0V7"/></pattern><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8Z" class="arrow"/></marker></defs>\n'
        f'<rect class="page" x=".5" y=".5" width="{width - 1}" height="{height - 1:.0f}" rx="8"/>\n{body}\n</svg>\n'
    )


BOXES = (  # column, row, width in columns, role for the color, first line, second line
    (0, 0, 1, "user", "messages in", "the provider's own"),
    (1, 0, 1, "system", "transcript", "what was said, only grows"),
    (2, 0, 1, "assistant", "view", "what the model would see"),
    (3, 0, 1, "tool", "policy", "steps: stage + when"),
    (3, 1, 1, "tool", "plan", "rewrite, hide, insert"),
    (2, 1, 1, "assistant", "view", "transcript + plans"),
    (1, 1, 1, "system", "proof", "it fits; no rule is broken"),
    (0, 1, 1, "user", "messages out", "untouched: same objects"),
    (3, 2, 1, "tool", "JSON", "print, store, apply again"),
    (2, 2, 1, "assistant", "rewind", "the same fold, fewer plans"),
    (3, -1, 1, "user", "outside", "summary, file, archive, …"),
)
STEP_X, STEP_Y, BOX_W, BOX_H = 216, 92, 176, 54
ARROWS = (  # from, to, words
    ((0, 0), (1, 0), "read"),
    ((1, 0), (2, 0), "fold"),
    ((2, 0), (3, 0), "due"),
    ((3, 0), (3, 1), "edits"),
    ((3, 1), (2, 1), "fold"),
    ((2, 1), (1, 1), "write"),
    ((1, 1), (0, 1), ""),
    ((3, 1), (3, 2), ""),
    ((2, 1), (2, 2), ""),
)


def process() -> str:
    """Return the whole process: messages in, transcript, view, policy, plan, view, messages out."""
    width, height = 2 * MARGIN + 3 * STEP_X + BOX_W, 2 * MARGIN + 3 * STEP_Y + BOX_H
    parts = [_box(*box) for box in BOXES]
    parts += [_arrow(start, stop, words) for start, stop, words in ARROWS]
    x, top, bottom = _x(3) + BOX_W // 2, _y(-1) + BOX_H, _y(0)
    for shift, ends, words, anchor in ((-14, (bottom, top), "needs", "end"), (14, (top, bottom), "answers", "start")):
        at = x + shift
        parts.append(f'<path class="edge dash" d="M{at} {ends[0]}V{ends[1]}" marker-end="url(#tip)"/>')
        side = at - 7 if anchor == "end" else at + 7
        parts.append(
            f'<text class="soft" x="{side}" y="{(top + bottom) // 2 + 4}" text-anchor="{anchor}">{words}</text>'
        )
    said = (
        "Native messages are read into a transcript. Folding the plans in force over it gives the view. When it is "
        "due, the steps of a policy turn the view into a plan of edits, asking the outside for summaries, files, an "
        "archive or a count. Folding the plan over the transcript gives the new view, which is proven to fit and to "
        "break no rule, and is written as native messages. The plan can be kept as JSON; a rewind folds fewer plans."
    )
    return _svg(width, height, "From messages in to messages out", said, parts)


def _x(column: int) -> int:
    return MARGIN + column * STEP_X


def _y(row: int) -> int:
    return MARGIN + (row + 1) * STEP_Y


def _box(column: int, row: int, span: int, role: str, first: str, second: str) -> str:
    x, y, width = _x(column), _y(row), BOX_W + (span - 1) * STEP_X
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{BOX_H}" rx="5" class="{role}"/>'
        f'<rect x="{x}" y="{y}" width="4" height="{BOX_H}" rx="2" class="strip-{role}"/>'
        f'<text class="head" x="{x + 14}" y="{y + 23}">{first}</text>'
        f'<text class="soft small" x="{x + 14}" y="{y + 42}">{second}</text>'
    )


def _arrow(start: tuple[int, int], stop: tuple[int, int], words: str) -> str:
    (c0, r0), (c1, r1) = start, stop
    if r0 == r1:
        x0, x1 = (_x(c0) + BOX_W + 4, _x(c1) - 4) if c1 > c0 else (_x(c0) - 4, _x(c1) + BOX_W + 4)
        y = _y(r0) + BOX_H // 2
        line, label = f"M{x0} {y}H{x1}", f'x="{(x0 + x1) // 2}" y="{y - 8}" text-anchor="middle"'
    else:
        x, y0, y1 = _x(c0) + BOX_W // 2, _y(r0) + BOX_H + 4, _y(r1) - 4
        line, label = f"M{x} {y0}V{y1}", f'x="{x + 9}" y="{(y0 + y1) // 2 + 4}"'
    text = f'<text class="soft" {label}>{words}</text>' if words else ""
    return f'<path class="edge" d="{line}" marker-end="url(#tip)"/>{text}'
