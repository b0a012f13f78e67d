"""`refold batch`: replays many transcripts on processes or a cluster, and reports on the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import rich_click as click

from refold._cli import options, replay_options

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from refold.batch import BatchProgress
    from refold.batch._report import BatchReport
    from refold.replay._tables import ReportTable

INTERRUPTED = 130
PATIENCE = "10s"  # to wait for a scheduler


class Batch(click.RichGroup):
    """A group that runs a batch where no other command of it is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of use."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments as those of `run` unless they begin with the name of a command."""
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("batch", cls=Batch)
def command() -> None:
    """Replay many transcripts into Parquet files, and report.

    The transcripts are replayed on processes of this machine or on a Dask cluster.
    `refold batch FILE... --out DIR` is short for `refold batch run FILE... --out DIR`.
    """


@options.examples(
    "refold batch ~/.claude/projects --out results",
    "refold batch 's3://logs/*.jsonl' --out s3://results --policy all --window 200k",
)
@click.command("run")
@click.argument("inputs", nargs=-1, required=True, metavar="FILE...", type=options.PATH)
@click.option(
    "-o",
    "--out",
    required=True,
    metavar="DIR",
    type=options.FOLDER,
    help="Folder for the results, a path or a URL.",
)
@options.reading
@replay_options.with_settings(policy="refold")
@click.option("--costs-only", is_flag=True, help="Compute only costs, not what is preserved: much quicker.")
@options.jobs_option
@click.option("--scheduler", metavar="ADDRESS", help="Use the Dask cluster of this scheduler, as in tcp://host:8786.")
@click.option("--retry", is_flag=True, help="Replay files again that have an error.")
@options.as_json
def run(
    inputs: tuple[str, ...], out: str, how: options.ReadOptions, names: tuple[str, ...], model: str | None,
    window: int | None, sizes: tuple[int | float, ...], goal: int | float | None, costs_only: bool, jobs: int | None,
    scheduler: str | None, retry: bool, as_json: bool, **prices: float | None,
) -> int:  # fmt: skip
    """Replay transcripts into a folder of Parquet files, each file exactly once.

    FILE is a file, a folder or a pattern: a local path, or a URL such as s3://bucket/logs of a storage that fsspec
    knows. A run that was ended goes on with the same command. A file that cannot be replayed becomes a row with the
    error; the exit code is 1 if every file has one. The results in a folder are all under the same settings.
    """
    from refold._cli import show
    from refold.batch import BatchSettings, run_batch
    from refold.errors import UsageError

    if jobs is not None and scheduler is not None:
        raise UsageError("--jobs is about processes on this machine, and --scheduler has workers of its own: give one")
    settings = BatchSettings(
        policies=replay_options.selected_policies(names), model=model, window=window, goal=goal,
        prices=replay_options.user_prices(prices), sizes=sizes, judge=not costs_only, kind=how.kind,
        format=how.format, lenient=how.lenient, select=how.select,
    )  # fmt: skip
    progress = _Progress()
    try:
        with _executor(scheduler) as (executor, workers), progress:
            reached = run_batch(
                inputs, out, settings, executor=executor, workers=workers or jobs, retry=retry,
                on_progress=progress.reached,
            )  # fmt: skip
    except KeyboardInterrupt:
        show.note(f"interrupted: {progress.left()}run the same command again to go on")
        return INTERRUPTED
    if as_json:
        show.emit(
            {"files": reached.files, "finished": reached.finished, "finished_before": reached.finished_before,
             "errors": reached.errors}
        )  # fmt: skip
    else:
        _print_progress(reached, out)
    return int(0 < reached.files == reached.errors)


@options.examples("refold batch report results --out report.html")
@click.command("report")
@click.argument("folder", metavar="DIR")
@click.option(
    "-o",
    "--out",
    metavar="HTML",
    type=options.PATH,
    help="Write a report: one HTML file with all tables and a plot.",
)
@options.as_json
def report(folder: str, out: str | None, as_json: bool) -> int:
    """Show what the policies cost and preserve over all transcripts of a batch, and which errors there were."""
    from refold._cli import output, report_tables, show
    from refold.batch._manifest import ResultFolder
    from refold.batch._report import report_of
    from refold.replay import _report as replay_report

    if out is not None:
        output.writable(out)
    with show.working(f"Reading {folder}"):
        summary = report_of(ResultFolder(folder).opened())
    tables = _tables(summary)
    if out is not None:
        html = replay_report.page("Batch", _intro(summary), summary.policies, tables)
        output.write(out, html.encode("utf-8", "replace"))
    if as_json:
        show.emit(summary)
        return 0
    show.line(_intro(summary))
    for table in tables:
        report_tables.print_table(table)
    return 0


