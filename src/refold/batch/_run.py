"""Runs a batch: hands tasks to an executor, stores what comes back, and goes on when workers die."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold.batch._inputs import JUDGED, InputFile, files_of, shards_of
from refold.batch._manifest import ResultFolder
from refold.batch._packages import needed
from refold.batch._rows import clean, error_row
from refold.batch._settings import BatchSettings
from refold.batch._shard import ReplayedShard, replay_shard, shard_of
from refold.batch._storage import real_path, storage_of
from refold.errors import OutsideError
from refold.replay._parallel import cores, quiet, version

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BatchProgress", "run_batch"]

AHEAD = 2  # tasks for each worker that are handed out, so that none waits for the next
APART = 2  # deaths of a task's worker from which on its files are replayed apart from the worker
SPLIT = 4  # deaths from which on a task is cut in halves, which a worker finishes sooner
LAST = 12  # deaths of the worker of a single file, though replayed apart, until it becomes a row with that error
AT_FIRST = 10  # deaths before any task is finished, from which on the workers' surroundings must be at fault
IN_A_ROW = 40  # deaths without a finished task between them, later on


class BatchProgress(Struct, frozen=True):
    """How far a batch is, in files: all, finished by this run, finished by earlier ones, and with an error of both."""

    files: int
    finished: int = 0
    finished_before: int = 0
    errors: int = 0

    @property
    def left(self) -> int:
        """The files that have no results yet."""
        return self.files - self.finished - self.finished_before


class _BatchTask(Struct, frozen=True):
    """Files that are handed out together, and how often their worker has died."""

    files: tuple[InputFile, ...]
    deaths: int = 0


def run_batch(
    inputs: Sequence[str], out: str, settings: BatchSettings | None = None, *,
    executor: Executor | Callable[[], Executor] | None = None, workers: int | None = None, retry: bool = False,
    on_progress: Callable[[BatchProgress], None] | None = None,
) -> BatchProgress:  # fmt: skip
    """Replay transcripts into a folder of Parquet files, each file exactly once over any number of runs.

    A run that is ended, also by `kill -9`, loses only the tasks under way; the next one with the same folder goes on.
    A file that cannot be replayed, or whose worker dies again and again, becomes a row with an `error`.

    Args:
        inputs: files, folders and patterns, each a local path or a URL that fsspec knows.
        out: folder for the results, a local path or a URL; created where it is missing.
        settings: policies, sizes and prices; by default what policy `refold` costs and preserves.
        executor: a `concurrent.futures.Executor`, for example `client.get_executor(pure=False)` of Dask, or a function
            that returns one and is called again when its workers die; by default processes on this machine.
        workers: how many of the executor's workers may be busy; all cores by default.
        retry: replay files again that have a row with an error.
        on_progress: called at the beginning and after each task.

    Raises:
        UnreadableTranscript: an input does not exist, or a folder is empty.
        UsageError: the folder holds results of other settings or another version, or a package is missing.
        OutsideError: workers die before they finish anything.
        OSError: the results cannot be written; what was finished stays.
    """
    settings = BatchSettings() if settings is None else settings
    needed("pyarrow.parquet")
    results, place = storage_of(out)
    own = f"{real_path(results.url(place))}/"
    files = [file for file in files_of(inputs) if not real_path(file.path).startswith(own)]
    count = cores() if workers is None else workers
    with ResultFolder(out).written(settings) as folder:
        pending = folder.pending(files, retry=retry)
        run = _BatchRun(folder, settings, {clean(file.path) for file in files}, pending, on_progress)
        work = max(len(settings.names) - 1, 1) * (JUDGED if settings.judge else 1)
        tasks = [_BatchTask(shard) for shard in shards_of(pending, count, work)]
        run.work(tasks, _Workers(executor, min(count, max(len(tasks), 1))))
        folder.tidy()
        return run.progress


class _Workers:
    """An executor, made anew when it is broken."""

    def __init__(self, executor: Executor | Callable[[], Executor] | None, count: int) -> None:
        self._make = executor if callable(executor) else None
        if executor is None:
            context = get_context("spawn")  # a fork would copy the threads of the caller
            self._make = partial(ProcessPoolExecutor, count, mp_context=context, initializer=quiet)
        self._given_executor = executor if isinstance(executor, Executor) else None
        self._current: Executor | None = None
        self.room = count * AHEAD

    def submit(self, task: _BatchTask, settings: BatchSettings) -> Future[ReplayedShard]:
        """Hand out a task."""
        if self._current is None:
            self._current = self._make() if self._make else self._given_executor
        assert isinstance(self._current, Executor)
        paths = tuple(file.path for file in task.files)
        return self._current.submit(replay_shard, paths, settings, version(), apart=task.deaths >= APART)

    def renew(self) -> None:
        """Leave a broken executor; the next task goes to a new one.

        Raises:
            OutsideError: the caller's executor cannot be made again.
        """
        if self._make is None:
            raise OutsideError(
                "the executor is broken, because one of its workers died: pass a function that returns an executor, "
                "so that a new one can be made; what was finished is kept"
            )
        self.close()
        self._current = None

    def close(self) -> None:
        """Stop handing out work; an executor of the caller's own stays open."""
        if self._make is not None and self._current is not None:
            self._current.shutdown(wait=False)


