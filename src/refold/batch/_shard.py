"""What a worker does: the transcripts of a task become a table; the same task always gives the same table."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct

from refold.batch._packages import needed
from refold.batch._rows import error_row, rows_of
from refold.batch._schema import parquet_of, table_of
from refold.errors import UsageError
from refold.replay._parallel import version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.batch._settings import BatchSettings

__all__ = ["ReplayedFile", "ReplayedShard", "replay_files", "replay_shard"]

DEATHS = 2  # of the process that replays a file alone, until the file becomes a row with that error
READY = b"ready"


class ReplayedFile(Struct, frozen=True):
    """A file of a finished task: its path, the hash of its content ("": it could not be read), its rows and errors."""

    path: str
    digest: str
    rows: int
    errors: int


class ReplayedShard(Struct, frozen=True):
    """A finished task: the bytes of its Parquet file, and its files."""

    parquet: bytes
    files: tuple[ReplayedFile, ...]


def replay_files(paths: Sequence[str], settings: BatchSettings) -> Any:
    """Replay transcripts and return a `pyarrow.Table`, one row for each conversation and policy.

    It depends on nothing but the files and the settings, so it can be run on any cluster and run again. A file that
    cannot be read or replayed is a row with an `error`. `docs/batch.md` lists the columns.

    Raises:
        UnknownPolicy: the settings name a policy that is not there.
        UsageError: pyarrow or fsspec is not installed.
    """
    _check(settings)
    return table_of([row for path in paths for row in rows_of(path, settings)])


def replay_shard(paths: tuple[str, ...], settings: BatchSettings, code: str, *, apart: bool = False) -> ReplayedShard:
    """Replay the files of a task. `apart` replays them in a child process, so that the worker survives a file's crash.

    Raises:
        UsageError: this worker has another version of refold than `code`, or lacks a package.
    """
    if version() != code:
        raise UsageError("a worker has another version of refold than this process: install the same one on all")
    _check(settings)
    by_file = list(_rows_apart(paths, settings)) if apart else [rows_of(path, settings) for path in paths]
    return shard_of(paths, by_file)


def shard_of(paths: Sequence[str], by_file: Sequence[list[dict[str, Any]]]) -> ReplayedShard:
    """Return the finished task of files and the rows of each."""
    table = table_of([row for rows in by_file for row in rows])
    files = tuple(
        ReplayedFile(path, rows[0].get("digest") or "", len(rows), sum("error" in row for row in rows))
        for path, rows in zip(paths, by_file, strict=True)
    )
    return ReplayedShard(parquet_of(table), files)


def _check(settings: BatchSettings) -> None:
    """Fail at once where every file would fail."""
    from refold import policies
    from refold.replay._run import NONE

    needed("fsspec")
    for name in settings.names:
        if name != NONE:
            policies.find(name)


def _rows_apart(paths: Sequence[str], settings: BatchSettings) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each file, replayed in child processes: a new one goes on where one was ended."""
    place, deaths = 0, 0
    while place < len(paths):
        ended = "without an answer"
        for rows in (child := _Child(paths[place:], settings)):
            place, deaths = place + 1, 0
            yield rows
        if place < len(paths):
            ended = child.ended()
            deaths += 1
            if deaths == DEATHS:
                yield [error_row(paths[place], f"the process that replays it was ended {deaths} times ({ended})")]
                place, deaths = place + 1, 0


class _Child:
    """A process that replays files one after another and sends the rows of each."""

    def __init__(self, paths: Sequence[str], settings: BatchSettings) -> None:
        import os

        environment = os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "refold.batch._child"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
        )  # fmt: skip
        self._task = (tuple(paths), settings)

    def __iter__(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows of each file until the process ends."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with stdin, stdout:
            try:
                pickle.dump(self._task, stdin)
                stdin.close()
            except BrokenPipeError:
                pass
            if _received(stdout) != READY:
                self._process.wait()
                raise RuntimeError(f"a process that replays files apart did not start ({self.ended()})")
            while (rows := _received(stdout)) is not None:
                yield rows
        self._process.wait()

    def ended(self) -> str:
        """Say how the process ended."""
        code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def _received(stream: IO[bytes]) -> Any:
    """Return the next object that a child sent, None where it ended."""
    try:
        return pickle.load(stream)  # noqa: S301 - from a process of ours
    except (EOFError, pickle.UnpicklingError):
        return None
