"""Small transcripts that take a few milliseconds to replay, and what a folder of results contains."""

import json
from collections import Counter
from pathlib import Path

import duckdb

from refold.batch import BatchSettings

MODEL = "claude-opus-4-5"
COSTS = BatchSettings(policies=("opal",), model=MODEL, window=8_000, judge=False)


def transcript(turns=6, word="word"):
    return json.dumps(
        {
            "model": MODEL,
            "messages": [
                {"role": role, "content": f"{role} {number} " + f"{word}_{number} " * 40}
                for number in range(turns)
                for role in ("user", "assistant")
            ],
        }
    )


def folder(place: Path, count: int, turns=6) -> list[Path]:
    """Write some transcripts, each different, and return their paths."""
    place.mkdir(parents=True, exist_ok=True)
    paths = [place / f"{number:03}.json" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_text(transcript(turns, f"word{number}"))
    return paths


def rows(out: Path, columns="*") -> list[tuple]:
    """Read all rows of a folder of results, as anyone would who does not know its manifest."""
    return duckdb.sql(f"SELECT {columns} FROM '{out}/results/*.parquet' ORDER BY ALL").fetchall()


def times(out: Path, policy="opal") -> Counter:
    """How often each file has a row of a policy, or a row with an error."""
    return Counter(Path(file).name for file, name in rows(out, "file, policy") if name in (policy, None))


def once(paths) -> Counter:
    return Counter(path.name for path in paths)