class _BatchRun:
    """One run over the files that have no results yet."""

    def __init__(
        self, folder: ResultFolder, settings: BatchSettings, paths: set[str], pending: Sequence[InputFile],
        on_progress: Callable[[BatchProgress], None] | None,
    ) -> None:  # fmt: skip
        self._folder, self._settings, self._on_progress = folder, settings, on_progress
        waiting = {clean(file.path) for file in pending}
        before = [record for path, record in folder.records().items() if path in paths - waiting]
        self._progress = BatchProgress(
            len(paths), finished_before=len(paths) - len(waiting), errors=sum(record.errors > 0 for record in before)
        )
        self._deaths_in_a_row = 0

    @property
    def progress(self) -> BatchProgress:
        """How far the batch is."""
        return self._progress

    def work(self, tasks: Iterable[_BatchTask], workers: _Workers) -> None:
        """Finish all tasks."""
        waiting = deque(tasks)
        under_way: dict[Future[ReplayedShard], _BatchTask] = {}
        broken = False
        self._report()
        try:
            while waiting or under_way:
                if broken and not under_way:
                    workers.renew()
                    broken = False
                while waiting and not broken and len(under_way) < workers.room:
                    try:
                        future = workers.submit(waiting[0], self._settings)
                    except BrokenExecutor as death:
                        self._count_death(death)
                        broken = True
                    else:
                        under_way[future] = waiting.popleft()
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    task = under_way.pop(future)
                    error = _error_of(future)
                    if error is None:
                        self._store(future.result(), task)
                    elif _is_death(error):
                        if not broken:  # all tasks of a broken executor have the same error
                            self._count_death(error)
                        broken = broken or isinstance(error, BrokenExecutor)
                        waiting.extendleft(self._after_death(task, error))
                    else:
                        raise error
        finally:
            for future in under_way:
                future.cancel()
            workers.close()

    def _store(self, shard: ReplayedShard, task: _BatchTask) -> None:
        self._deaths_in_a_row = 0
        self._record(shard, task)

    def _record(self, shard: ReplayedShard, task: _BatchTask) -> None:
        self._folder.store(shard, task.files)
        self._progress = replace(
            self._progress, finished=self._progress.finished + len(task.files),
            errors=self._progress.errors + sum(file.errors > 0 for file in shard.files),
        )  # fmt: skip
        self._report()

    def _count_death(self, error: BaseException) -> None:
        """Count the death of a worker.

        Raises:
            OutsideError: workers die whatever they are given.
        """
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row > (IN_A_ROW if self._progress.finished else AT_FIRST):
            raise OutsideError(
                f"workers die before they finish a task ({type(error).__name__}): look for the reason in their own "
                "output; what was finished is kept"
            ) from error

    def _after_death(self, task: _BatchTask, error: BaseException) -> list[_BatchTask]:
        """Return what takes the place of a task whose worker died: itself, its halves, or nothing."""
        deaths = task.deaths + (
            1 if isinstance(error, BrokenExecutor) else APART
        )  # a cluster has tried before it says so
        if len(task.files) == 1 and deaths >= LAST:
            path = task.files[0].path
            rows = [error_row(path, f"the worker that replays it died {deaths} times")]
            self._record(shard_of([path], [rows]), task)
            return []
        if len(task.files) > 1 and deaths >= SPLIT:
            middle = len(task.files) // 2
            return [_BatchTask(half, APART) for half in (task.files[:middle], task.files[middle:])]
        return [replace(task, deaths=deaths)]

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._progress)


def _error_of(future: Future[ReplayedShard]) -> BaseException | None:
    if future.cancelled():
        return OutsideError(
            "the cluster gave a task up: see whether its scheduler still runs; what was finished is kept"
        )
    return future.exception()


def _is_death(error: BaseException) -> bool:
    """Tell whether a worker died over a task, rather than that the task failed."""
    if isinstance(error, BrokenExecutor):
        return True
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(error, distributed.KilledWorker)
