"""What policies make of the bill of recorded sessions, against doing nothing, by window and price of a cached token.

    REFOLD_SHARED=… python benchmarks/bills.py            the table: all policies, three windows, three prices
    python benchmarks/bills.py --windows 200k --reads 0.05 --policies refold,refold-at-once
    python benchmarks/bills.py --recall                   with recall at cuts of each session (takes longer)
    python benchmarks/bills.py --json                     every run, as JSON lines

Every session of at least `--calls` calls is replayed call by call without a model (`refold.replay`), at the prices of
claude-opus-4-5 with the given price of a cached token. Every compaction is charged three calls and 10,000 tokens that are
read again; with `--replayed` what the replay finds to be read again is charged instead. *worst* is over the sessions for
which doing nothing is possible: no request of theirs is above what the window leaves for input. *worst, window*: none is
above the window itself, so that a compaction may be forced by the room that is reserved for the answer. `refold-at-once`
is `refold` without waiting: it compacts at 80 %, as it did before; `least-cost-N` compacts at the size of least cost and
leaves N tokens of messages.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from itertools import product
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from refold import policies
from refold._compaction.options import Options
from refold._compaction.request import budget_for
from refold.core.break_even import ANSWER, READ_AGAIN_CALLS, READ_AGAIN_TOKENS
from refold.core.budget import Exactly, LeastCost, Share
from refold.errors import RefoldError
from refold.replay._quality import cuts_of
from refold.replay._run import replayed
from refold.replay._timeline import timeline
from refold.replay._timestamps import stamps
from refold.replay.pricing import CallTokens, Tariff, UserPrices, tariff_for
from refold.transcripts import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.policy import Policy
    from refold.replay._run import Run
    from refold.replay._timeline import Timeline
    from refold.transcripts import RecordedConversation

MODEL = "claude-opus-4-5"
SHARED = Path(os.environ.get("REFOLD_SHARED", Path(__file__).parent.parent.parent / "shared"))
AT_ONCE = "refold-at-once"
LEAST = "least-cost-"


def contestant(name: str, tariff: Tariff) -> Policy:
    """Return a policy by its name in the table."""
    policy = policies.find("refold" if name == AT_ONCE or name.startswith(LEAST) else name)
    if name == AT_ONCE:
        return replace(policy, trigger=Share(0.8, inclusive=True))
    if name.startswith(LEAST):
        size, prices = tokens(name.removeprefix(LEAST)), tariff.shares
        trigger = LeastCost(read=prices.read, write=prices.write, compacted_size=size)
        return replace(policy, trigger=trigger, goal=Exactly(size, messages_only=True))
    return policy


def depends_on_prices(name: str) -> bool:
    """Tell whether the plans of a policy depend on prices; of the others one run serves for every price."""
    return name == "refold" or name.startswith(LEAST)


def sessions(folder: Path, calls: int, part: str = "") -> Iterator[tuple[str, RecordedConversation, str]]:
    """Yield recorded conversations with enough messages, with what to call them and their files."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and part in str(path)):
        try:
            found = read(str(path), lenient=True)
        except RefoldError:
            continue
        for talk in found:
            if len(talk.messages) >= calls:
                yield f"{path.relative_to(folder)}", talk, str(path)


def bill(run: Run, tariff: Tariff, *, charged: bool) -> float:
    """Return US dollars of a run at the prices of a tariff; `charged`: with three calls and 10,000 tokens each."""
    spent = tariff.spent(run.tokens).dollars + run.summary
    if not charged:
        return spent + run.refetch
    for each in run.compactions:
        call = tariff.spent(CallTokens(each.after, each.after, 0, ANSWER)).dollars
        brought = tariff.spent(CallTokens(READ_AGAIN_TOKENS, 0, READ_AGAIN_TOKENS)).dollars
        spent += READ_AGAIN_CALLS * call + brought
    return spent


def rows_of(name: str, line: Timeline, options: Options, reads: list[float], given: argparse.Namespace) -> list[Any]:
    """Return the figures of one session in one window: a row for each policy and price."""
    tariffs = {price: at_price(price) for price in reads}
    cuts = cuts_of(line) if given.recall else ()
    fetches = bool(given.replayed)
    first = tariffs[reads[0]]
    base = replayed(line, None, first, options, cuts=cuts)
    fits = base.peak <= budget_for(policies.find("refold"), options).input
    found: list[dict[str, Any]] = []
    for policy in given.policies:
        run: Run | None = None
        for price, tariff in tariffs.items():
            if run is None or depends_on_prices(policy):
                run = replayed(line, contestant(policy, tariff), tariff, options, cuts=cuts, fetches=fetches)
            least = bill(base, tariff, charged=not fetches)
            kept = [each.recall for each in run.quality if each.recall is not None]
            found.append(
                {
                    "session": name, "policy": policy, "window": options.window, "read": price,
                    "calls": len(run.context), "compactions": len(run.compactions), "peak": base.peak, "fits": fits,
                    "over": base.over, "change": bill(run, tariff, charged=not fetches) / least - 1,
                    "recall": mean(kept) if kept else None,
                }
            )  # fmt: skip
    return found


