"""Replays many conversations under many policies on all cores, and stores results so that a run can be resumed."""

from __future__ import annotations

import os
import signal
from collections import deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from functools import cache
from hashlib import blake2b
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from refold import policies
from refold._compaction.options import Options
from refold._files import write_atomically
from refold.core._decoders import decoder
from refold.errors import OutsideError, UsageError
from refold.replay._equal_size import SIZES, limits, places_of, results_at_sizes
from refold.replay._quality import cuts_of
from refold.replay._repeated_compaction import cycles, planted
from refold.replay._run import NONE, Run, replayed
from refold.replay._timeline import timeline
from refold.replay._timestamps import stamps
from refold.replay.pricing import Tariff, UserPrices, tariff_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold.core.policy import Policy
    from refold.replay._timeline import Timeline
    from refold.transcripts import RecordedConversation

__all__ = ["Job", "ReplaySettings", "cores", "done", "quiet", "replay_all", "split", "version"]

CALLS = 2  # of one call nothing could be compacted before the next
AHEAD = 2  # conversations for each process that are read before one is free, so that memory is bounded
WAITING_PER_PROCESS = 8  # conversations for each process that are taken while the oldest of them is under way
_encode = msgspec.json.Encoder(order="sorted").encode
_decode = decoder(Run)


class ReplaySettings(Struct, frozen=True):
    """What holds for all conversations: model, window and goal in tokens, prices, and where results are kept.

    `keep` is a folder, "" keeps nothing. `window=None` is that of the model, or of the file's own model. `sizes` are
    the budgets at which all policies are compared, in tokens or as shares of the history; `judge=False` leaves out
    everything but costs.
    """

    model: str | None = None
    window: int | None = None
    goal: int | float | None = None
    prices: UserPrices = UserPrices()
    keep: str = ""
    sizes: tuple[int | float, ...] = SIZES
    judge: bool = True


class Job(Struct, frozen=True):
    """One conversation, what to call it, the file it is from, and the policies to replay it under."""

    recorded: RecordedConversation
    file: str
    source: str | bytes
    policies: tuple[str, ...]


