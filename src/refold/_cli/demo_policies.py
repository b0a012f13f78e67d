"""`refold demo --compare`: every policy on generated conversations and in an agent at work."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from refold._samples import SampleConversation

WINDOWS = (32_000, 200_000)


class Trial(NamedTuple):
    """What one policy made of one conversation in one window; `refused` says why it made nothing.

    `before` and `after` are exact counts, `of_goal` is the share of the goal as the policy itself counts.
    """

    example: str
    messages: int
    window: int
    policy: str
    before: int = 0
    after: int = 0
    kept: int = 0
    cleared: int = 0
    hidden: int = 0
    valid: bool = False
    fits: bool = False
    of_goal: float = 0.0
    seconds: float = 0.0
    refused: str = ""


def compare(policy: str | None, windows: tuple[int, ...], *, as_json: bool) -> None:
    """Run every policy, or one, over generated conversations and in an agent at work, and print the results."""
    from refold import _samples, policies
    from refold._cli import demo_mail, show

    names = (policy,) if policy else policies.names()
    runs = [
        (each, window, name) for each in _samples.conversations() for window in windows or WINDOWS for name in names
    ]
    trials = [_tried(*run) for run in show.progress(runs, "Compacting")]
    tasks = [(name, *size) for size in demo_mail.WINDOWS for name in names]
    worked = [demo_mail.tried(*task) for task in show.progress(tasks, "Reading e-mails")]
    if as_json:
        show.emit([trial._asdict() for trial in trials] + [trial._asdict() | {"example": "task"} for trial in worked])
        return
    for example, window in dict.fromkeys((trial.example, trial.window) for trial in trials):
        _print([trial for trial in trials if (trial.example, trial.window) == (example, window)])
    for window, _ in demo_mail.WINDOWS:
        demo_mail.table([trial for trial in worked if trial.window == window])
    show.line("\nCounts are exact; triggers and goals are by each policy's own count.")


def _tried(example: SampleConversation, window: int, name: str) -> Trial:
    from refold import formats
    from refold._compaction.options import Options
    from refold._inspect import plan_table
    from refold.core.counting import count_all
    from refold.errors import RefoldError

    wanted = Options(format=example.format, policy=name, window=window, system=example.system, tools=example.tools)
    size = len(example.messages)
    start = time.perf_counter()
    try:
        request, plan = plan_table.planned(example.messages, wanted)
    except RefoldError as error:
        return Trial(example.name, size, window, name, refused=str(error))
    seconds = time.perf_counter() - start
    before, after = request.view, request.view.after(plan.edits)
    fates = [row.fate for row in plan_table.rows(request, plan)]
    out = formats.assemble(request.format, after.messages)
    return Trial(
        example.name, size, window, name, count_all(request.exact, before.messages),
        count_all(request.exact, after.messages), fates.count(plan_table.Fate.UNCHANGED),
        fates.count(plan_table.Fate.CLEARED) + fates.count(plan_table.Fate.SHORTENED),
        fates.count(plan_table.Fate.HIDDEN),
        not formats.broken(request.format, formats.read(request.format, out).messages),
        plan.sizes.after <= plan.sizes.limit, plan.sizes.after / plan.sizes.goal, seconds,
    )  # fmt: skip


def _print(trials: list[Trial]) -> None:
    from refold._cli import show

    first = trials[0]
    before = max(trial.before for trial in trials)
    title = f"{first.example}: {show.many(first.messages, 'message')} of {before:,} tokens, window {first.window:,}"
    if all(trial.after == trial.before and not trial.refused for trial in trials):
        show.line(f"\n{title}: below every trigger, so nothing is touched")
        return
    headers = (
        "policy",
        ">after",
        ">kept",
        ">cleared",
        ">hidden",
        ">valid",
        ">fits",
        ">of goal",
        ">time",
        "tokens left",
    )
    rows: list[tuple[str, ...]] = []
    for trial in trials:
        if trial.refused:
            rows.append((trial.policy, *[""] * 8, show.clean(trial.refused, 60)))
            continue
        rows.append(
            (trial.policy, show.number(trial.after), show.number(trial.kept), show.number(trial.cleared),
             show.number(trial.hidden), _yes(trial.valid), _yes(trial.fits), f"{trial.of_goal:.0%}",
             f"{trial.seconds * 1000:,.0f} ms", show.bar(trial.after, trial.before))
        )  # fmt: skip
    show.table(headers, rows, title=title)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
