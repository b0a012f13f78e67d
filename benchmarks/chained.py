"""Eight compactions of a view that knows no originals, against one plan over the originals, on recorded sessions.

    REFOLD_SHARED=… python benchmarks/chained.py
    python benchmarks/chained.py --policies all --only entireio-cli
    python benchmarks/chained.py --json > ROWS.jsonl; python benchmarks/chained.py --rows ROWS.jsonl

A stateless client keeps only what came back: it compacts its view to 40 % of its window, goes on until the window is full,
and compacts the result again (*chained*). A client that kept everything makes one plan over the originals of the same goal
each time (*planned*). The window is such that a session of the recording fills it eight times. After each cycle both are
asked for what the rest of the session needed, as in `benchmarks/recall.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert
from rich.table import Table

sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks import recall, rivals
from benchmarks.pool import print_rows, worked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.messages import Message

CYCLES = 8
GOAL = 0.4  # of the window, after each compaction
END = 0.9  # of the session, where the last cycle ends
LEAST, MOST = 60_000, 400_000  # tokens of a session
COLUMNS = ("frr", "fic", "ctx", "ear", "kept", "ends")


class Cycle(Struct, frozen=True):
    """What is left after one compaction of one session, chained and planned."""

    policy: str
    agent: str
    session: str
    cycle: int
    size: int  # tokens of the originals so far
    goal: int
    outcome: str = "fits"
    chained: dict[str, float | None] = {}
    planned: dict[str, float | None] = {}


def cycles_of(path: Path, policies: Sequence[str], folds: Path | None) -> list[Cycle]:
    """Return every cycle of the sessions of a file."""
    found: list[Cycle] = []
    for agent, name, session, messages, sizes in recall.sessions_of(path, folds, LEAST):
        found += _cycles((agent, name), session.format, list(session.messages), messages, sizes, policies)
    return found


def _cycles(
    case: tuple[str, str],
    format: str,
    known: list[Any],
    messages: Sequence[Message],
    sizes: Sequence[int],
    policies: Sequence[str],
) -> Iterator[Cycle]:
    window = min(sum(sizes), MOST) * END / (1 + (CYCLES - 1) * (1 - GOAL))
    goal = int(window * GOAL)
    views: dict[str, list[Any]] = {policy: [] for policy in policies}
    before = 0
    for number, cut in enumerate(_cuts(messages, sizes, window), 1):
        demand = recall.Demand.of(messages[:cut], messages[cut:])
        size = sum(sizes[:cut])
        for policy in list(views):
            chained = rivals.compacted(policy, views[policy] + known[before:cut], format, goal)
            planned = rivals.compacted(policy, known[:cut], format, goal)
            this = partial(Cycle, policy, *case, number, size, goal)
            if isinstance(chained, str) or isinstance(planned, str):
                yield this(outcome=str(chained) if isinstance(chained, str) else str(planned))
                del views[policy]
                continue
            views[policy] = list(chained.native)
            yield this(chained=recall.scored(demand, chained.messages), planned=recall.scored(demand, planned.messages))
        before = cut


def _cuts(messages: Sequence[Message], sizes: Sequence[int], window: float) -> list[int]:
    """Return the places before an assistant's message where the window is full once more."""
    found: list[int] = []
    spent, full = 0, window
    for place, message in enumerate(messages):
        if len(found) < CYCLES and spent >= full and message.role == "assistant" and place > 4:
            found.append(place)
            full += window * (1 - GOAL)
        spent += sizes[place]
    return found


def tables(found: Sequence[Cycle]) -> Iterator[Table]:
    """Yield a table of FRR by cycle, and one of all columns with the worst cycle."""
    policies = list(dict.fromkeys(each.policy for each in found))
    by_cycle = Table(title="FRR planned, and chained less planned, by cycle (means over sessions)")
    for column in ("policy", *(str(number + 1) for number in range(CYCLES)), "all"):
        by_cycle.add_column(column, justify="left" if column == "policy" else "right")
    for policy in policies:
        mine = [each for each in found if each.policy == policy]
        cells = [_cell([each for each in mine if each.cycle == number + 1], "frr") for number in range(CYCLES)]
        by_cycle.add_row(policy, *cells, _cell(mine, "frr"))
    yield by_cycle
    sessions = len({(each.agent, each.session) for each in found})
    every = Table(title=f"planned, and chained less planned · {sessions} sessions; worst single cycle in brackets")
    for column in ("policy", *COLUMNS, "fits"):
        every.add_column(column, justify="left" if column == "policy" else "right")
    for policy in policies:
        mine = [each for each in found if each.policy == policy]
        cells = [f"{_cell(mine, column)} ({min(_gaps(mine, column), default=0):+.2f})" for column in COLUMNS]
        every.add_row(policy, *cells, f"{sum(each.outcome == 'fits' for each in mine)}/{len(mine)}")
    yield every


def _gaps(some: Sequence[Cycle], column: str) -> list[float]:
    pairs = ((each.chained.get(column), each.planned.get(column)) for each in some)
    return [chained - planned for chained, planned in pairs if chained is not None and planned is not None]


def _cell(some: Sequence[Cycle], column: str) -> str:
    gaps = _gaps(some, column)
    if not gaps:
        return "–"
    planned = [score for each in some if (score := each.planned.get(column)) is not None]
    return f"{mean(planned):.3f} {mean(gaps):+.3f}"


def main() -> None:
    """Run every policy through the cycles of every session, and print tables or rows."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--policies", default="refold", help="names between commas, or all")
    asked.add_argument("--only", default="", help="a part of the paths to run")
    asked.add_argument("--folds", type=Path)
    asked.add_argument("--jobs", type=int, help="processes; one a core by default")
    asked.add_argument("--json", action="store_true")
    asked.add_argument("--rows", type=Path, help="cycles that --json has written, instead of new ones")
    options = asked.parse_args()
    names = rivals.names() if options.policies == "all" else options.policies.split(",")
    found: list[Cycle] = []
    if options.rows:
        found = [convert(json.loads(line), Cycle) for line in options.rows.read_text("utf-8").splitlines()]
    else:
        files = recall.files_of(options.only)
        for some in worked("files", cycles_of, files, names, options.folds, jobs=options.jobs):
            found += some
    print_rows(found, tables(found), as_json=options.json, width=190)


if __name__ == "__main__":
    main()
