"""`refold replay`: compares what policies preserve and cost on recorded conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import options, replay_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from refold.replay._parallel import Job, ReplaySettings
    from refold.replay._run import Run


@options.examples(
    "refold replay session.jsonl --window 200k",
    "refold replay sessions/ --policy refold --policy vibe --out report.html",
)
@click.command("replay")
@options.files
@options.reading
@replay_options.with_settings(policy=replay_options.ALL)
@click.option(
    "-o",
    "--out",
    metavar="HTML",
    type=options.PATH,
    help="Write a report: one HTML file with all tables and plots.",
)
@click.option("--plots", metavar="DIR", type=options.FOLDER, help="Write each plot as an SVG file into this folder.")
@click.option("--png", is_flag=True, help="With --plots: write each plot as a PNG file too.")
@click.option(
    "--cache",
    metavar="DIR",
    type=options.FOLDER,
    help="Folder for stored results; by default in your cache folder.",
)
@click.option("--no-cache", is_flag=True, help="Neither read nor store results.")
@options.jobs_option
@options.as_json
def command(
    files: tuple[str, ...], how: options.ReadOptions, names: tuple[str, ...], model: str | None, window: int | None,
    sizes: tuple[int | float, ...], goal: int | float | None, out: str | None, plots: str | None, png: bool,
    cache: str | None, no_cache: bool, jobs: int | None, as_json: bool, **prices: float | None,
) -> int:  # fmt: skip
    """Compare what policies preserve and cost, without a model.

    Recorded conversations are replayed under each policy.
    Each policy compacts at its own trigger. An outline takes the place of a model's summary, and the summary call is
    charged. The price of a call depends on the longest prefix that is still in the prompt cache. Content that would
    have to be read again is charged too. `none` never compacts. Then the policies are compared at equal sizes and
    after five compactions in a row. Results are stored, so an interrupted run continues.
    """
    from refold._cli import output
    from refold.errors import UsageError
    from refold.replay import _png
    from refold.replay._parallel import ReplaySettings

    if out is not None:
        output.writable(out)
    if plots is not None:
        output.writable(f"{plots}/plot.svg", create_folders=True)
    if png and plots is None:
        raise UsageError("--png is about the plots: name a folder for them with --plots")
    if png:
        _png.ready()
    settings = ReplaySettings(
        model, window, goal, replay_options.user_prices(prices), "" if no_cache else _cache_folder(cache), sizes
    )
    replayed_runs = _replayed(files, how, replay_options.selected_policies(names), settings, jobs)
    if not replayed_runs:
        raise UsageError("none of the conversations could be replayed: name longer ones, or a model and a window")
    _written(replayed_runs, out, plots, png=png)
    _print_results(replayed_runs, as_json=as_json)
    return 0


def _replayed(
    files: tuple[str, ...],
    how: options.ReadOptions,
    names: tuple[str, ...],
    settings: ReplaySettings,
    workers: int | None,
) -> list[list[Run]]:
    """Return the runs of all conversations; of several, one that cannot be replayed is noted and passed over."""
    from refold._cli import files as reading
    from refold._cli import show
    from refold.errors import UsageError
    from refold.replay._parallel import Job, cores, replay_all, split

    talks = reading.conversations(files, how, "Replaying")  # read one by one, as they are replayed
    jobs = (Job(talk.recorded, talk.label, talk.source, names) for talk in talks)
    pieces: Iterable[tuple[int, Job]] = enumerate(jobs)
    if len(reading.expanded(files)) == 1:  # all cores work on the policies of one conversation
        pieces = show.progress(split(list(jobs), workers or cores()), "Replaying")
    labels: list[tuple[int, str]] = []

    def coming() -> Iterator[Job]:
        for place, job in pieces:
            labels.append((place, job.file))
            yield job

    by_place: dict[int, list[Run]] = {}
    refused: dict[int, UsageError] = {}
    for number, runs in enumerate(replay_all(coming(), settings, workers)):
        place = labels[number][0]
        if isinstance(runs, UsageError):
            refused[place] = runs
        else:
            by_place.setdefault(place, []).extend(runs)
    names_of = dict(labels)
    if not by_place and len(refused) == 1:
        place, error = refused.popitem()
        raise reading.placed(error, names_of[place])
    for place, error in refused.items():
        show.note(f"refold: {reading.placed(error, names_of[place])}")
    return [by_place[place] for place in sorted(by_place)]


def _written(replayed_runs: list[list[Run]], out: str | None, plots: str | None, *, png: bool) -> None:
    from refold._cli import output
    from refold.replay import _charts as charts
    from refold.replay import _report as report
    from refold.replay._png import png_of

    if out is not None:
        output.write(out, report.report(replayed_runs).encode("utf-8", "replace"))
    for name, svg in report.plots(replayed_runs).items() if plots is not None else ():
        output.write(f"{plots}/{name}.svg", svg.encode("utf-8", "replace"))
    for name, svg in report.plots(replayed_runs, charts.LIGHT).items() if png else ():
        output.write(f"{plots}/{name}.png", png_of(svg))


def _cache_folder(named: str | None) -> str:
    """Return where results are stored; nowhere, with a note, where the default place cannot be written."""
    from platformdirs import user_cache_path

    from refold._cli import output, show
    from refold.errors import UsageError

    folder = named or str(user_cache_path("refold", appauthor=False) / "replay")
    try:
        output.writable(f"{folder}/results", create_folders=True)
    except UsageError:
        if named:
            raise UsageError(f"--cache {named}: not writable: name another folder, or give --no-cache") from None
        show.note(f"results are not stored: {folder} is not writable")
        return ""
    return folder


def _print_results(replayed_runs: list[list[Run]], *, as_json: bool) -> None:
    from refold._cli import report_tables, show
    from refold.replay._summary import limits_of, summed, verdicts
    from refold.replay._tables import tables, verdict_table

    if as_json:
        comparisons = verdicts(replayed_runs)
        comparison_rows = [
            {"figure": each.figure, "best": each.best, "other": each.other, "verdict": each.verdict}
            for each in comparisons
        ]
        show.emit(
            {
                "policies": summed(replayed_runs),
                "limits": limits_of(replayed_runs),
                "verdicts": comparison_rows,
                "conversations": replayed_runs,
            }
        )
        return
    for table in (*tables(replayed_runs), verdict_table(replayed_runs)):
        if table is not None:
            report_tables.print_table(table)
    if not any(run.compactions for runs in replayed_runs for run in runs):
        show.line("\nNothing was compacted on the way: no policy was due.")
