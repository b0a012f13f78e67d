"""refold beside its peers: each in its own environment and process, at the same true sizes, on the same sessions.

    python benchmarks/peers/run.py                        install what is missing, run every row, write docs/peers.md
    python benchmarks/peers/run.py --only refold,strands  these rows; the others stay as they were measured before
    python benchmarks/peers/run.py --few                  a third of the places, to see that all is well
    python benchmarks/peers/run.py --report               write the page again without running anything
    python benchmarks/peers/run.py --list                 the rows and how each is driven
    python benchmarks/peers/run.py --lock                 resolve the versions anew

REFOLD_SHARED names the folder of recorded sessions (default ../shared), REFOLD_PEERS where environments and runs lie,
REFOLD_PEERS_PYTHON an interpreter of Python 3.12 where uv finds none.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).resolve().parents[2]))  # for tools

import cases
import recall
import report
from adapters import peers
from environments import (
    HOME,
    TABLE,
    Trouble,
    Worker,
    install,
    lock,
    versions,
    vocabularies,
)
from msgspec import to_builtins
from scoring import ASKS, Run, instructed_run, run_at

from refold.replay._bounds import bounds
from tools.sample_sessions.sized import sized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.base import Peer

GOALS = {"50%": 0.5, "25%": 0.25, "10%": 0.1, "15k": 15_000.0}
FOR_15K = 60_000  # tokens that a history must have for the goal of 15k
TIMEOUTS = 3  # passes without an end before a row is given up
PATIENCE = 45.0  # seconds of processor time for one row


class Row:
    """All runs of one peer."""

    def __init__(self, peer: type[Peer], folds: Path | None) -> None:
        self.peer, self.folds = peer, folds
        self.asks = ASKS if peer.budgeted else 1
        self.worker = self._started()
        self.timeouts = 0

    @property
    def spent(self) -> float:
        """Return the seconds of processor time that the peer's process took."""
        return self.worker.spent()

    def _started(self) -> Worker:
        worker = Worker(self.peer.family, self.peer.name)
        try:
            worker.ask({"messages": sized(5_000), "budget": 2_500})  # what is imported at the first pass
        except Trouble:
            if worker.process.poll() is not None:
                raise
        return worker

    def _renewed(self, trouble: str) -> None:
        if self.worker.process.poll() is not None:
            self.timeouts += trouble.startswith("more than")
            self.worker = self._started()

    def instructions(self) -> dict[str, Any]:
        """Return what is kept of standing instructions, and the time of a pass over a long conversation."""
        messages, found = cases.instructed(), {}
        for label in ("50%", "25%", "10%"):
            found[label] = instructed_run(self.worker, messages, GOALS[label], self.asks)
            self._renewed(found[label]["outcome"])
        return found

    def runs_at(self, cut: cases.Cut) -> list[Run]:
        """Return the runs at one place with every goal; a peer that knows none sets its own."""
        request: dict[str, Any] = {"messages": cut.before, "weights": self._weights(cut)}
        found = []
        for label, goal in goals_of(cut).items():
            if self.timeouts >= TIMEOUTS:
                break
            run = run_at(self.worker, self.peer.name, cut, label, goal, request, self.asks)
            found.append(run)
            self._renewed(run.outcome)
        return found

    def _weights(self, cut: cases.Cut) -> str | None:
        fold = self.folds / f"{cut.source}.json" if self.folds else None
        return str(fold) if fold and fold.exists() else None


def goals_of(cut: cases.Cut) -> dict[str, int]:
    """Return the goals at a place, in tokens."""
    found = {}
    for label, goal in GOALS.items():
        tokens = int(cut.size * goal) if goal < 1 else int(goal)
        if goal < 1 or cut.size >= FOR_15K:
            found[label] = tokens
    return found


def all_cuts(few: bool) -> list[cases.Cut]:
    """Return the places of all sessions of coding agents; or some of them."""
    found: list[cases.Cut] = []
    for path in recall.sources():
        agent, source = path.relative_to(recall.SHARED / "data").parts[:2]
        if agent in cases.CODING:
            found += cases.cuts_in(path, agent, source)
    mixed = sorted(found, key=lambda cut: sha256(cut.id.encode()).hexdigest())  # a row that is given up has some of all
    return mixed[::3] if few else mixed


