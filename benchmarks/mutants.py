"""Compacts random mutants of healthy requests: what was valid before must be valid after any policy.

    python -m benchmarks.mutants --runs 100000

Prints how many mutants there were, how many of them were valid, and each failure with its seed; ends with 1 where one
failed. `--seed N --runs 1` tries a single one again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from tests.healthy.mutants import Outcome, tried

CHUNK = 500
SHOWN = 20


def summary(need: Any) -> str:
    return f"GOAL: find the slowest stage.\nDONE: {len(need.messages)} messages were here."


def several(seeds: range) -> list[tuple[int, str, bool, str, str, tuple[str, ...]]]:
    found = []
    for seed in seeds:
        outcome: Outcome = tried(seed, summary)
        made = outcome.mutant
        found.append((seed, made.format, outcome.valid, outcome.refused, outcome.way, outcome.wrong))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print the body of each failure")
    asked = parser.parse_args()
    began = time.perf_counter()
    stop = asked.seed + asked.runs
    chunks = [range(start, min(start + CHUNK, stop)) for start in range(asked.seed, stop, CHUNK)]
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    with ProcessPoolExecutor(asked.workers) as pool:
        for outcomes in pool.map(several, chunks):
            for seed, format, valid, refused, way, wrong in outcomes:
                counts["mutants"] += 1
                counts["valid"] += valid
                counts[f"valid, {format}"] += valid
                counts["refused"] += bool(refused)
                counts[f"refused, {refused}"] += bool(refused)
                counts["failed"] += bool(wrong)
                if wrong:
                    kinds[f"{format}, {wrong[0]}"[:160]] += 1
                    if counts["failed"] <= SHOWN:
                        print(f"seed {seed}: {format}, {way}: {wrong[0]}")
                        if asked.show:
                            _show(seed)
    for name, count in sorted(counts.items()):
        if count:
            print(f"{name:>28} {count:>8,}")
    for kind, count in kinds.most_common(SHOWN):
        print(f"{count:>8,} {kind}")
    print(f"{time.perf_counter() - began:.0f} s")
    return 1 if counts["failed"] else 0


def _show(seed: int) -> None:
    made = tried(seed, summary).mutant
    print(made.changes)
    print(json.dumps(made.body, default=repr)[:20_000])


if __name__ == "__main__":
    sys.exit(main())
