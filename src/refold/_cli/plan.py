"""`refold plan`: shows a plan without applying it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._cli.files import InputConversation
    from refold._inspect.plan_table import PlanRow
    from refold.core.plan import Plan
    from refold.core.view import View
    from refold.handlers import Handlers

STYLES = {"cleared": "yellow", "shortened": "yellow", "hidden": "red", "inserted": "green", "changed": "yellow"}
CANNOT_FIT = 1
LONG = 3  # a run of messages with one fate and more than this many is one line


@options.examples(
    "refold plan session.jsonl --window 200k",
    "refold plan session.jsonl --window 200k --policy opal --force --full",
)
@click.command("plan")
@options.file
@options.reading
@options.budgeted
@options.summarized
@click.option("--full", "every", is_flag=True, help="Show every message on a line of its own.")
@options.as_json
def command(
    file: str,
    how: options.ReadOptions,
    policy_options: options.PolicyOptions,
    handlers: Handlers,
    every: bool,
    as_json: bool,
) -> int:
    """Show what a compaction would do to each message, and why.

    The exit code is 1 if the result would not fit.
    """
    from refold._cli import files, show
    from refold._inspect import plan_table
    from refold.core._plan_json import dump_plan

    talk = files.only(file, how)
    with show.working("Planning"):
        request, current_plan = plan_table.planned(talk.recorded.messages, policy_options.of(talk.recorded), handlers)
    if as_json:
        click.echo(dump_plan(current_plan))
    else:
        summarized(current_plan, talk.label, request.options.model)
        if not current_plan.empty:
            messages(plan_table.rows(request, current_plan), request.view, every=every)
        else:
            unsound(talk)
    if current_plan.sizes.after <= current_plan.sizes.limit:
        return 0
    show.note(
        f"refold: {current_plan.sizes.after:,} tokens would be left of at most {current_plan.sizes.limit:,}: "
        "name a larger window"
    )
    return CANNOT_FIT


def summarized(current_plan: Plan, label: str, model: str | None) -> None:
    """Print what a plan comes to: sizes, what it costs and saves at the model's prices, and what each step did."""
    from refold._cli import show
    from refold._inspect import plan_table

    sizes = current_plan.sizes
    total = f"{sizes.before:,} -> {sizes.after:,} tokens"
    room = f"input budget {sizes.limit:,}, goal {sizes.goal:,}"
    economy = current_plan.break_even
    idle = "nothing to do" if economy is None else "a compaction waits until it pays"
    show.lines(
        [
            ("file", show.clean(label)),
            ("policy", f"{current_plan.policy} ({current_plan.cause})"),
            ("tokens", total if not current_plan.empty else f"{sizes.before:,}: {idle}"),
            ("room", f"{room}, of which {sizes.fixed:,} fixed" if sizes.fixed else room),
            *([("cost", plan_table.economy_text(economy, model))] if economy is not None else []),
            *([("waits", economy.waits)] if economy is not None and economy.waits else []),
        ]
    )
    headers = ("step", ">changes", ">tokens before", ">after", "*remark")
    rows = [
        (step.label, show.number(step.stop - step.start), show.number(step.before), show.number(step.after),
         show.clean(step.refused))
        for step in current_plan.steps
    ]  # fmt: skip
    if rows:
        show.table(headers, rows, title=" ")


def messages(rows: Sequence[PlanRow], view: View, *, every: bool) -> None:
    """Print a line a message; long runs of one fate are one line."""
    from refold._cli import show
    from refold._inspect.message_labels import what

    headers = (">position", "role", ">tokens", ">after", "fate", "why", "~what")
    lines: list[tuple[str, ...]] = []
    styles: list[str] = []
    for run in runs(rows, 0 if every else LONG):
        first = run[0]
        before, after = sum(row.before for row in run), sum(row.after for row in run)
        span = _place(first) if len(run) == 1 else f"{_place(first)}-{_place(run[-1])}"
        role = first.role if len(run) == 1 else ""
        message = first.old or first.new
        about = what(message, view) if len(run) == 1 and message else show.many(len(run), "message")
        lines.append((span, role, show.number(before), show.number(after), first.fate, first.why, about))
        styles.append(STYLES.get(first.fate, "dim"))
    show.table(headers, lines, title=" ", styles=styles)


def runs(rows: Sequence[PlanRow], long: int) -> list[list[PlanRow]]:
    """Return rows in runs: neighbours kept or hidden for one reason together, where they are more than `long`."""
    grouped: list[list[PlanRow]] = []
    for row in rows:
        last = grouped[-1][-1] if grouped else None
        alike = last is not None and row.fate in ("kept", "hidden") and (last.fate, last.why) == (row.fate, row.why)
        if long and alike:
            grouped[-1].append(row)
        else:
            grouped.append([row])
    return [part for run in grouped for part in ([run] if len(run) > long else [[row] for row in run])]


def _place(row: PlanRow) -> str:
    return "new" if row.position is None else str(row.position)


def unsound(talk: InputConversation) -> None:
    """Note that an unchanged conversation breaks rules of its provider, which a compaction would repair."""
    from refold import api
    from refold._cli import show

    broken = api.violations(talk.recorded.messages, format=talk.recorded.format)
    if broken:
        violations = f"{show.many(len(broken), 'violation')} of the rules of {talk.recorded.format}"
        show.note(f"refold: {talk.label}: {violations}: `refold repair` repairs it")
