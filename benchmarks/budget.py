"""How well each policy meets a goal: size by exact count, share of the goal used, provider rules, time.

    python benchmarks/budget.py                    the sample conversations
    REFOLD_SHARED=… python benchmarks/budget.py    also recorded sessions of 20,000 tokens and more in its folder data/
    python benchmarks/budget.py --rows --json      every run, as JSON lines

Goals are half and a quarter of a conversation's size, and 32,000 tokens where that is less than its size. No model is
asked: where a policy wants a summary, it is refused. A run fits, or it is a typed error that says what cannot shrink;
a run is over if an exact count of what came out is above the goal.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import refold
from refold import policies
from refold._samples import SampleConversation, conversations

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("REFOLD_SHARED", ROOT.parent / "shared"))
LEAST = 20_000  # tokens of a recorded session that is worth compacting
GOALS = ("50%", "25%", "32k")


class Run(Struct, frozen=True):
    """One policy on one conversation with one goal; `outcome` is "fits", "over", "unchanged" or an error's name."""

    policy: str
    conversation: str
    goal: str
    asked: int
    before: int
    after: int
    outcome: str
    violations: int
    ms: float
    error: str = ""


def sources(shared: Path) -> list[str]:
    """Return the names of all conversations: samples, and files of recorded sessions."""
    files = sorted(path for path in (shared / "data").rglob("*") if path.suffix in (".json", ".jsonl", ".traj"))
    return [example.name for example in conversations()] + [str(path) for path in files]


@cache
def load(source: str) -> tuple[SampleConversation, ...]:
    """Return the conversations of a source; none for a file that holds nothing large enough or cannot be read."""
    samples = {example.name: example for example in conversations()}
    if source in samples:
        return (samples[source],)
    from refold.transcripts import read

    try:
        recorded = read(source, lenient=True)
    except refold.RefoldError:
        return ()
    name = "/".join(Path(source).parts[-3:])
    found = (
        SampleConversation(f"{name}#{place}", "", each.format, each.messages, each.system, each.tools)
        for place, each in enumerate(recorded)
    )
    return tuple(each for each in found if _tokens(each, each.messages) >= LEAST)


def runs_of(source: str) -> list[Run]:
    """Run every policy with every goal on the conversations of a source."""
    return [
        run(example, policy, goal)
        for example in load(source)
        for policy in policies.names()
        for goal in GOALS
        if _asked(goal, _tokens(example, example.messages)) < _tokens(example, example.messages)
    ]


def run(example: SampleConversation, policy: str, goal: str) -> Run:
    """Return what one pass did."""
    before = _tokens(example, example.messages)
    asked, known = _asked(goal, before), _violations(example, example.messages)
    start = perf_counter()
    try:
        made = refold.compact(
            example.messages,
            format=example.format,
            policy=policy,
            budget=asked,
            system=example.system,
            tools=example.tools,
        )
    except refold.RefoldError as error:
        ms = (perf_counter() - start) * 1000
        return Run(policy, example.name, goal, asked, before, 0, type(error).__name__, 0, ms, str(error)[:200])
    except Exception as error:  # a bug of ours is a row of the table, not the end of it
        ms = (perf_counter() - start) * 1000
        return Run(policy, example.name, goal, asked, before, 0, f"BUG {type(error).__name__}", 0, ms, str(error)[:200])
    ms = (perf_counter() - start) * 1000
    after = _tokens(example, made.messages)
    fresh = max(_violations(example, made.messages) - known, 0)
    outcome = "unchanged" if made.plan.empty else "fits" if after <= asked else "over"
    return Run(policy, example.name, goal, asked, before, after, outcome, fresh, ms)


def summary(runs: Iterable[Run], policy: str) -> dict[str, Any]:
    """Return what the runs of one policy come to."""
    own = [each for each in runs if each.policy == policy]
    fits = [each for each in own if each.outcome == "fits"]
    kinds = sorted({each.outcome for each in own} - {"fits"})
    return {
        "policy": policy,
        "runs": len(own),
        "fits": len(fits) / len(own) if own else 0.0,
        "used": median(each.after / each.asked for each in fits) if fits else 0.0,
        "over": sum(each.outcome == "over" for each in own),
        "violations": sum(each.violations for each in own),
        "ms": median(each.ms for each in own) if own else 0.0,
        "ms_most": max((each.ms for each in own), default=0.0),
        "others": {kind: sum(each.outcome == kind for each in own) for kind in kinds},
    }


def _asked(goal: str, size: int) -> int:
    return {"50%": size // 2, "25%": size // 4, "32k": 32_000}[goal]


def _tokens(example: SampleConversation, messages: Any) -> int:
    return refold.count(messages, format=example.format, system=example.system, tools=example.tools)


def _violations(example: SampleConversation, messages: Any) -> int:
    return len(refold.violations(messages, format=example.format))


def show(runs: list[Run], console: Console, *, rows: bool) -> None:
    """Print a summary for each policy, and every run where that is asked for."""
    if rows:
        table = Table(
            "conversation", "policy", "goal", "asked", "after", "used", "outcome", "broken", "ms", show_edge=False
        )
        for each in sorted(runs, key=lambda each: (each.conversation, each.goal, each.policy)):
            used = f"{each.after / each.asked:.0%}" if each.after else ""
            sizes = (f"{each.asked:,}", f"{each.after:,}", used)
            table.add_row(
                each.conversation, each.policy, each.goal, *sizes, each.outcome, str(each.violations), f"{each.ms:,.0f}"
            )
        console.print(table)
    table = Table("policy", "runs", "fit", "goal used", "over", "broken", "ms", "most ms", show_edge=False)
    summaries = [summary(runs, policy) for policy in policies.names()]
    for found in summaries:
        table.add_row(
            found["policy"], str(found["runs"]), f"{found['fits']:.1%}", f"{found['used']:.1%}", str(found["over"]),
            str(found["violations"]), f"{found['ms']:,.0f}", f"{found['ms_most']:,.0f}",
        )  # fmt: skip
    console.print(table)
    for found in summaries:
        if found["others"]:
            rest = ", ".join(f"{kind} {count}" for kind, count in found["others"].items())
            console.print(f"{found['policy']} otherwise: {rest}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", action="store_true", help="print every run")
    parser.add_argument("--json", action="store_true", help="print JSON lines: runs if --rows, then summaries")
    parser.add_argument("--samples", action="store_true", help="leave out recorded sessions")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    console = Console(stderr=options.json)
    names = sources(Path(os.devnull) if options.samples else SHARED)
    runs: list[Run] = []
    with (
        Progress(console=console, disable=not console.is_terminal) as progress,
        ProcessPoolExecutor(options.workers) as pool,
    ):
        task = progress.add_task("conversations", total=len(names))
        for done in as_completed([pool.submit(runs_of, name) for name in names]):
            runs += done.result()
            progress.advance(task)
    if options.json:
        found = [to_builtins(each) for each in runs] if options.rows else []
        found += [summary(runs, policy) for policy in policies.names()]
        sys.stdout.write("".join(json.dumps(each) + "\n" for each in found))
    else:
        show(runs, console, rows=options.rows)


if __name__ == "__main__":
    main()
