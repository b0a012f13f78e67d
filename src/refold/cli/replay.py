"""`refold replay`: what each policy keeps and costs on recorded conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from refold.cli import options
from refold.cli.cost import given, priced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.replay.many import Job, Settings
    from refold.replay.run import Run
    from refold.replay.summary import Figure, Row, Verdict

ALL = "all"


@click.command("replay")
@options.files
@options.reading
@click.option(
    "-p", "--policy", "names", multiple=True, default=(ALL,), show_default=True, metavar="NAME",
    help="Policy by name, or a file with one; may be given several times.",
)  # fmt: skip
@click.option("-m", "--model", metavar="ID", help="Model whose prices, window and tokenizer hold; else the file's own.")
@click.option("-w", "--window", type=options.Tokens(), help="Context window in tokens; the model's by default.")
@click.option("--budget", type=options.Tokens(), help="Tokens into which everything must fit, counted exactly.")
@click.option("--goal", type=options.Goal(), help="Where compaction may stop; the policy's own by default.")
@priced
@click.option("--out", metavar="HTML", help="Write a report: one HTML file with all tables and plots in it.")
@click.option("--plots", metavar="DIR", help="Write each plot as an SVG file into this folder.")
@click.option("--keep", metavar="DIR", help="Where results are kept; the user's cache folder by default.")
@click.option("--fresh", is_flag=True, help="Neither read nor keep results.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Processes at once; all cores by default.")
@options.as_json
def command(
    files: tuple[str, ...], how: options.Reading, names: tuple[str, ...], model: str | None, window: int | None,
    budget: int | None, goal: int | float | None, out: str | None, plots: str | None, keep: str | None,
    fresh: bool, jobs: int | None, as_json: bool, **prices: float | None,
) -> int:  # fmt: skip
    """Replay recorded conversations under policies, without a model: what each keeps, and what it would have cost.

    Policies compact where they would have; steps that need a model's summary are not done. Each call is priced by its
    longest live beginning in the prompt cache, and what would have had to be read again is charged. `none` is doing
    nothing. Results are kept, so an interrupted run goes on where it was.
    """
    from refold.cli import output
    from refold.errors import UsageError
    from refold.replay.many import Settings

    if out is not None:
        output.writable(out)
    if plots is not None:
        output.writable(f"{plots}/plot.svg", made=True)
    settings = Settings(model, window, budget, goal, given(prices), "" if fresh else keep or _kept())
    found = _replayed(_jobs(files, how, _named(names)), settings, jobs)
    if not found:
        raise UsageError("none of the conversations could be replayed: name longer ones, or a model and a window")
    _written(found, out, plots)
    _shown(found, as_json=as_json)
    return 0


def _jobs(files: tuple[str, ...], how: options.Reading, names: tuple[str, ...]) -> list[Job]:
    from refold.cli import files as reading
    from refold.replay.many import Job

    return [Job(talk.recorded, talk.label, talk.source, names) for talk in reading.conversations(files, how)]


def _replayed(jobs: list[Job], settings: Settings, workers: int | None) -> list[list[Run]]:
    """Return the runs of all conversations; of several, one that cannot be replayed is noted and passed over."""
    from refold.cli import show
    from refold.errors import UsageError
    from refold.replay.many import cores, replay_all, split

    pieces = split(jobs, workers or cores())
    made: dict[int, list[Run]] = {}
    results = replay_all([piece for _, piece in pieces], settings, workers)
    for (place, piece), runs in zip(show.progress(pieces, "Replaying"), results, strict=True):
        if not isinstance(runs, UsageError):
            made.setdefault(place, []).extend(runs)
        elif len(jobs) == 1:
            raise runs
        else:
            said = str(runs)
            show.note(f"refold: {said if said.startswith(piece.file) else f'{piece.file}: {said}'}")
    return [made[place] for place in sorted(made)]


def _written(found: list[list[Run]], out: str | None, plots: str | None) -> None:
    from refold.cli import output
    from refold.replay import report

    if out is not None:
        output.write(out, report.report(found).encode("utf-8", "replace"))
    for name, svg in report.plots(found).items() if plots is not None else ():
        output.write(f"{plots}/{name}", svg.encode("utf-8", "replace"))


def _named(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the policies to replay, doing nothing first.

    Raises:
        UnknownPolicy: no such policy.
    """
    from refold import policies
    from refold.replay.run import NONE

    wanted = [each for name in names for each in (policies.names() if name == ALL else (name,))]
    for name in wanted:
        if name != NONE:
            options.policy_of(name)
    return (NONE, *(name for name in dict.fromkeys(wanted) if name != NONE))


def _kept() -> str:
    from platformdirs import user_cache_path

    return str(user_cache_path("refold", appauthor=False) / "replay")


def _shown(found: list[list[Run]], *, as_json: bool) -> None:
    from refold.cli import show
    from refold.replay.summary import summed, verdicts

    rows, told = summed(found), verdicts(found)
    if as_json:
        said = [{"figure": each.figure, "best": each.best, "other": each.other, "verdict": each.said} for each in told]
        show.emit({"policies": rows, "verdicts": said, "conversations": found})
        return
    _costs(rows)
    _kept_table(rows)
    _verdicts(told)


def _costs(rows: Sequence[Row]) -> None:
    from refold.cli import show

    first = rows[0]
    heads = (
        *("*policy", ">compactions", ">mean", ">peak", ">US$ calls", ">reads again", ">US$ again", ">US$ in all"),
        *(">change", ">US$ cache damage", ">too long", ">broken"),
    )
    cells = [
        (row.policy, show.number(row.compactions), show.number(row.mean), show.number(row.peak),
         f"{row.dollars:,.2f}", show.number(row.refetches), f"{row.refetch:,.2f}", f"{row.bill:,.2f}",
         _figure(row.change, sign=True), f"{row.damage:,.2f}", show.number(row.over), show.number(row.broken))
        for row in rows
    ]  # fmt: skip
    least = min(row.bill for row in rows)
    styles = ["bold green" if row.bill == least else "" for row in rows]
    many = "conversation" if first.conversations == 1 else "conversations"
    title = f"Cost: {first.conversations:,} {many}, {first.calls:,} calls"
    show.table(heads, cells, title=title, styles=styles)


def _kept_table(rows: Sequence[Row]) -> None:
    """Show what was kept, where anything was compacted."""
    from refold.cli import show

    named = list(dict.fromkeys(name for row in rows for name in row.quality))
    if not named:
        show.line("\nNothing was compacted: no policy was due.")
        return
    cells = [(row.policy, *(_figure(row.quality.get(name)) for name in named)) for row in rows if row.policy != "none"]
    show.table(("*policy", *(f">{name}" for name in named)), cells, title="Kept of what the rest needed")


def _verdicts(told: Sequence[Verdict]) -> None:
    from refold.cli import show

    if told:
        rows = [(each.figure, each.best, each.other, each.said) for each in told]
        show.table(("figure", "best", "than", "*is it so"), rows, title="Can they be told apart?")


def _figure(figure: Figure | None, *, sign: bool = False) -> str:
    if figure is None:
        return ""
    value = f"{100 * figure.value:{'+' if sign else ''}.1f}%"
    return value if figure.error is None else f"{value} ±{100 * figure.error:.1f}"