def at_price(share: float) -> Tariff:
    """Return the tariff with a cached token at a share of the price of input."""
    plain = tariff_for(MODEL)
    return tariff_for(MODEL, UserPrices(cache_read=plain.input * share))


def tokens(text: str) -> int:
    """Return a number of tokens written as 200k or 1M."""
    factor = {"k": 1_000, "m": 1_000_000}.get(text[-1].lower(), 1)
    return int(float(text[:-1] if factor > 1 else text) * factor)


def main() -> int:
    """Replay and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path, default=SHARED / "data")
    parser.add_argument("--only", default="", help="a part of the path of a session's file")
    parser.add_argument("--windows", default="100k,200k,1M")
    parser.add_argument("--reads", default="0.10,0.05,0.025", help="prices of a cached token, as shares of input")
    parser.add_argument("--policies", type=lambda text: text.split(","), default=["refold", AT_ONCE, *policies.names()])
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--recall", action="store_true")
    parser.add_argument("--replayed", action="store_true", help="charge what the replay finds to be read again")
    parser.add_argument("--sessions", action="store_true", help="show every session in which something was compacted")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not given.folder.is_dir():
        print(f"no folder {given.folder}: name one with recorded sessions", file=sys.stderr)
        return 2
    given.policies = list(dict.fromkeys(given.policies))
    windows, reads = list(map(tokens, given.windows.split(","))), list(map(float, given.reads.split(",")))
    rows: list[dict[str, Any]] = []
    for name, talk, source in sessions(given.folder, given.calls, given.only):
        line = timeline(talk, stamps(talk, source) if talk.usage else (), model=MODEL)
        if len(line.beats) < given.calls:
            continue
        for window in windows:
            options = Options(format=talk.format, model=MODEL, window=window, system=talk.system, tools=talk.tools)
            try:
                some = rows_of(name, line, options, reads, given)
            except RefoldError:  # system prompt and tools alone do not fit this window
                continue
            if given.json:
                print("\n".join(map(json.dumps, some)), flush=True)
            rows += some
    if not given.json:
        show(rows, windows, reads, given)
    return 0


def show(rows: list[dict[str, Any]], windows: list[int], reads: list[float], given: argparse.Namespace) -> None:
    """Print what the sessions come to, for each window and price."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    for window, price in product(windows, reads):
        some = [each for each in rows if each["window"] == window and each["read"] == price]
        fit, inside = ({each["session"] for each in some if test(each)} for test in (_fits, _inside))
        table = Table(
            "policy", "mean", "worst", "worst, window", "compactions", "recall",
            title=f"window {window:,}, cached token at {price:g}: change of the bill, {len({*map(_session, some)})} "
            f"sessions, {len(fit)} fit ({len(inside)} the window)",
        )  # fmt: skip
        for policy in given.policies:
            mine = [each for each in some if each["policy"] == policy]
            recall = [each["recall"] for each in mine if each["recall"] is not None]
            table.add_row(
                policy, f"{mean([each['change'] for each in mine]):+.1%}" if mine else "-",
                _worst(mine, fit), _worst(mine, inside), str(sum(each["compactions"] for each in mine)),
                f"{mean(recall):.3f}" if recall else "-",
            )  # fmt: skip
        console.print(table)
        if given.sessions:
            for each in some:
                if each["compactions"]:
                    console.print(
                        f"{each['policy']:16} {each['change']:+7.1%} {each['compactions']:3} compactions "
                        f"{each['calls']:4} calls, peak {each['peak']:,} {each['session']}"
                    )


def _session(row: dict[str, Any]) -> str:
    return str(row["session"])


def _fits(row: dict[str, Any]) -> bool:
    return bool(row["fits"])


def _inside(row: dict[str, Any]) -> bool:
    return not row["over"]


def _worst(rows: list[dict[str, Any]], among: set[str]) -> str:
    changes = [each["change"] for each in rows if each["session"] in among]
    return f"{max(changes):+.1%}" if changes else "-"


if __name__ == "__main__":
    raise SystemExit(main())
