"""What a turn of a session costs at 10k and at 1M tokens, below the trigger.

    python benchmarks/sessions.py [--json] [--sizes 10k,1M] [--turns 60] [--store memory|sqlite|URL]

A turn appends an exchange, reports usage, asks whether compaction is due, and takes the view to send.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from refold.sessions import Session, open_store
from tools.sample_sessions.sized import exchanges, sized

sys.path.append(str(Path(__file__).resolve().parent.parent))


GOAL = 2.0  # times the cost of the smallest conversation


def measured(where: str, sizes: list[int], turns: int, planned: bool) -> list[dict[str, float]]:
    """Milliseconds of a turn in conversations of so many tokens: medians, and of those the part that writes.

    The conversations take turns, so that a disk that is slow for a while is slow for all of them.
    """
    with open_store(where) as store:
        talks = []
        for tokens in sizes:
            session = Session(store, f"s{tokens}{planned}", window=4_000_000, policy="opal")
            session.append(sized(tokens))
            if planned:
                session.condense(session.ids[1], session.ids[1], "the task")
            session.needs_compaction()
            talks.append((session, tokens, [], []))
        gc.collect()
        for exchange in islice(exchanges(7), turns):
            for session, tokens, spent, written in talks:
                start = time.perf_counter()
                session.append(exchange)
                session.report({"prompt_tokens": tokens, "completion_tokens": 50})
                stored = time.perf_counter()
                assert not session.needs_compaction()
                session.view()
                spent.append(1000 * (time.perf_counter() - start))
                written.append(1000 * (stored - start))
        return [_row(store, *talk) for talk in talks]


def _row(store, session, tokens, spent, written) -> dict[str, float]:
    start = time.perf_counter()
    again = Session(store, session.id, window=4_000_000, policy="opal")
    opened = 1000 * (time.perf_counter() - start)
    assert again.view() == session.view()
    return {
        "turn_ms": statistics.median(spent),
        "of that append and report": statistics.median(written),
        "open_ms": opened,
    }


def number(text: str) -> int:
    return int(float(text.lower().rstrip("km")) * {"k": 1_000, "m": 1_000_000}.get(text[-1].lower(), 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", default="10k,100k,1M")
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--store", default="sqlite")
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        where = str(Path(folder) / "sessions.db") if given.store == "sqlite" else given.store
        for planned in (False, True):
            sizes = given.sizes.split(",")
            figures = measured(where, [number(size) for size in sizes], given.turns, planned)
            rows += [
                {"tokens": size, "plan in force": planned, **row, "ratio": row["turn_ms"] / figures[0]["turn_ms"]}
                for size, row in zip(sizes, figures, strict=True)
            ]
    if given.json:
        print(json.dumps(rows))
    else:
        print(
            "| tokens | plan in force | turn, ms | of that append and report | ratio | opening, ms |\n|---|---|---|---|---|---|"
        )
        for row in rows:
            plan = "yes" if row["plan in force"] else "no"
            figures = (row["turn_ms"], row["of that append and report"], row["ratio"], row["open_ms"])
            print(f"| {row['tokens']} | {plan} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |")
    return int(any(row["ratio"] >= GOAL for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
