"""What `refold` makes of the bill of recorded sessions: by its fraction, and by the size of least cost.

    REFOLD_SHARED=… python benchmarks/bills.py            recorded sessions in its folder data/
    python benchmarks/bills.py --window 1M --read 0.05    another window, another price of a cached token
    python benchmarks/bills.py --json                     every run, as JSON lines

Every session of at least `--calls` calls is replayed call by call without a model (`refold.replay`), at the prices of
claude-opus-4-5 with the given price of a cached token, against doing nothing. What would have to be read again is
charged. Doing nothing goes on beyond the window, which no provider allows: *over* counts those calls.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from refold import policies
from refold._compaction.options import Options
from refold.core.budget import Exactly, LeastCost
from refold.errors import RefoldError
from refold.replay._quality import cuts_of
from refold.replay._run import replayed
from refold.replay._timeline import timeline
from refold.replay._timestamps import stamps
from refold.replay.pricing import Tariff, UserPrices, tariff_for
from refold.transcripts import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.policy import Policy
    from refold.replay._run import Run
    from refold.transcripts import RecordedConversation

MODEL = "claude-opus-4-5"
SHARED = Path(os.environ.get("REFOLD_SHARED", Path(__file__).parent.parent.parent / "shared"))
LONG = 400  # calls


def contestants(tariff: Tariff) -> dict[str, Policy]:
    """Return the policy as it is, and with a trigger of least cost at these prices."""
    policy = policies.find("refold")
    share, write = tariff.cache_read / tariff.input, tariff.cache_write / tariff.input
    found = {"refold": policy}
    for kept in (30_000, 50_000):
        trigger = LeastCost(read=share, write=write, compacted_size=kept)
        found[f"least cost, {kept // 1_000}k kept"] = replace(
            policy, trigger=trigger, goal=Exactly(kept, messages_only=True)
        )
    return found


def sessions(folder: Path, calls: int) -> Iterator[tuple[str, RecordedConversation, str]]:
    """Yield recorded conversations with enough messages, with what to call them and their files."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            found = read(str(path), lenient=True)
        except RefoldError:
            continue
        for talk in found:
            if len(talk.messages) >= calls:
                yield f"{path.relative_to(folder)}", talk, str(path)


def runs(talk: RecordedConversation, source: str, window: int, calls: int, tariff: Tariff) -> dict[str, Run]:
    """Return the runs of one conversation, doing nothing first; none where it is too short or does not fit."""
    line = timeline(talk, stamps(talk, source) if talk.usage else (), model=MODEL)
    if len(line.beats) < calls:
        return {}
    options = Options(format=talk.format, model=MODEL, window=window, system=talk.system, tools=talk.tools)
    cuts = cuts_of(line)
    every: dict[str, Policy | None] = {"none": None, **contestants(tariff)}
    try:
        return {name: replayed(line, policy, tariff, options, cuts=cuts) for name, policy in every.items()}
    except RefoldError:
        return {}


def row(name: str, policy: str, run: Run, base: Run) -> dict[str, Any]:
    """Return the figures of one run."""
    kept = [each.recall for each in run.quality if each.recall is not None]
    return {
        "session": name,
        "policy": policy,
        "calls": len(run.context),
        "compactions": len(run.compactions),
        "mean": run.mean,
        "peak": run.peak,
        "over": base.over,
        "change": run.bill / base.bill - 1,
        "recall": mean(kept) if kept else None,
    }


def tokens(text: str) -> int:
    """Return a number of tokens written as 200k or 1M."""
    factor = {"k": 1_000, "m": 1_000_000}.get(text[-1].lower(), 1)
    return int(float(text[:-1] if factor > 1 else text) * factor)


def main() -> int:
    """Replay and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path, default=SHARED / "data")
    parser.add_argument("--window", type=tokens, default=200_000)
    parser.add_argument("--read", type=float, default=0.10, help="price of a cached token, as a share of input")
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not given.folder.is_dir():
        print(f"no folder {given.folder}: name one with recorded sessions", file=sys.stderr)
        return 2
    plain = tariff_for(MODEL)
    tariff = tariff_for(MODEL, UserPrices(cache_read=plain.input * given.read))
    rows: list[dict[str, Any]] = []
    for name, talk, source in sessions(given.folder, given.calls):
        made = runs(talk, source, given.window, given.calls, tariff)
        base = made.pop("none", None)
        some = [row(name, policy, run, base) for policy, run in made.items()] if base else []
        if given.json:
            print("\n".join(map(json.dumps, some)), end="\n" if some else "", flush=True)
        if any(each["compactions"] for each in some):
            rows += some
    if not given.json:
        show(rows)
    return 0


def show(rows: list[dict[str, Any]]) -> None:
    """Print a table of the sessions in which something was compacted, and what they come to."""
    names = list(dict.fromkeys(each["policy"] for each in rows))
    table = Table("session", "calls", "over", *names, title="change of the bill (recall)")
    for session in dict.fromkeys(each["session"] for each in rows):
        some = [each for each in rows if each["session"] == session]
        cells = (f"{each['change']:+.1%} ({_share(each['recall'])})" for each in some)
        table.add_row(session, str(some[0]["calls"]), str(some[0]["over"]), *cells)
    table.add_section()
    for title, least in (("all, median", 0), (f"{LONG} calls or more, median", LONG)):
        cells = (
            f"{median(_changes(rows, name, least)):+.1%}" if _changes(rows, name, least) else "-" for name in names
        )
        table.add_row(title, "", "", *cells)
    table.add_row("all, mean", "", "", *(f"{mean(_changes(rows, name)):+.1%}" for name in names))
    table.add_row("worst", "", "", *(f"{max(_changes(rows, name)):+.1%}" for name in names))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _changes(rows: list[dict[str, Any]], policy: str, least: int = 0) -> list[float]:
    return [each["change"] for each in rows if each["policy"] == policy and each["calls"] >= least]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    raise SystemExit(main())
