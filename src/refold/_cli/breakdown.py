"""What the context holds, as a bar and its legend."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from refold._cli import show

if TYPE_CHECKING:
    from rich.text import Text

    from refold._compaction.result import Check

__all__ = ["ContextPart", "print_breakdown", "shares"]

WIDTH = 76  # of the bar, at most
KINDS = (  # role, name, colour, sign where there is no colour
    ("system", "system", "magenta", "s"),
    ("tools", "tools", "blue", "t"),
    ("user", "user", "green", "u"),
    ("assistant", "assistant", "cyan", "a"),
    ("tool", "tool results", "yellow", "r"),
)
FREE = ("free", "bright_black", ".")


class ContextPart(NamedTuple):
    """One part of the context: its name, tokens, colour, and the sign that draws it without one."""

    name: str
    tokens: int
    colour: str
    sign: str


def shares(check: Check) -> list[ContextPart]:
    """Return what a request is made of: system prompt, tools, and messages by role."""
    parts = check.breakdown
    roles = dict(parts.roles)
    for role in ("system", "developer"):  # a system prompt among the messages
        roles["system"] = roles.get("system", 0) + (roles.pop(role, 0) if role != "system" else 0)
    by_role = {
        **roles,
        "system": roles.get("system", 0) + parts.system + parts.prompt + parts.files,
        "tools": parts.tools,
    }
    return [ContextPart(name, by_role.get(role, 0), colour, sign) for role, name, colour, sign in KINDS]


def print_breakdown(check: Check, threshold: int | None, window: int) -> None:
    """Print the bar and its legend; `threshold` is where compaction is due, None where it never is."""
    console = show.terminal()
    parts = shares(check)
    free = ContextPart(FREE[0], max(check.limit - sum(part.tokens for part in parts), 0), FREE[1], FREE[2])
    due = f"compaction is due at {threshold:,}" if threshold is not None else "compaction is switched off"
    show.line(f"{check.tokens:,} of {check.limit:,} tokens ({check.ratio:.0%}); {due}; window {window:,}")
    width = max(20, min(WIDTH, console.width - 2))
    cells = _cells([*parts, free], width)
    mark = round(width * threshold / check.limit) if threshold is not None else None
    console.print(_bar(cells, mark, coloured=console.is_terminal), soft_wrap=True)
    for part in (*parts, free):
        _legend(part, check.limit, coloured=console.is_terminal)


def _cells(parts: list[ContextPart], width: int) -> list[ContextPart]:
    """Return the part that each place of a bar shows; what is there at all has a place."""
    whole = sum(part.tokens for part in parts) or 1
    counts = [max(round(width * part.tokens / whole), 1 if part.tokens else 0) for part in parts]
    counts[counts.index(max(counts))] += width - sum(counts)
    return [part for part, count in zip(parts, counts, strict=True) for _ in range(count)]


def _bar(cells: list[ContextPart], mark: int | None, *, coloured: bool) -> Text:
    from rich.text import Text

    bar = Text()
    for place, part in enumerate(cells):
        if mark is not None and place == min(mark, len(cells) - 1):
            bar.append("│" if coloured else "|", "bold red")
        elif coloured:
            bar.append("·" if part.name == FREE[0] else "█", part.colour)
        else:
            bar.append(part.sign)
    return bar


def _legend(part: ContextPart, limit: int, *, coloured: bool) -> None:
    from rich.text import Text

    figures = f"{part.name:<13} {part.tokens:>10,} {show.share(part.tokens, limit):>7}"
    if not coloured:
        show.line(f"{part.sign} {figures}")
        return
    sign = "·" if part.name == FREE[0] else "■"
    show.terminal().print(Text.assemble((sign, part.colour), f" {figures}"), soft_wrap=True)