command.add_command(run)
command.add_command(report)


class _Progress:
    """The bar of a run, which begins when the files are counted."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._reached: Callable[[int], None] | None = None
        self._last: BatchProgress | None = None

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)

    def reached(self, progress: BatchProgress) -> None:
        """Show how far the run is."""
        from refold._cli import show

        if self._reached is None:
            self._bar = show.progress_bar(progress.files, "Replaying")
            self._reached = self._bar.__enter__()
        self._last = progress
        self._reached(progress.files - progress.left)

    def left(self) -> str:
        """Say what an interrupted run has finished."""
        from refold._cli import show

        if self._last is None:
            return ""
        finished = self._last.files - self._last.left
        return f"the results of {finished:,} of {show.many(self._last.files, 'file')} are kept; "


@contextmanager
def _executor(scheduler: str | None) -> Iterator[tuple[Executor | None, int | None]]:
    """Yield the executor of a Dask cluster and the number of its workers, None for processes of this machine."""
    if scheduler is None:
        yield None, None
        return
    from refold.batch._packages import needed
    from refold.errors import UsageError

    distributed = needed("distributed", "dask")
    try:
        client = distributed.Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"--scheduler {scheduler}: no scheduler answers there ({error}): check the address") from None
    with client:
        yield client.get_executor(pure=False), max(sum(client.nthreads().values()), 1)


def _print_progress(reached: BatchProgress, out: str) -> None:
    from refold._cli import show

    before = f", {reached.finished_before:,} of them by earlier runs" if reached.finished_before else ""
    show.line(f"{show.many(reached.files, 'file')} replayed{before}.")
    if reached.errors:
        show.line(f"{reached.errors:,} of them with an error: the report says why.")
    show.line(f"refold batch report {out}")


def _intro(summary: BatchReport) -> str:
    from refold._cli import show

    errors = f"; {show.many(summary.files_with_errors, 'file')} with an error" if summary.files_with_errors else ""
    return (
        f"{show.many(summary.files, 'file')}, {show.many(summary.conversations, 'conversation')} replayed{errors}. "
        "±: standard error over conversations."
    )


def _tables(summary: BatchReport) -> list[ReportTable]:
    from refold._cli import show
    from refold.replay._tables import Cell, ReportTable, TableRow, tables_of

    def table(
        title: str, note: str, headers: tuple[str, ...], rows: list[tuple[str, ...]], *, words: bool = False
    ) -> ReportTable:
        lines = tuple(TableRow(name, tuple(map(Cell, cells))) for name, *cells in rows)
        return ReportTable(title, note, headers, lines, words)

    tables = tables_of(summary.policies, summary.limits)
    tables.append(table(
        "By model", "US dollars in all, and the difference from no compaction.",
        ("policy", "conversations", "calls", "US$", "against none"),
        [(show.clean(each.model) or "not named", each.policy, f"{each.conversations:,}", f"{each.calls:,}",
          f"{each.dollars:,.2f}", f"{each.change:+.1%}") for each in summary.models],
    ))  # fmt: skip
    tables.append(table(
        "As recorded", "What the provider's usage reports in the files say.",
        ("conversations", "calls", "input tokens", "cached", "output tokens", "US$", "cache misses", "US$ by misses"),
        [(show.clean(each.model) or "not named", f"{each.conversations:,}", f"{each.calls:,}", f"{each.prompt:,}",
          show.share(each.cache_read, each.prompt), f"{each.output:,}", f"{each.dollars:,.2f}", f"{each.misses:,}",
          f"{each.dollars_of_misses:,.2f}") for each in summary.recorded],
    ))  # fmt: skip
    tables.append(table(
        "Errors", "The most frequent first, each with one of the files.", ("error", "for example"),
        [(f"{each.count:,}", show.clean(each.error), show.clean(each.example)) for each in summary.errors], words=True,
    ))  # fmt: skip
    return [each for each in tables if each.lines]