def bounded(cuts: Sequence[cases.Cut]) -> dict[str, dict[str, Any]]:
    """Return what a choice of segments that sees the future keeps, and what the newest segments alone keep."""
    runs: dict[str, list[Run]] = {name: [] for name in report.BOUNDS}
    for cut in cuts:
        characters = sum(len(text) for message in cut.history for text in recall.texts(message))
        for label, goal in goals_of(cut).items():
            if not cut.needed:
                continue
            found = bounds(cut.needed, cut.history, goal, characters / cut.size)
            for name, share in zip(report.BOUNDS, (found.oracle, found.recency), strict=True):
                case = (name, cut.agent, cut.session, cut.at, label)
                runs[name].append(Run(*case, "fits", used=1.0, scores={"frr": share}))
    about = {"family": "", "note": "segments, not messages", "budgeted": True, "models": False, "versions": {}}
    return {name: about | {"instructions": {}, "runs": to_builtins(each)} for name, each in runs.items()}


def measured(
    peer: type[Peer], cuts: Sequence[cases.Cut], folds: Path | None, patience: float = PATIENCE
) -> dict[str, Any]:
    """Return everything about one row."""
    start = time.monotonic()
    about = {"family": peer.family, "note": peer.note, "budgeted": peer.budgeted, "models": peer.models}
    found: dict[str, Any] = about | {"versions": versions(peer.family), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    try:
        install(peer.family)
        row = Row(peer, folds)
    except Trouble as trouble:
        return found | {"trouble": str(trouble), "instructions": {}, "runs": []}
    runs: list[Run] = []
    try:
        instructions = row.instructions()
        for done, cut in enumerate(cuts, 1):
            runs += row.runs_at(cut)
            if row.timeouts >= TIMEOUTS or row.spent > patience:
                found["trouble"] = f"given up after {done} of {len(cuts)} cuts: too slow"
                break
    finally:
        row.worker.close()
    return found | {"instructions": instructions, "runs": to_builtins(runs), "wall": time.monotonic() - start}


def main() -> None:
    """Run what is asked for and write the page."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--only", default="", help="parts of rows' names, or families, between commas")
    asked.add_argument("--few", action="store_true")
    asked.add_argument("--folds", type=Path, help="weights of refold._salience that never saw the source")
    asked.add_argument("--patience", type=float, default=PATIENCE, help="seconds of processor time for a row")
    for flag in ("--report", "--list", "--lock"):
        asked.add_argument(flag, action="store_true")
    options = asked.parse_args()
    rows = [peer for peer in peers() if _wanted(peer, options.only)]
    if options.list:
        for peer in rows:
            print(f"{peer.name:45} {peer.family or '(this environment)':20} {peer.note}")
        return
    if options.lock:
        for family in TABLE["families"]:
            lock(family)
        return
    folder = HOME / ("few" if options.few else "runs")
    if not options.report:
        _run_rows(rows, options, folder)
    names = [*report.BOUNDS, *(peer.name for peer in peers())]
    report.write([(name, found) for name in names if (found := _known(folder, name))])


def _run_rows(rows: Sequence[type[Peer]], options: argparse.Namespace, folder: Path) -> None:
    cuts = all_cuts(options.few)
    if not cuts:
        sys.exit(f"no recorded sessions in {recall.SHARED / 'data'}; set REFOLD_SHARED")
    vocabularies()
    folder.mkdir(parents=True, exist_ok=True)
    if any(peer.name == report.OURS for peer in rows):
        for name, found in bounded(cuts).items():
            _file(folder, name).write_text(json.dumps(found), "utf-8")
    for peer in rows:
        found = measured(peer, cuts, options.folds, options.patience)
        _file(folder, peer.name).write_text(json.dumps(found), "utf-8")
        fits = sum(run["outcome"] == "fits" for run in found["runs"])
        said = found.get("trouble", "")
        print(
            f"{peer.name:45} {fits}/{len(found['runs'])} {found.get('wall', 0):.0f} s {said}",
            file=sys.stderr,
            flush=True,
        )


def _wanted(peer: type[Peer], only: str) -> bool:
    return not only or any(part in peer.name or part == peer.family for part in only.split(","))


def _file(folder: Path, name: str) -> Path:
    return folder / ("".join(sign if sign.isalnum() else "-" for sign in name) + ".json")


def _known(folder: Path, name: str) -> dict[str, Any] | None:
    path = _file(folder, name)
    found: dict[str, Any] | None = json.loads(path.read_text("utf-8")) if path.exists() else None
    return found


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "130")
    main()
