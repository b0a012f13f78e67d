"""Measures `refold batch` on a Dask cluster whose workers are killed, beside two processes that are not.

    python -m benchmarks.batch                        # 10,000 transcripts, a worker killed every 30 seconds
    python -m benchmarks.batch --files 1000 --every 15
    python -m benchmarks.batch --judge                # what is preserved too, which takes several times as long

The transcripts are made from the sample conversations and from the recorded sessions of the tests: each is another piece,
with other words. One in seven is a piece of the long sample, of 160 to 560 kB, which takes most of the time; the others are
6 to 50 kB. They and the results, about 0.7 GB, are in a temporary folder that is removed at the end.

Seconds are those of the wall, so nothing else may run beside it. On two cores Dask's scheduler, client and nannies take
their part of the time that two processes have for themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import distributed
import duckdb

from refold._samples import conversations
from refold.batch import BatchSettings, run_batch

SESSIONS = Path(__file__).parent.parent / "tests" / "data" / "sessions"
RECORDED = ("claude-code/session.jsonl", "codex/rollout.jsonl", "opencode/session.json", "gemini-cli/session.jsonl",
            "cline/session.messages.json", "pi/session.jsonl")  # fmt: skip
MODEL, WINDOW, WORKERS = "claude-opus-4-5", 48_000, 2
LONG = 0.15  # of the transcripts: those that reach the window; with more the two runs take over twelve minutes


class Measured(NamedTuple):
    """A run: its seconds, the workers killed, and how many files have other than one row for each policy."""

    name: str
    seconds: float
    kills: int
    wrong: int
    errors: int


def write_transcripts(folder: Path, count: int) -> int:
    """Write so many transcripts, each different, and return their bytes."""
    chance = random.Random(20261129)
    long = next(each for each in conversations() if each.name == "long-session")
    starts = [at for at, message in enumerate(long.messages) if _is_question(message)]
    recorded = [(SESSIONS / name).read_text("utf-8") for name in RECORDED]
    total = 0
    for number in range(count):
        mark = f"case{number:05}"
        if chance.random() < LONG:
            suffix, text = ".json", _piece(long, starts, chance)
        else:
            suffix, text = ".jsonl", chance.choice(recorded)
        text = text.replace("test", f"{mark} test")
        place = folder / f"{number // 1_000:02}" / f"{mark}{suffix}"
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, "utf-8")
        total += place.stat().st_size
    return total


def _is_question(message: dict[str, Any]) -> bool:
    content = message["content"]
    return message["role"] == "user" and (
        isinstance(content, str) or all(part.get("type") == "text" for part in content)
    )


def _piece(sample: Any, starts: list[int], chance: random.Random) -> str:
    first = chance.randrange(len(starts) - 1)
    last = min(first + chance.randint(1, 2), len(starts) - 1)
    body = {"model": MODEL, "system": sample.system, "tools": sample.tools}
    body["messages"] = sample.messages[starts[first] : starts[last]]
    return json.dumps({key: value for key, value in body.items() if value})


def measured(
    name: str,
    folder: Path,
    out: Path,
    settings: BatchSettings,
    executor: Callable[[], Executor] | None,
    kills: list[int],
) -> Measured:
    """Run a batch over a folder and check that each file is in the results once."""
    begun = time.perf_counter()
    reached = run_batch([str(folder)], str(out), settings, executor=executor, workers=WORKERS)
    seconds = time.perf_counter() - begun
    query = """
        SELECT count(*) FROM (
            SELECT file FROM read_parquet(?) GROUP BY file
            HAVING count(*) FILTER (policy = 'refold' OR policy IS NULL) <> 1
        )
    """
    wrong = duckdb.execute(query, [f"{out}/results/*.parquet"]).fetchall()[0][0]
    files = duckdb.execute("SELECT count(DISTINCT file) FROM read_parquet(?)", [f"{out}/results/*.parquet"]).fetchall()
    return Measured(name, seconds, len(kills), wrong + abs(files[0][0] - reached.files), reached.errors)


@contextmanager
def killer(cluster: Any, every: float) -> Iterator[list[int]]:
    """Kill a worker of a cluster every so many seconds, one after the other; yield the pids."""
    killed: list[int] = []
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(every):
            workers = sorted(cluster.workers.items())
            nanny = workers[len(killed) % len(workers)][1]
            if (pid := nanny.pid) is not None:
                os.kill(pid, 9)
                killed.append(pid)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


def main(arguments: list[str]) -> int:
    """Measure, print a table, and return 1 if a file is missing, doubled, or the share of the throughput is too low."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=10_000, help="number of transcripts [10000]")
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two kills [30]")
    parser.add_argument("--judge", action="store_true", help="compute what is preserved, not costs alone")
    parser.add_argument("--unharmed", action="store_true", help="measure the cluster without kills too")
    chosen = parser.parse_args(arguments)
    settings = BatchSettings(policies=("refold",), model=MODEL, window=WINDOW, judge=chosen.judge)
    with tempfile.TemporaryDirectory(prefix="refold-batch-") as name:
        place = Path(name)
        (place / "in").mkdir()
        size = write_transcripts(place / "in", chosen.files)
        print(f"{chosen.files:,} transcripts, {size / 1e6:,.0f} MB\n", flush=True)
        runs = [measured("two processes", place / "in", place / "processes", settings, None, [])]
        _print(runs[-1], runs[0], chosen.files)
        kinds = [("Dask", 0.0)] if chosen.unharmed else []
        for label, every in [*kinds, (f"Dask, a worker killed every {chosen.every:g} s", chosen.every)]:
            with (
                distributed.LocalCluster(
                    n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
                ) as cluster,
                distributed.Client(cluster, set_as_default=False) as client,
            ):
                make = partial(client.get_executor, pure=False)
                out = place / f"dask-{every:g}"
                if every:
                    with killer(cluster, every) as kills:
                        runs.append(measured(label, place / "in", out, settings, make, kills))
                else:
                    runs.append(measured(label, place / "in", out, settings, make, []))
                _print(runs[-1], runs[0], chosen.files)
    return int(any(run.wrong for run in runs) or runs[0].seconds / runs[-1].seconds < 0.9)


def _print(run: Measured, base: Measured, files: int) -> None:
    if run is base:
        print("| run | seconds | files a second | of two processes | workers killed | errors | files not once |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    share = base.seconds / run.seconds
    print(
        f"| {run.name} | {run.seconds:,.1f} | {files / run.seconds:,.1f} | {share:.2f} | {run.kills} | {run.errors} "
        f"| {run.wrong} |",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
