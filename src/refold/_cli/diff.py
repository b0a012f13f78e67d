"""`refold diff`: before and after, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._inspect.plan_table import PlanRow

CONTEXT = 2  # lines alike before the first that differs
LINE = 240  # characters shown of a line


@options.examples("refold diff session.jsonl --window 200k", "refold diff session.jsonl --plan plan.json")
@click.command("diff")
@options.file
@click.option("--plan", metavar="PLAN", type=options.PATH, help="Show this plan instead of making a new one.")
@options.reading
@options.budgeted
@click.option(
    "--lines",
    metavar="N",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="Maximum number of lines for each message.",
)
@click.option("--full", is_flag=True, help="Show all lines of each message.")
@options.as_json
def command(
    file: str,
    plan: str | None,
    how: options.ReadOptions,
    policy_options: options.PolicyOptions,
    lines: int,
    full: bool,
    as_json: bool,
) -> None:
    """Show changed messages before and after, side by side."""
    from refold._cli import files, show
    from refold._cli.apply import loaded, viewed
    from refold._cli.plan import summarized
    from refold._inspect import plan_table

    talk = files.only(file, how)
    if plan is None:
        request, current_plan = plan_table.planned(talk.recorded.messages, policy_options.of(talk.recorded))
    else:
        current_plan = loaded(plan)
        request = viewed(current_plan, talk)
    rows = plan_table.rows(request, current_plan)
    if as_json:
        show.emit([_plain(row) for row in rows if row.fate != "kept"])
        return
    summarized(current_plan, talk.label, request.options.model)
    if not current_plan.empty:
        _side_by_side(rows, 0 if full else lines)


def _plain(row: PlanRow) -> dict[str, object]:
    from refold._inspect.message_labels import full_text

    return {
        "position": row.position, "role": row.role, "fate": row.fate, "why": row.why,
        "tokens_before": row.before, "tokens_after": row.after,
        "before": full_text(row.old) if row.old else None, "after": full_text(row.new) if row.new else None,
    }  # fmt: skip


def _side_by_side(rows: Sequence[PlanRow], lines: int) -> None:
    from refold._cli import show
    from refold._cli.plan import STYLES, runs

    changes: list[tuple[str, str, str]] = []
    styles: list[str] = []
    for run in runs(rows, 1):
        first, last = run[0], run[-1]
        if first.fate == "kept" or len(run) > 1:
            tokens = sum(row.before for row in run)
            span = f"{first.position}" if first is last else f"{first.position}-{last.position}"
            changes.append(
                (
                    span,
                    f"{len(run):,} {first.fate}, {show.many(tokens, 'token')}",
                    "" if first.fate == "hidden" else "=",
                )
            )
        else:
            place = "new" if first.position is None else str(first.position)
            changes.append((place, *sides(first, lines)))
        styles.append(STYLES.get(first.fate, "dim"))
    show.side_by_side(("position", "before", "after"), changes, styles)


def sides(row: PlanRow, most: int) -> tuple[str, str]:
    """Return both sides of a row, from shortly before the first line that differs, at most so many lines (0: all)."""
    from refold._inspect.message_labels import full_text

    old = full_text(row.old).splitlines() if row.old else []
    new = full_text(row.new).splitlines() if row.new else []
    alike = next((place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    start = max(alike - CONTEXT, 0) if most else 0
    absent = "" if row.old is None else f"{row.fate}: {row.why}"
    return (
        _side(row, old, row.before, start, most) if row.old else "",
        _side(row, new, row.after, start, most) if row.new else absent,
    )


def _side(row: PlanRow, words: Sequence[str], tokens: int, start: int, most: int) -> str:
    from refold._cli import show

    stop = start + most if most else len(words)
    head = [f"{row.role}, {show.many(tokens, 'token')}", *([f"… {show.many(start, 'line')} alike"] if start else [])]
    rest = [f"… {show.many(len(words) - stop, 'more line')}"] if len(words) > stop else []
    return "\n".join([*head, *(show.clean(text, LINE if most else 0) for text in words[start:stop]), *rest])
