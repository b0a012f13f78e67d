"""Reports on stored conversations: replayed under each policy in a process of their own, one at a time for a viewer."""

from __future__ import annotations

import asyncio
import json
import time
from functools import cached_property
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold import policies, transcripts
from refold._page.conversations import title_of
from refold._page.figures import limits_of
from refold.errors import RefoldError
from refold.replay._parallel import Job, ReplaySettings, done, quiet
from refold.replay._report import plots, report
from refold.replay._run import NONE
from refold.replay._tables import tables, verdict_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

    from refold._page.history import History
    from refold.replay._run import Run
    from refold.replay._tables import ReportTable

__all__ = [
    "KINDS",
    "MOST_CHARACTERS",
    "MOST_CONVERSATIONS",
    "MOST_MESSAGES",
    "Report",
    "Reports",
    "Subject",
    "subject_of",
]

KINDS = {
    "replay": "Replay: what each policy preserves and costs",
    "cost": "Cost: what each policy would have cost",
}
MOST_CONVERSATIONS, MOST_MESSAGES, MOST_CHARACTERS = 20, 20_000, 100_000_000
AT_ONCE = 2  # reports that a process makes for all its viewers
REMEMBERED = 50  # reports, of as many viewers


class Subject(Struct, frozen=True):
    """A conversation of a report: its id, what to call it, and its lines as `refold sessions export` writes them."""

    id: str
    title: str
    lines: bytes


class Report:
    """One report: how far it is, and what came out.

    Tables and plots are made once, when it runs no more.
    """

    def __init__(self, kind: str, subjects: Sequence[Subject]) -> None:
        self.kind = kind
        self.titles = tuple(subject.title for subject in subjects)
        self.names = (NONE, *policies.names())
        self.total = len(self.titles) * len(self.names)
        self.done = 0
        self.begun = time.time()
        self.runs: dict[int, list[Run]] = {}
        self.problems: dict[int, str] = {}
        self.state = "running"
        self._subjects = tuple(subjects)  # until its process has them
        self._process: Any = None

    @property
    def results(self) -> list[list[Run]]:
        """The runs of each conversation that was replayed under all policies."""
        return [runs for _, runs in sorted(self.runs.items()) if len(runs) == len(self.names)]

    @cached_property
    def tables(self) -> list[ReportTable]:
        """The tables of the results; of a report on costs the first alone, since nothing else was judged."""
        every = tables(self.results)
        if self.kind == "cost":
            return every[:1]
        verdict = verdict_table(self.results)
        return every if verdict is None else [*every, verdict]

    @cached_property
    def plots(self) -> dict[str, str]:
        """The plots of the results, as SVG by name."""
        return {name: svg for name, svg in plots(self.results).items() if self.kind != "cost" or "quality" not in name}

    @property
    def page(self) -> str:
        """The report as one HTML file, as `refold replay -o` writes it."""
        return report(self.results)

    def cancel(self) -> None:
        """End the process that makes the report."""
        if self.state == "running":
            self.state = "cancelled"
            if self._process is not None and self._process.is_alive():
                self._process.terminate()

    async def make(self) -> None:
        """Make the report in a process of its own, which is ended with this one."""
        context = get_context("spawn")  # a fork would copy the threads of the caller
        here, there = context.Pipe(duplex=False)
        work = (there, self._subjects, self.names, self.kind == "replay")
        self._process = context.Process(target=_make, args=work, daemon=True)
        self._subjects = ()
        del work
        try:
            await asyncio.to_thread(self._process.start)
            there.close()
            while self.state == "running":
                place, run = await asyncio.to_thread(here.recv)
                self.done += 1
                if isinstance(run, str):
                    self.problems[place] = run
                else:
                    self.runs.setdefault(place, []).append(run)
                if self.done >= self.total:
                    self.state = "done"
        except (EOFError, OSError):
            self.state = "failed" if self.state == "running" else self.state
        finally:
            if self._process.is_alive():
                self._process.terminate()
            here.close()


class Reports:
    """The newest report of each viewer; one of a viewer runs at a time, and a few in all."""

    def __init__(self) -> None:
        self._reports: dict[str, Report] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def of(self, viewer: str) -> Report | None:
        """Return the newest report of a viewer."""
        return self._reports.get(viewer)

    def may_begin(self, viewer: str) -> bool:
        """Tell whether a viewer has no report that runs, and fewer run than may at a time."""
        running = [each for each, report in self._reports.items() if report.state == "running"]
        return viewer not in running and len(running) < AT_ONCE

    def begin(self, viewer: str, kind: str, subjects: Sequence[Subject]) -> None:
        """Begin a report, in place of the one before."""
        self._reports.pop(viewer, None)
        report = self._reports[viewer] = Report(kind, subjects)
        while len(self._reports) > REMEMBERED:
            self._reports.pop(next(iter(self._reports))).cancel()
        task = asyncio.create_task(report.make())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def subject_of(history: History) -> Subject:
    """Return a conversation as it is written to a report's process: its messages, settings, reports and plans."""
    limits, settings = limits_of(history), history.state.settings
    known = {name: settings[name] for name in ("system", "tools") if settings.get(name) is not None}
    known |= {"model": limits.model or None, "window": limits.window}
    lines: list[Any] = [
        {"refold_session": 1, "id": history.head.id, "format": history.head.format},
        {"entry": {"type": "configured", "settings": known}},
    ]
    ids = history.state.ids
    natives = history.natives(ids)
    lines += [{"id": id, "message": natives[id]} for id in ids if id in natives]
    title = title_of(history) or history.head.id
    return Subject(history.head.id, title[:80], "\n".join(json.dumps(each) for each in lines).encode())


def _make(there: Connection, subjects: Sequence[Subject], names: Sequence[str], judge: bool) -> None:
    """Replay each conversation under each policy, and send what came out, or why nothing did."""
    quiet()
    settings = ReplaySettings(judge=judge)
    for place, subject in enumerate(subjects):
        problem = ""
        try:
            [recorded] = transcripts.read(subject.lines)
        except (RefoldError, ValueError) as error:
            problem = str(error) or type(error).__name__
        for name in names:
            if not problem:
                try:
                    [run] = done(Job(recorded, subject.title, subject.lines, (name,)), settings)
                    there.send((place, run))
                    continue
                except RefoldError as error:
                    problem = str(error)
            there.send((place, problem))