def replay_all(
    jobs: Iterable[Job], settings: ReplaySettings, workers: int | None = None
) -> Iterator[list[Run] | UsageError]:
    """Yield the runs of each job, in order, or why it cannot be replayed: no price or no window is known, say.

    `workers` processes work at once, all cores by default. Jobs are taken only a few at a time.

    Raises:
        OutsideError: a process was ended by something else.
    """
    count = cores() if workers is None else workers
    if count <= 1:
        yield from (_tried(job, settings) for job in jobs)
        return
    context = get_context("spawn")  # a fork would copy the threads of the caller
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=quiet)
    coming, waiting = iter(jobs), deque[Future[list[Run] | UsageError]]()
    try:
        while True:
            busy = [future for future in waiting if not future.done()]
            room = min(count * AHEAD - len(busy), count * WAITING_PER_PROCESS - len(waiting))
            for job in islice(coming, max(room, 0)):
                waiting.append(pool.submit(_tried, job, settings))
            if not waiting:
                return
            if waiting[0].done():
                yield waiting.popleft().result()
            else:
                wait([future for future in waiting if not future.done()], return_when=FIRST_COMPLETED)
    except BrokenExecutor as error:
        raise OutsideError(
            "a process that replays was ended, perhaps for want of memory: the same command goes on from what is "
            "stored; take fewer --jobs, or `refold batch`, which passes over what ends its process"
        ) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def split(jobs: Sequence[Job], workers: int) -> list[tuple[int, Job]]:
    """Return jobs with their positions; where there are fewer than workers, the policies of one are shared out."""
    if len(jobs) >= workers or not jobs:
        return list(enumerate(jobs))
    size = -(-len(jobs[0].policies) // workers)
    return [
        (place, replace(job, policies=job.policies[start : start + size]))
        for place, job in enumerate(jobs)
        for start in range(0, len(job.policies), size)
    ]


def done(job: Job, settings: ReplaySettings) -> list[Run]:
    """Replay one conversation under each policy, or read the stored result of an earlier run.

    Raises:
        UnknownModel: a price that no table has.
        BadBudget: no window is known, or one that cannot be.
        UsageError: too short: fewer than two calls.
    """
    recorded = job.recorded
    cached = any(report.cache_read for report in recorded.usage)
    tariff = tariff_for(settings.model or recorded.model, settings.prices, cached=cached)
    places = _places(job, tariff, settings)
    runs = {name: run for name, place in places.items() if (run := _stored_run(place)) is not None}
    if len(runs) < len(places):
        line = timeline(recorded, stamps(recorded, job.source) if recorded.usage else (), model=settings.model)
        if len(line.beats) < CALLS:
            calls = f"{len(line.beats)} of at least {CALLS} calls of a model"
            raise UsageError(f"{job.file}: too few to replay ({calls}): name a longer one")
        tests = _Tests(line, settings)
        for name in job.policies:
            if name not in runs:
                policy = None if name == NONE else policies.find(name)
                run = replayed(line, policy, tariff, _options(recorded, settings), file=job.file, cuts=tests.cuts)
                runs[name] = tests.passed(run, policy)
                _keep(places[name], runs[name])
    return [runs[name] for name in job.policies]


class _Tests:
    """What every policy has to preserve of one conversation, computed once."""

    def __init__(self, line: Timeline, settings: ReplaySettings) -> None:
        self._line, self._judge = line, settings.judge
        self.cuts = cuts_of(line) if settings.judge else ()
        self._places = places_of(line, settings.sizes) if settings.judge else ()
        self._planted = planted(line) if settings.judge else None

    def passed(self, run: Run, policy: Policy | None) -> Run:
        """Return the run with what the policy holds at equal sizes and after five compactions in a row."""
        if not self._judge:
            return run
        if policy is None:
            return replace(run, limits=limits(self._places))
        recorded = cycles(self._planted, policy) if self._planted else None
        return replace(run, at_sizes=results_at_sizes(self._line, policy, self._places), cycles=recorded)


def _tried(job: Job, settings: ReplaySettings) -> list[Run] | UsageError:
    try:
        return done(job, settings)
    except UsageError as error:
        return error


def cores() -> int:
    """Return how many processes may work at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def version() -> str:
    """Return a digest of the code: a result of other code is not taken for one of this."""
    root = Path(__file__).parent.parent
    digest = blake2b(digest_size=8)
    for path in sorted((*root.rglob("*.py"), *root.rglob("*.json"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _options(recorded: RecordedConversation, settings: ReplaySettings) -> Options:
    model = settings.model or recorded.model
    window = settings.window if settings.window or settings.model else recorded.window
    return Options(
        format=recorded.format,
        model=model,
        window=window,
        goal=settings.goal,
        system=recorded.system,
        tools=recorded.tools,
    )


def _places(job: Job, tariff: Tariff, settings: ReplaySettings) -> dict[str, Path | None]:
    """Return where the result of each policy is stored: by everything it depends on."""
    if not settings.keep:
        return dict.fromkeys(job.policies)
    content = job.source if isinstance(job.source, bytes) else Path(job.source).read_bytes()
    recorded = job.recorded
    settings_key = (settings.model, settings.window, settings.goal, settings.sizes, settings.judge)
    same = blake2b(content)
    same.update(
        _encode(
            (job.file, recorded.name, recorded.model, recorded.window, recorded.format, settings_key, tariff, version())
        )
    )
    places: dict[str, Path | None] = {}
    for name in job.policies:
        fingerprint = name if name == NONE else policies.find(name).fingerprint
        digest = blake2b(same.digest() + fingerprint.encode(), digest_size=16)
        places[name] = Path(settings.keep) / f"{digest.hexdigest()}.json"
    return places


def _stored_run(place: Path | None) -> Run | None:
    if place is None or not place.is_file():
        return None
    try:
        return _decode(place.read_bytes())
    except (OSError, msgspec.MsgspecError):  # damaged: made again
        return None


def _keep(place: Path | None, run: Run) -> None:
    if place is not None:
        write_atomically(place, msgspec.json.encode(run))


def quiet() -> None:
    """Have a worker end at Ctrl-C without a word, as the parent speaks, and with a parent that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait for the parent to end: a worker of a pool would otherwise wait for its next task for ever."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
